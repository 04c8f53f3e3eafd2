#!/bin/sh
# Files and functions stay small: 600 and 60 lines, tests 800 and 100. Tables (.def, schemas) are exempt: not .c, not .h.
# A folder of the product holds at most 30 .c files: with more it is two rooms.
# usage: sizes.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
crowded=$(find protocol registry supervisor agents -name '*.c' | sed 's#/[^/]*$##' | sort | uniq -c | awk '$1 > 30 { print $2 ": " $1 " .c files, at most 30" }')
[ -z "$crowded" ] || {
    echo "$crowded"
    exit 1
}
find protocol registry supervisor agents tests -name '*.[ch]' -print0 | sort -z |
    xargs -0 awk '
FNR == 1 {
    end_file()
    file = FILENAME
    file_max = file ~ /^tests\// ? 800 : 600
    function_max = file ~ /^tests\// ? 100 : 60
    started = 0
}
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
