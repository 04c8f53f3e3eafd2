#!/bin/sh
# The arrows of rooms.awk hold for called names, too: no object of a room refers to a symbol of another room unless
# the table lets it, and the calls between rooms have no circle. Reads the objects of a build.
# usage: calls.sh ROOT BUILD_DIR
set -eu
cd "$1"
build=$2
rooms=$PWD/tests/lint/rooms.awk
calls=$PWD/tests/lint/calls.awk
root=$PWD/
cd "$build"
[ -s compile_commands.json ] || {
    echo "no compile_commands.json in $build: configure with a preset"
    exit 1
}
# "OBJECT SOURCE" of each file of the product; what the purity lint compiles is the same sources again.
tr -d '",' <compile_commands.json | awk -v root="$root" '
    $1 == "command:" { for (i = 1; i < NF; i++) if ($i == "-o") object = $(i + 1) }
    $1 == "file:" { sub(root, "", $2); print object, $2 }' |
    grep -E ' (protocol|registry|supervisor|agents)/' | grep -v '_purity\.dir' >calls.objects
missing=$(cut -d' ' -f1 calls.objects | while read -r object; do [ -f "$object" ] || echo "$object is not built"; done)
[ -z "$missing" ] || {
    echo "$missing"
    exit 1
}
cut -d' ' -f1 calls.objects | xargs nm -A -P | awk '
    FNR == NR { source[$1 ":"] = $2; next }
    $3 ~ /^[TDBRCWV]$/ { print "D", $2, source[$1] }
    $3 == "U" { print "U", $2, source[$1] }' calls.objects - >calls.symbols
[ -s calls.symbols ]
awk -f "$rooms" -f "$calls" calls.symbols calls.symbols
