#!/bin/sh
# How pages, comments and commits are written:
#   pages    the front pages, protocol/*.md and each room's README: lines of at most 100 columns (a line between "<!-- generated"
#            and "<!-- end -->" is exempt, and a page whose first line says "generated"); a room's README at most 900 words, the
#            top one 800
#   words    no word of tests/lint/retired-words.txt in a comment or a page
#   commits  subjects since BASE at most 72 characters; merges, reverts and fixups are exempt. Skipped without git.
# tests/lint/words-todo.txt lists the files and folders that are still to be rewritten: nothing is asked of them. It only shrinks: an entry
# without anything left to do is an error, and `words.sh ROOT --shrink` takes such entries out.
# usage: words.sh ROOT [--shrink]
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
BASE=64635f78986561788213ac5886ba868893d33b15
todo=tests/lint/words-todo.txt
found=$(mktemp)
trap 'rm -f "$found" "$found".*' EXIT
LC_ALL=C
export LC_ALL

files() { find . -name build -prune -o -name .git -prune -o -path ./tests/golden -prune -o -type f \( "$@" \) -print | sed 's#^\./##' | sort; }

# ---- pages: columns and words
readmes=$(find protocol registry supervisor agents tests deploy -name README.md | sort)
for page in README.md ARCHITECTURE.md CONTRIBUTING.md deploy/TOUR.md $(find protocol -maxdepth 1 -name '*.md' | sort) $readmes; do
    words=0
    if [ ! -s "$page" ]; then
        echo "$page:1: is not there"
        continue
    fi
    case $page in
    README.md) words=800 ;;
    */README.md) words=900 ;;
    esac
    awk -v most="$words" '
    FNR == 1 && tolower($0) ~ /generated/ { exit }
    /^<!-- generated/ { generated = 1 }
    {
        line = $0
        gsub(/[\200-\277]/, "", line) # columns are characters
        if (!generated && length(line) > 100) {
            print FILENAME ":" FNR ": " length(line) " columns, at most 100"
        }
        for (i = 1; i <= NF && !generated; i++) {
            words += $i ~ /[A-Za-z0-9]/ # not the bars of tables
        }
    }
    /^<!-- end -->/ { generated = 0 }
    END {
        if (most > 0 && words > most) {
            print FILENAME ":1: " words " words, at most " most
        }
    }' "$page"
done >"$found"

# ---- retired words, in comments and pages
{
    files -name '*.md'
    files -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh'
} | grep -v '^CHANGELOG\.md$' | tr '\n' '\0' | xargs -0 awk -v list=tests/lint/retired-words.txt '
BEGIN {
    FS = "\t"
    while ((getline line < list) > 0) {
        if (line !~ /^#/ && split(line, part, "\t") == 2) {
            word[++n] = "(^|[^a-z0-9_./-])(" part[1] ")([^a-z0-9_/-]|$)"
            instead[n] = part[2]
        }
    }
    if (n == 0) {
        print "tests/lint/retired-words.txt:1: no words"
    }
}
FNR == 1 {
    inside = 0
    page = FILENAME ~ /\.md$/
    c = FILENAME ~ /\.([ch]|def)$/
    generated = page && tolower($0) ~ /generated/ ? 2 : 0
}
page && /^<!-- generated/ { generated = 1 }
page && /^<!-- end -->/ && generated == 1 { generated = 0 }
!generated {
    text = tolower(c ? comment_of($0) : page ? $0 : script_comment($0))
    gsub(/`[^`]*`/, " ", text) # names of code in pages
    gsub(/draft[- ]?[0-9]+/, "", text)
    for (i = 1; i <= n; i++) {
        if (match(text, word[i])) {
            print FILENAME ":" FNR ": \"" substr(text, RSTART, RLENGTH) "\": write " instead[i]
        }
    }
}
# Comments and docstrings of scripts.
function script_comment(line,   at, out) {
    out = ""
    if (FILENAME ~ /\.py$/ && line ~ /"""/) {
        out = line
        inside = gsub(/"""/, "", line) == 2 ? inside : !inside
        return out
    }
    if (inside) {
        return line
    }
    at = match(line, /(^|[ \t])#( |$)/)
    return at ? substr(line, at) : ""
}
function comment_of(line,   out, ch, two, quote) {
    out = ""
    quote = 0
    while (line != "") {
        ch = substr(line, 1, 1)
        two = substr(line, 1, 2)
        line = substr(line, 2)
        if (inside) {
            if (two == "*/") {
                inside = 0
                line = substr(line, 2)
                out = out " "
            } else {
                out = out ch
            }
        } else if (quote) {
            if (ch == "\\") {
                line = substr(line, 2)
            } else if (ch == quote) {
                quote = 0
            }
        } else if (two == "/*") {
            inside = 1
            line = substr(line, 2)
        } else if (ch == "\"" || ch == "\047") {
            quote = ch
        }
    }
    return out
}' | grep -v '^tests/lint/\(words\.sh\|retired-words\.txt\)' >>"$found" || true

# ---- what is still to be rewritten
awk -v todo="$todo" -v stale="$found.stale" '
BEGIN {
    while ((getline line < todo) > 0) {
        if (line !~ /^(#|$)/) {
            open[line] = 0
        }
    }
}
{
    file = $0
    sub(/:.*/, "", file)
    best = ""
    for (path in open) {
        if ((file == path || index(file, path "/") == 1) && length(path) > length(best)) {
            best = path
        }
    }
    if (best == "") {
        print
    } else {
        open[best]++
    }
}
END {
    for (path in open) {
        if (open[path] == 0) {
            print path > stale
        }
    }
}' "$found" >"$found.new"
bad=0
if [ -s "$found.new" ]; then
    cat "$found.new"
    bad=1
fi
if [ -s "$found.stale" ] && [ "${2:-}" = --shrink ]; then
    grep -vxF -f "$found.stale" "$todo" >"$found.todo"
    cat "$found.todo" >"$todo"
elif [ -s "$found.stale" ]; then
    sed "s#.*#$todo: nothing is left to do in &: take it out (words.sh . --shrink)#" "$found.stale"
    bad=1
fi

# ---- subjects of commits
if git merge-base --is-ancestor "$BASE" HEAD 2>/dev/null; then
    git --no-pager log --no-merges --format='%h %s' "$BASE..HEAD" >"$found.log"
    awk '
    {
        hash = $1
        sub(/^[^ ]* /, "")
        gsub(/[\200-\277]/, "")
        if (length($0) > 72 && $0 !~ /^(fixup! |squash! |Revert ")/) {
            print "commit " hash ": a subject of " length($0) " characters, at most 72: " $0
            bad = 1
        }
    }
    END { exit bad }' "$found.log" || bad=1
fi
exit $bad
