#!/bin/sh
# Makes a page of the manual from a page in Markdown: man(7) on stdout.
# usage: page.sh NAME SECTION DATE "ONE LINE" "SEE ALSO" FILE.md
# The first heading becomes NAME and DESCRIPTION; links within the repository become their text. An underscore or a ^ in a word is
# what it is. Nothing is adjusted or hyphenated: cells are narrow, and a name with a hyphen in it is another name. The last column
# of a table takes the room that the others leave.
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
    lowdown -s -Tman --out-no-smarty --parse-no-intraemph --parse-no-super -M "title=$(echo "$name" | tr a-z A-Z)" -M "section=$section" -M "date=$date" -M "source=Baton" |
    awk '{ gsub(/\\f(C|\(CB)/, "\\fB") }
        /^\.TH / { print ".nr HY 0\n.ad l" }
        /^\.TS$/ { print ".nh" }
        /^tab\(\|\) expand/ { sub(" expand", "") }
        /^\.(PP|LP)$/ && heading == 1 { next }
        { heading = /^\.S[HS]$/ ? 2 : heading - 1; print }' |
    awk '
function shown(s) { gsub(/\\f[A-Z]/, "", s); gsub(/\\\(..|\\[-e&]/, "x", s); return s }
function max(a, b) { return a > b ? a : b }
function take(c, text,   words, n) {
    cells[n_rows, c] = text
    all[c] = max(all[c], length(shown(text)))
    for (n = split(shown(text), words, /[ \n]/); n > 0; n--) {
        word[c] = max(word[c], length(words[n]))
    }
}
# The widths of a table for 80 columns: what is longest is made narrower first, down to its longest word, until the last
# column has room. That one takes what is left of a wider line.
function layout(   c, sum, wide, form) {
    for (c = 1; c < columns; c++) {
        sum += width[c] = max(all[c], word[c])
    }
    for (wide = 1; wide && sum > 71 - 3 * columns - 20; sum -= wide > 0) {
        wide = 0
        for (c = 1; c < columns; c++) {
            wide = width[c] > word[c] && (!wide || width[c] > width[wide]) ? c : wide
        }
        width[wide] -= wide > 0
    }
    for (c = 1; c < columns; c++) {
        form = form "lw(" width[c] ") "
    }
    return form "lx."
}
function cell(c, text,   plain) {
    plain = text !~ /[|\n]|^[.\047_=]/ && (c < columns ? length(shown(text)) <= width[c] : shown(text) !~ / /)
    return (plain ? text : "T{\n" text "\nT}") (c < columns ? "|" : "\n")
}
/^l( l)*\.$/ { columns = split($0, parts, " "); n_rows = 0; delete all; delete word; delete width; next }
columns && /^\.TE/ {
    print layout()
    for (r = 1; r <= n_rows; r++) {
        for (c = 1; c <= columns; c++) {
            printf "%s", cell(c, cells[r, c])
        }
    }
    columns = 0
}
columns && /T\{$/ { # of a row: a cell begins, its lines follow, T} ends it and may begin the next one
    n_rows++
    for (c = 1; /T\{$/; c++) {
        text = ""
        lines = 0
        while ((getline line) > 0 && line !~ /^T\}/) {
            text = text (lines++ ? "\n" : "") line
        }
        $0 = substr(line, 3)
        take(c, text)
    }
    next
}
{ print }'
