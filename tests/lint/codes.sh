#!/bin/sh
# Every code that a comment, a test or a page names (M020, C18, F08, G1, E7, N2, Q1, S001) is defined exactly once in the tree: in a
# table of a .md file whose first column is called "code". And nothing points to a document that is not in the repository.
# usage: codes.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
files() { find . -name build -prune -o -name .git -prune -o -path ./tests/golden -prune -o -type f \( "$@" \) -print | sed 's#^\./##' | sort; }
{
    files -name '*.md'
    files -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.yaml'
} | grep -v '^tests/lint/codes\.sh$' | tr '\n' '\0' | xargs -0 awk '
BEGIN { code = "(M[0-9][0-9][0-9]|C[0-9][0-9]|F[0-9][0-9]?|S[0-9][0-9][0-9]|[GENQ][0-9][0-9]?)" }
FNR == 1 {
    inside = quote = defines = 0
    page = FILENAME ~ /\.md$/
    source = FILENAME ~ /\.([ch]|def)$/
}
page && /^\|/ {
    if (!in_table) {
        defines = $0 ~ /^\| *code *\|/
    } else if (defines) {
        split($0, cells, "|")
        gsub(/ /, "", cells[2])
        if (cells[2] ~ "^" code "$") {
            if (cells[2] in defined) {
                complain(cells[2] " is defined in " defined[cells[2]] ", too")
            }
            defined[cells[2]] = FILENAME ":" FNR
        }
    }
}
page { in_table = /^\|/ }
{
    text = source ? comment_of($0) : $0
    if (FILENAME ~ /\.(py|sh)$/) {
        sub(/# noqa: .*/, "", text)
    }
    if (text ~ /(^|[^A-Z_])(RELIABILITY|LIBRARIES|REQUIREMENTS|PERFORMANCE|FEATURES|STYLE|HOUSE)([^A-Z_a-z=]|$)/ || text ~ /(^|[^A-Za-z0-9_.\/])shared\/[a-z]/) {
        complain("points to a document that is not in the repository: " text)
    }
    while (match(text, "(^|[^A-Za-z0-9_+\\\\])" code "([^A-Za-z0-9_]|$)")) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH - (RLENGTH > 1))
        gsub(/[^A-Z0-9]/, "", word)
        if (!(word in used) && word !~ /^F(32|64)$/) { # types of numbers
            used[word] = FILENAME ":" FNR
        }
    }
}
END {
    for (word in used) {
        if (!(word in defined)) {
            print used[word] ": " word " is defined nowhere (a table whose first column is \"code\" defines)"
            bad = 1
        }
    }
    exit bad
}
function complain(what) {
    print FILENAME ":" FNR ": " what
    bad = 1
}
# The comments of a line of C; strings and characters hold none.
function comment_of(line,   out, c, two) {
    out = ""
    while (line != "") {
        c = substr(line, 1, 1)
        two = substr(line, 1, 2)
        line = substr(line, 2)
        if (inside) {
            if (two == "*/") {
                inside = 0
                line = substr(line, 2)
                out = out " "
            } else {
                out = out c
            }
        } else if (quote) {
            if (c == "\\") {
                line = substr(line, 2)
            } else if (c == quote) {
                quote = 0
            }
        } else if (two == "/*") {
            inside = 1
            line = substr(line, 2)
        } else if (c == "\"" || c == "\047") {
            quote = c
        }
    }
    quote = 0
    return out
}'
