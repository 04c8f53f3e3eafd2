#!/bin/sh
# Calls that have a safer form here, clocks outside their one file, and what must not be committed.
# Looks at code only: comments and strings are blanked first, and then the rule about comments looks at the comments.
# usage: banned.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
find protocol registry supervisor agents tests \( -name '*.[ch]' -o -name '*.def' \) -print0 | sort -z | xargs -0 awk '
BEGIN {
    calls = "(strcpy|strcat|sprintf|vsprintf|atoi|atol|atof|gets|strtok|alloca|rand|srand|random|system|popen|tmpnam|mktemp|setjmp|longjmp)"
    times = "(time|gettimeofday|clock|clock_gettime|localtime|gmtime|mktime|ftime)"
    waits = "(sleep|usleep)"
    before = "(^|[^A-Za-z0-9_.>])"
}
FNR == 1 { inside = 0 }
{
    code = blank($0)
    if (code ~ before calls "[ \t]*\\(") {
        say("banned call")
    }
    if (code ~ before waits "[ \t]*\\(") {
        say("waits for time, not for a condition")
    }
    if (FILENAME !~ /^(protocol\/base\/clock\.c$|tests\/support\/shifted_clock\.c$|tests\/bench\/)/ && (code ~ before times "[ \t]*\\(" || code ~ /CLOCK_REALTIME/)) {
        say("time is read through protocol/base/clock.h only")
    }
    if (FILENAME !~ /^supervisor\/core\/(run\/record|sched\/core_event)\.h$/ && code ~ /(\.|->)as\./) {
        say("unchecked: a member of a record or an event is read through REC or CORE_EV")
    }
    if (code ~ /\/\//) {
        say("comments are /* */")
    }
    if (comment ~ /(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/) {
        say("unfinished: finish it, or open an issue")
    }
}
END { exit bad }
function say(text) {
    print FILENAME ":" FNR ": " text ": " $0
    bad = 1
}
# The line without its strings, characters and comments; the comments are left in `comment`.
function blank(line,   out, c, two, quote) {
    out = ""
    comment = ""
    quote = ""
    while (line != "") {
        c = substr(line, 1, 1)
        two = substr(line, 1, 2)
        line = substr(line, 2)
        if (inside) {
            if (two == "*/") {
                inside = 0
                line = substr(line, 2)
            }
            comment = comment c
        } else if (quote != "") {
            if (c == "\\") {
                line = substr(line, 2)
            } else if (c == quote) {
                quote = ""
                out = out c
            }
        } else if (two == "/*") {
            inside = 1
            line = substr(line, 2)
        } else {
            if (c == "\"" || c == "\047") {
                quote = c
            }
            out = out c
        }
    }
    return out
}'
