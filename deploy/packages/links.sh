#!/bin/sh
# A page of the tree as it is installed: a link to a page that is installed in the same directory leads there, any other link
# within the tree becomes its text. Blocks of code stay as they are.
# usage: links.sh FILE INSTALLED...     from the root of the tree, as all names are
set -eu
export LC_ALL=C.UTF-8
file=$1
shift
awk -v installed=" $* " -v folder="$(dirname "$file")/" '
function resolve(path,   parts, n, i, out) {
    n = split(path, parts, "/")
    for (i = 1; i <= n; i++) {
        if (parts[i] == "..") {
            sub(/\/?[^\/]*$/, "", out)
        } else if (parts[i] != "." && parts[i] != "") {
            out = out (out == "" ? "" : "/") parts[i]
        }
    }
    return out
}
function near(link,   target, anchor) {
    target = substr(link, index(link, "](") + 2)
    target = substr(target, 1, length(target) - 1)
    if (target ~ /^(https?:|#)/) {
        return link
    }
    anchor = index(target, "#") ? substr(target, index(target, "#")) : ""
    target = substr(target, 1, length(target) - length(anchor))
    if (!index(installed, " " resolve(folder target) " ")) {
        return substr(link, 2, index(link, "](") - 2)
    }
    sub(/.*\//, "", target)
    return substr(link, 1, index(link, "](") + 1) target anchor ")"
}
/^```/ { code = !code }
code || /^    / { print; next }
{
    line = ""
    while (match($0, /\[[^]]+\]\([^) ]*\)/)) {
        line = line substr($0, 1, RSTART - 1) near(substr($0, RSTART, RLENGTH))
        $0 = substr($0, RSTART + RLENGTH)
    }
    print line $0
}' "$file"
