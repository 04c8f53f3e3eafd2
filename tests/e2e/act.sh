#!/bin/sh
# usage: act.sh DIR NAME: the n-th call keeps its input as DIR/NAME.n.in and runs DIR/NAME.n, or the highest below n that is there.
set -eu
cd "$1"
echo asked >>"$2.asked"
n=$(wc -l <"$2.asked")
cat >"$2.$n.in"
while [ ! -e "$2.$n" ] && [ "$n" -gt 0 ]; do
    n=$((n - 1))
done
. "./$2.$n"
