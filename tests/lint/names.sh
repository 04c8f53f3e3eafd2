#!/bin/sh
# Nothing that is committed names a machine, a home or a workplace: paths are relative or come from the environment,
# hosts are loopback or reserved for examples (RFC 2606, RFC 5737).
# usage: names.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "SKIPPED: not a git checkout"
    exit 77
fi
bad=0
refuse() { # WHAT REGEX [PATHSPEC...]
    what=$1 regex=$2
    shift 2
    if git --no-pager grep -nIE -e "$regex" -- . ':!tests/lint/names.sh' "$@"; then
        echo "^ $what"
        bad=1
    fi
}
refuse "a path of somebody's machine" '(^|[^A-Za-z0-9_.}/-])/(work|root|Users|workspace)(/|[^A-Za-z0-9_/-]|$)' ':!LICENSE'
refuse "a home" '/home/[A-Za-z0-9]' ':!*.c'
refuse "an address in a private network" '(^|[^0-9.])(10\.[0-9]+\.[0-9]+\.[0-9]+|192\.168\.[0-9]+\.[0-9]+|172\.(1[6-9]|2[0-9]|3[01])\.[0-9]+\.[0-9]+)' ':!*.c' ':!*.py' ':!*_told.txt'
refuse "an internal host" '[a-z0-9-]+\.(internal|corp|intranet|lan)([^A-Za-z0-9_.]|$)' ':!*.[ch]' ':!*.cmake' ':!*.py'
refuse "a mark of an unsolved merge" '^(<{7}|>{7}) '
exit $bad
