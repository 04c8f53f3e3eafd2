#!/bin/sh
# Which room may include which: the arrows of the architecture. `baton/` are the public headers.
# usage: layers.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
find protocol registry supervisor agents -name '*.[ch]' -print0 | sort -z | xargs -0 awk -f tests/lint/rooms.awk -f tests/lint/layers.awk
