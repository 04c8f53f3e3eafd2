#!/bin/sh
# The layout is what clang-format 14 makes of it.      To repair: git ls-files '*.[ch]' | xargs clang-format-14 -i
# usage: format.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
tool=$(command -v clang-format-14 || command -v clang-format || true)
case $([ -n "$tool" ] && "$tool" --version || true) in
*"version 14."*) ;;
*)
    echo "SKIPPED: clang-format 14 is not there"
    exit 77
    ;;
esac
find protocol registry supervisor agents tests -name '*.[ch]' -print0 | sort -z |
    xargs -0 "$tool" --dry-run -Werror --ferror-limit=1 2>&1 | sed -n '/error:/p' >"${TMPDIR:-/tmp}/baton-format.$$"
lines=$(wc -l <"${TMPDIR:-/tmp}/baton-format.$$")
cat "${TMPDIR:-/tmp}/baton-format.$$"
rm -f "${TMPDIR:-/tmp}/baton-format.$$"
[ "$lines" -eq 0 ]
