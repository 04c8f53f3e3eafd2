"""What became of mutants: files of one JSON object a line, the rates of the rooms, the survivors."""
import collections
import json
import os


def known_equivalent():
    """(file, function, the line, what) of the mutants that a person found to change nothing."""
    out = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                at, *source, what, why = (x.strip() for x in line.split(" | "))
                out[(*at.split(":"), " | ".join(source), what)] = why
    return out


def key_of(m):
    return (m["file"], m["function"], m["source"], m["what"])


def load(paths):
    out = {}
    for p in paths:
        with open(p, encoding="utf-8") as f:
            for line in f:
                m = json.loads(line)
                out[(m["room"], m["file"], m["start"], m["new"])] = m
    return list(out.values())


def report(paths, least):
    known = known_equivalent()
    rooms = collections.defaultdict(list)
    for m in load(paths):
        rooms[m["room"], m.get("seed", 0)].append(m)
    low = []
    print("| room | seed | mutants | own tests | all tests | alive |")
    print("|---|---|---|---|---|---|")
    rows = [(r, rooms[r]) for r in sorted(rooms)]
    if len(rows) > 1:
        rows.append((("all", ""), [m for r in rooms.values() for m in r]))
    for (room, seed), ms in rows:
        counts = [m for m in ms if m["verdict"] not in ("does not build", "same code", "does not link") and key_of(m) not in known]
        own = [m for m in counts if m["verdict"] != "survived" and m["stage"] != "wide"]
        alive = [m for m in counts if m["verdict"] == "survived"]
        n = max(len(counts), 1)
        if counts and 100 * len(own) < least * len(counts):
            low.append(room)
        asked = all("wide" in m["survived"] for m in alive)
        whole = f"{100 * (len(counts) - len(alive)) // n} %" if asked else "not asked"
        print(f"| {room} | {seed or '-'} | {len(counts)} | {100 * len(own) // n} % | {whole} | {len(alive)} |")
    print()
    for room, seed in sorted(rooms):
        for m in rooms[room, seed]:
            if m["verdict"] == "survived":
                why = known.get(key_of(m))
                print(f"{room}: {m['file']}:{m['line']} {m['function']}: {m['what']}  [{m['source']}]"
                      f" not noticed by {', '.join(m['survived'])}{'; equivalent: ' + why if why else ''}")
    if low:
        print(f"fewer than {least} % are noticed by the own tests of: {', '.join(low)}")
    return 1 if low else 0
