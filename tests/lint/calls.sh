#!/bin/sh
# The rooms of the loop call each other in one direction, held on the names that their archives need
# and define. An upward call may link all the same, so the linker does not see it.
# usage: calls.sh LIBRARY_DIR
set -eu
cd "$1"
rooms="engine query dispatch conversation api" # each may call those before it
command -v nm > /dev/null || exit 77
for room in $rooms; do
    [ -f "lib$room.a" ] || exit 77 # a build of something else
done
for room in $rooms; do
    nm -A "lib$room.a" | awk -v room="$room" '{ print room, $(NF - 1), $NF, $1 }'
done | awk -v rooms="$rooms" '
BEGIN {
    n = split(rooms, order, " ")
    for (i = 1; i <= n; i++) {
        level[order[i]] = i
    }
}
$2 ~ /^[TDBRC]$/ { home[$3] = $1 }
$2 == "U" { uses[++m] = $0 }
END {
    for (i = 1; i <= m; i++) {
        split(uses[i], use, " ")
        if (use[3] in home && level[home[use[3]]] > level[use[1]]) {
            print use[4] " calls " use[3] " of the room above, " home[use[3]]
            bad = 1
        }
    }
    exit bad || m == 0
}'
