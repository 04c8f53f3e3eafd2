"""Where a C file can be wrong in a small way: the mutations of its functions, and a draw of them."""
import collections
import glob
import os
import random
import re

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<char>[LuU]?'(?:\\.|[^'\\\n])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][+-]?\d+)?|\d+)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|[-+*/%&|^~!<>=?:;,.(){}\[\]])
  | (?P<space>\s+|\\\n)
""", re.X | re.S)
CAP = re.compile(r"(?!U?INT|SIZE_MAX|LONG|BT_)([A-Z0-9_]*_(MAX|CAP|LIMIT|MOST|MAX_[A-Z]+)|(MAX|LIMIT)_[A-Z0-9_]+)")
Token = collections.namedtuple("Token", "kind text start end line")


def tokens(text):
    """The tokens of a C file without comments, space and preprocessor lines."""
    blank = re.sub(r"(?m)^[ \t]*#(?:[^\\\n]|\\\n|\\.)*", lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    out, at, line = [], 0, 1
    while at < len(blank):
        m = TOKEN.match(blank, at)
        if not m:
            at += 1
            continue
        if m.lastgroup not in ("comment", "space"):
            out.append(Token(m.lastgroup, m.group(), m.start(), m.end(), line))
        line += m.group().count("\n")
        at = m.end()
    return out


def closing(toks, i):
    """The index of what closes the bracket at i."""
    pair = {"(": ")", "{": "}", "[": "]"}[toks[i].text]
    depth = 0
    for j in range(i, len(toks)):
        if toks[j].text == toks[i].text:
            depth += 1
        elif toks[j].text == pair:
            depth -= 1
            if depth == 0:
                return j
    return len(toks) - 1


def bodies(toks):
    """(name, first, last): the function bodies, as indexes of their braces."""
    out, i, name = [], 0, ""
    while i < len(toks):
        if toks[i].text == "(" and i > 0 and toks[i - 1].kind == "name":
            name = toks[i - 1].text
            i = closing(toks, i) + 1
            if i < len(toks) and toks[i].text == "{":
                end = closing(toks, i)
                out.append((name, i, end))
                i = end
            continue
        if toks[i].text == "{":
            i = closing(toks, i)
        i += 1
    return out


def line_of(text, at):
    return text.count("\n", 0, at) + 1


SKIP_CALL = re.compile(r"^(log_\w+|assert\w*|ASSERT\w*|CHECK|BUG|static_assert|_Static_assert|free|va_end|va_start|sizeof|snprintf)$")
NOT_A_STATEMENT = {"return", "if", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue",
                   "else", "const", "static", "struct", "enum", "union", "unsigned", "int", "char", "bool", "void",
                   "size_t", "double", "long", "short", "float", "typedef", "volatile", "extern", "register"}
FOREIGN = re.compile(r"^(SQLITE|NNG|PCRE2|O|S|F|AT|EPOLL|EFD|SOCK|AF|MSG|PR|SIG|WNO|CLOCK|LOCK|MS|PTHREAD)_")  # constants of others
REL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def enums(src):
    """constant -> the constants of its enum, from every header and source of the checkout."""
    groups = {}
    for path in glob.glob(os.path.join(src, "**", "*.[ch]"), recursive=True):
        if "/build/" in path or "/tests/" in path:
            continue
        with open(path, encoding="utf-8") as f:
            toks = tokens(f.read())
        for i, t in enumerate(toks):
            if t.text != "enum":
                continue
            j = i + 1
            if j < len(toks) and toks[j].kind == "name":
                j += 1
            if j >= len(toks) or toks[j].text != "{":
                continue
            end = closing(toks, j)
            names = [toks[k].text for k in range(j + 1, end)
                     if toks[k].kind == "name" and toks[k - 1].text in "{," and toks[k + 1].text in ",}="]
            for n in names:
                groups.setdefault(n, names)
    return groups


def sites(text, groups, extra):
    """Every (op, start, end, new text, what, function, line) of one file."""
    toks = tokens(text)
    out = []
    for name, first, last in bodies(toks):
        if SKIP_CALL.match(name):
            continue
        dead = set()  # token indexes inside logs and assertions
        within, stack = {}, []  # the innermost open bracket of each token
        for i in range(first, last):
            if toks[i].kind == "name" and SKIP_CALL.match(toks[i].text) and toks[i + 1].text == "(":
                dead.update(range(i, closing(toks, i + 1) + 1))

        for i in range(first, last + 1):
            within[i] = stack[-1] if stack else ""
            if toks[i].text in "([{" and toks[i].kind == "op":
                stack.append(toks[i].text)
            elif toks[i].text in ")]}" and toks[i].kind == "op" and stack:
                stack.pop()

        def add(op, a, b, new, what):
            out.append({"op": op, "start": a, "end": b, "new": new, "what": what, "function": name,
                        "line": line_of(text, a)})

        for i in range(first + 1, last):
            t, prev, nxt = toks[i], toks[i - 1], toks[i + 1]
            if i in dead:
                continue
            if t.kind == "op" and t.text in REL:
                add("compare", t.start, t.end, REL[t.text], f"{t.text} becomes {REL[t.text]}")
            elif t.text in ("&&", "||"):
                new = "||" if t.text == "&&" else "&&"
                add("logic", t.start, t.end, new, f"{t.text} becomes {new}")
            elif t.kind == "number" and re.fullmatch(r"\d+[uUlL]*", t.text):
                if prev.text == "{" and nxt.text == "}":
                    continue  # an empty initializer
                n = int(re.match(r"\d+", t.text).group())
                for new in ([1] if n == 0 else [n + 1, n - 1]):
                    add("number", t.start, t.end, str(new), f"{t.text} becomes {new}")
            elif t.text in ("true", "false"):
                new = "false" if t.text == "true" else "true"
                add("bool", t.start, t.end, new, f"{t.text} becomes {new}")
            elif t.kind == "name" and re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", t.text) and nxt.text != "(":
                if prev.text == "case" or nxt.text == ":" or FOREIGN.match(t.text):
                    continue
                pool = groups.get(t.text) or extra.get(t.text.split("_")[0] + "_", [])
                prefix = t.text.split("_")[0] + "_"
                pool = sorted(p for p in set(pool) if p != t.text and p.startswith(prefix)
                              and not re.search(r"_(MAX|COUNT|MIN|BYTES|LEN)$", p))
                if pool and not re.search(r"_(MAX|COUNT|MIN|BYTES|LEN)$", t.text):
                    add("constant", t.start, t.end, None, pool)
            elif t.text == "if" and nxt.text == "(":
                shut = closing(toks, i + 1)
                cond = text[nxt.end:toks[shut].start]
                if any(k in dead for k in range(i + 1, shut)):
                    continue
                add("negate", nxt.end, toks[shut].start, f"!({cond})", "if (" + " ".join(cond.split()) + ") negated")
                # if (...) { return x; } without an else: the check of a value, the early return
                j = shut + 1
                if toks[j].text == "{" and toks[j + 1].text in ("return", "continue", "break", "goto"):
                    end = closing(toks, j)
                    semis = [k for k in range(j, end) if toks[k].text == ";"]
                    if len(semis) == 1 and semis[0] == end - 1 and toks[end + 1].text != "else" and prev.text != "else":
                        add("guard", t.start, toks[end].end, f"(void)({cond});" if "(" in cond else ";",
                            "dropped: " + " ".join(text[t.start:toks[end].end].split()))
            elif (prev.text in ("{", ";", "}") and within[i] == "{" and t.kind == "name"
                  and t.text not in NOT_A_STATEMENT):
                # a statement: an assignment or a call; a declaration has two names in a row
                if nxt.kind == "name" or (nxt.text == "*" and toks[i + 2].kind == "name" and toks[i + 3].text in "=;,["):
                    continue
                depth, j = 0, i
                while j < last and not (toks[j].text == ";" and depth == 0):
                    depth += toks[j].text in "([{"
                    depth -= toks[j].text in ")]}"
                    if depth < 0:
                        break
                    j += 1
                if j >= last or toks[j].text != ";" or depth != 0 or any(k in dead for k in range(i, j)):
                    continue
                if nxt.text == ":":
                    continue
                add("drop", t.start, toks[j].end, ";", "dropped: " + " ".join(text[t.start:toks[j].end].split()))
    return out


def caps(src, files):
    """Every comparison with a cap, with one less and one more of it: a test at N and one at N + 1 are red."""
    out = []
    compares = set(REL) | {"==", "!="}
    for path in files:
        with open(os.path.join(src, path), encoding="utf-8") as f:
            text = f.read()
        toks = tokens(text)
        for name, first, last in bodies(toks):
            for i in range(first + 1, last):
                t = toks[i]
                if not (t.kind == "name" and CAP.fullmatch(t.text) and SKIP_CALL.match(name) is None
                        and (toks[i - 1].text in compares or toks[i + 1].text in compares)):
                    continue
                for new in (f"({t.text} - 1)", f"({t.text} + 1)"):
                    out.append({"file": path, "op": "cap", "start": t.start, "end": t.end, "new": new,
                                "what": f"{t.text} becomes {new}", "function": name, "line": line_of(text, t.start),
                                "source": text.splitlines()[line_of(text, t.start) - 1].strip()})
    return out


def draw(src, files, n, seed):
    """n mutations: an operator by chance, then a place of it by chance, each line at most once per operator."""
    rng = random.Random(seed)
    groups = enums(src)
    texts, places = {}, collections.defaultdict(list)
    extra = collections.defaultdict(set)
    for path in files:
        with open(os.path.join(src, path), encoding="utf-8") as f:
            texts[path] = f.read()
        for t in tokens(texts[path]):
            if t.kind == "name" and re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", t.text) and t.text not in groups:
                extra[t.text.split("_")[0] + "_"].add(t.text)
    for path in files:
        for s in sites(texts[path], groups, extra):
            s["file"] = path
            places[s["op"]].append(s)
    total = sum(map(len, places.values()))
    out, seen = [], set()
    while len(out) < n and places:
        op = rng.choice(sorted(places))
        s = places[op].pop(rng.randrange(len(places[op])))
        if not places[op]:
            del places[op]
        if (s["file"], s["line"]) in seen:
            continue
        seen.add((s["file"], s["line"]))
        if s["op"] == "constant":
            pool = s["what"]
            s["new"] = rng.choice(pool)
            s["what"] = f"{texts[s['file']][s['start']:s['end']]} becomes {s['new']}"
        s["source"] = texts[s["file"]].splitlines()[s["line"] - 1].strip()
        out.append(s)
    return out, total
