#!/bin/sh
# Random small defects, one at a time, in any room: how many do its tests notice?
# usage: sh tests/mutants/random.sh [--room journal|all] [--part N/M] [--count 20] [--seed N] [--asan] [--wide] [--least PERCENT] [--list]
#   --part    of all rooms every M-th one, from the N-th on (0/3, 1/3 and 2/3 are all)
#   --asan    what a room's own tests leave is asked of the same tests with sanitizers (preset dev)
#   --wide    what is left of all rooms is asked of all tests, at once (together.py: half an hour, however many)
#   --least   fails when a room's own tests notice fewer percent
# Prints the seed, each mutant, the rates and the survivors. Every night: .ci/nightly. Not part of run.sh.
set -eu
cd "$(dirname "$0")/../.."
exec </dev/null

room=all
part=0/1
count=20
seed=$(date +%s)
asan=
wide=
least=0
list=
while [ $# -gt 0 ]; do
    case $1 in
    --room | --part | --count | --seed | --least)
        name=${1#--}
        eval "$name=\${2:?$1 needs a value}"
        shift
        ;;
    --asan)
        [ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
        asan="--asan build/dev"
        ;;
    --wide) wide=yes ;;
    --list) list=--list ;;
    *)
        sed -n '3,8s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
rooms=$room
[ "$room" != all ] || rooms=$(python3 -B tests/mutants/mutate.py --rooms | tr ' ' '\n' | awk -v n="${part%/*}" -v m="${part#*/}" '(NR - 1) % m == n' | tr '\n' ' ')
[ -n "${rooms% }" ] || { echo "--part $part: expected N/M with N below M" >&2; exit 2; }

work=build/random-mutants-results
rm -rf "$work"
mkdir -p "$work"
echo "random mutants: seed $seed, $count of each: $rooms"
for room in $rooms; do
    # shellcheck disable=SC2086 # words
    python3 -B tests/mutants/mutate.py --room "$room" --n "$count" --seed "$seed" --out "$work/$room.jsonl" $asan $list
done
[ -z "$list" ] || exit 0
if [ -n "$wide" ]; then
    python3 -B tests/mutants/together.py --out "$work/together" "$work"/*.jsonl
    set -- "$work/together"
else
    set -- "$work"/*.jsonl
fi
python3 -B tests/mutants/mutate.py --report "$@" --least "$least"
