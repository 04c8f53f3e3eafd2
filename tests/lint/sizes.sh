#!/bin/sh
# Files and functions stay small: 400 and 60 lines, tests 600 and 100. Tables (.def, schemas) are exempt: not .c, not .h.
# usage: sizes.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
find protocol registry supervisor agents tests -name '*.[ch]' -print0 | sort -z |
    xargs -0 awk '
FNR == 1 {
    end_file()
    file = FILENAME
    file_max = file ~ /^tests\// ? 600 : 400
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
