#!/bin/sh
# Random small defects, one at a time, in a copy of the last commit: how many do a room's tests notice?
# usage: sh tests/mutants/random.sh [--room journal|all] [--count 20] [--seed N] [--wide] [--list]
#   --wide   what a room's own tests leave is asked of the wider set too (minutes for each)
# Prints the seed, each mutant, the rates and the survivors. The rooms and their tests: ROOMS in mutate.py. Not part of run.sh.
set -eu
cd "$(dirname "$0")/../.."
exec </dev/null

room=all
count=20
seed=$(date +%s)
wide=
list=
while [ $# -gt 0 ]; do
    case $1 in
    --room | --count | --seed)
        name=${1#--}
        eval "$name=\${2:?$1 needs a value}"
        shift
        ;;
    --wide) wide=yes ;;
    --list) list=--list ;;
    *)
        sed -n '3,5s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
rooms=$room
[ "$room" != all ] || rooms=$(sed -n 's/^    "\([a-z]*\)": ("[a-z].*/\1/p' tests/mutants/mutate.py)

work=${BATON_MUTANTS_WORK:-build/random-mutants}
rm -rf "$work/src.new" "$work"/*.jsonl
mkdir -p "$work"
if [ -d "$work/src/.git" ]; then
    git -C "$work/src" checkout -q -- .
    git -C "$work/src" fetch -q
    git -C "$work/src" checkout -q --detach "$(git rev-parse HEAD)"
else
    git clone -q --no-checkout . "$work/src"
    git -C "$work/src" checkout -q --detach "$(git rev-parse HEAD)"
fi
# A spawner with a defect may kill every process that it sees.
alone=
if unshare -pf --mount-proc true 2>/dev/null; then
    alone="unshare -pf --mount-proc"
elif printf '%s' "$rooms" | grep -qw spawn; then
    echo "room spawn: SKIPPED, it needs a process namespace of its own (unshare -p, as root)" >&2
    rooms=$(printf '%s' "$rooms" | tr '\n' ' ' | sed 's/\bspawn\b//')
fi
echo "random mutants: seed $seed, $count of each: $(echo $rooms)"
for room in $rooms; do
    $alone python3 -B tests/mutants/mutate.py --src "$work/src" --room "$room" --n "$count" --seed "$seed" --out "$work/$room.jsonl" $list
    if [ -n "$wide" ] && [ -z "$list" ]; then
        $alone python3 -B tests/mutants/mutate.py --src "$work/src" --again "$work/$room.jsonl" --label wide --out "$work/$room.wide.jsonl"
    fi
done
[ -n "$list" ] || python3 -B tests/mutants/mutate.py --report "$work"/*.jsonl
