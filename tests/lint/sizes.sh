#!/bin/sh
# Files and functions stay small. Tables (.def, schemas) are exempt: they are not .c and .h.
# usage: sizes.sh ROOT [FILE_LINES [FUNCTION_LINES]]
set -eu
cd "$1"
find protocol registry supervisor agents tests -name '*.[ch]' -print0 | sort -z |
    xargs -0 awk -v file_max="${2:-600}" -v function_max="${3:-100}" '
FNR == 1 { end_file(); file = FILENAME; started = 0 }
{ lines = FNR }
# The layout (.clang-format) puts the braces of a function, and of nothing else, alone in column 1.
/^\{$/ { started = FNR }
/^\}$/ && started {
    if (FNR - started + 1 > function_max) {
        print FILENAME ":" started ": function of " FNR - started + 1 " lines, at most " function_max
        bad = 1
    }
    started = 0
}
END { end_file(); exit bad }
function end_file() {
    if (file != "" && lines > file_max) {
        print file ": " lines " lines, at most " file_max
        bad = 1
    }
}'
