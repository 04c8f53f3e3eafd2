#!/bin/sh
# Makes a page of the manual from a page in Markdown: man(7) on stdout.
# usage: page.sh NAME SECTION DATE "ONE LINE" "SEE ALSO" FILE.md
# The first heading becomes NAME and DESCRIPTION; links within the repository become their text.
set -eu
export LC_ALL=C.UTF-8
name=$1 section=$2 date=$3 brief=$4 also=$5 file=$6

awk -v name="$name" -v brief="$brief" -v also="$also" '
function plain(s,   m) {
    while (match(s, /\[[^]]+\]\([^)]*\)/)) {
        m = substr(s, RSTART, RLENGTH)
        if (m ~ /\]\(https?:/) {
            done = done substr(s, 1, RSTART + RLENGTH - 1)
            s = substr(s, RSTART + RLENGTH)
            continue
        }
        done = done substr(s, 1, RSTART - 1) substr(m, 2, index(m, "](") - 2)
        s = substr(s, RSTART + RLENGTH)
    }
    s = done s
    done = ""
    return s
}
/^```/ { code = !code }
code { print; next }
/^<!--/ { next }
/^# / && !titled { titled = 1; print "# NAME\n\n" name " - " brief "\n\n# DESCRIPTION"; next }
/^##+ / { print plain(toupper_of($0)); next }
{ print plain($0) }
END { print "\n# SEE ALSO\n\n" also }
function toupper_of(s) { return s ~ /^## / ? "# " toupper(substr(s, 4)) : substr(s, 2) }
' "$file" |
    lowdown -s -Tman --out-no-smarty -M "title=$(echo "$name" | tr a-z A-Z)" -M "section=$section" -M "date=$date" -M "source=Baton" |
    awk '{ gsub(/\\fC/, "\\fB") }
        /^\.(PP|LP)$/ && heading == 1 { next }
        { heading = /^\.S[HS]$/ ? 2 : heading - 1; print }'
