#!/bin/sh
# generated.sh [--write] PROGRAM FILE...: what stands in FILE between the lines
#     <!-- generated: TABLE -->
#     <!-- end -->
# must be what `PROGRAM TABLE` prints. --write puts it there. A file without such lines is an error.
set -eu
write=no
if [ "$1" = --write ]; then
    write=yes
    shift
fi
program=$1
shift
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
bad=0
for file in "$@"; do
    awk -v program="$program" -v file="$file" '
        /^<!-- generated: .* -->$/ {
            print
            print ""
            table = substr($0, 17, length($0) - 20)
            fflush()
            if (system("\"" program "\" \"" table "\"") != 0) {
                exit 1
            }
            print ""
            inside = 1
            n++
        }
        /^<!-- end -->$/ { inside = 0 }
        !inside { print }
        END {
            if (inside || n == 0) {
                print file ": " (n == 0 ? "no table" : "a table does not end") > "/dev/stderr"
                exit 1
            }
        }' "$file" > "$wanted"
    if [ "$write" = yes ]; then
        cmp -s "$file" "$wanted" || cat "$wanted" > "$file"
    elif ! diff -u "$file" "$wanted"; then
        echo "$file is stale: ninja messages"
        bad=1
    fi
done
exit $bad
