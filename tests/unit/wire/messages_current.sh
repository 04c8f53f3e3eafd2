#!/bin/sh
# messages_current.sh MSG_DOC FILE: what stands between the markers of FILE must be what MSG_DOC prints.
# messages_current.sh --write MSG_DOC FILE puts it there.
set -eu
write=no
if [ "$1" = --write ]; then
    write=yes
    shift
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
    sed '/<!-- messages -->/q' "$2"
    "$1"
    printf '\n'
    sed -n '/<!-- \/messages -->/,$p' "$2"
} > "$dir/wanted"
if [ "$write" = yes ]; then
    cat "$dir/wanted" > "$2"
elif ! diff -u "$2" "$dir/wanted"; then
    echo "$2 is not what protocol/messages.def says: run $0 --write $1 $2" >&2
    exit 1
fi
