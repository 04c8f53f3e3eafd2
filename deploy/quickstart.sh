#!/bin/sh
# Builds Baton, starts it with its bundled agents, lets them report on this machine's packages, and stops everything.
# usage: sh deploy/quickstart.sh [DPKG_LOG]      else /var/log/dpkg.log, else the small log in deploy/examples
# The report goes to stdout, everything else to stderr. Nothing is left behind but build/release.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
root=$(dirname "$here")

log=${1:-/var/log/dpkg.log}
if [ $# -eq 0 ] && ! grep -q -m 1 ' install ' "$log" 2>/dev/null; then
    echo "no installs in $log; taking the example instead" >&2
    log=$here/examples/dpkg.log
fi
if [ ! -r "$log" ]; then
    echo "quickstart: cannot read $log" >&2
    exit 2
fi
log=$(cd "$(dirname "$log")" && pwd -P)/$(basename "$log")
case $log in
*[\"\\\']*)
    echo "quickstart: quotes and backslashes in the name of the log are too much for this script: $log" >&2
    exit 2
    ;;
esac

say() {
    if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then
        printf '\n\033[1m%s\033[0m\n' "$*" >&2
    else
        printf '\n== %s\n' "$*" >&2
    fi
}

dir=$(mktemp -d "${TMPDIR:-/tmp}/baton-quickstart-XXXXXX")
BATON_STATE=$dir/state
export BATON_STATE
baton=$root/build/release/bin/baton
finish() {
    code=$?
    trap - EXIT INT TERM
    if [ "$code" -ne 0 ] && [ -f "$BATON_STATE/batond.log" ]; then
        tail -20 "$BATON_STATE/batond.log" >&2
    fi
    if [ -d "$BATON_STATE" ]; then
        "$baton" down >&2 || code=1
    fi
    rm -rf "$dir"
    if [ "$code" -eq 0 ]; then
        echo "To watch plans in a browser: $baton up --config $here/examples/tour.yaml && $baton ui" >&2
    fi
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ "$(wc -c <"$log")" -gt 2000000 ]; then # one result holds at most 3 MiB
    echo "$log is large; taking its end" >&2
    tail -c 2000000 "$log" | tail -n +2 >"$dir/dpkg.log"
    log=$dir/dpkg.log
fi

say "Building"
sh "$here/install.sh" build
(cd "$root" && cmake --preset release >&2)
ninja -C "$root/build/release" --quiet >&2

say "Starting"
sed -e "s|@ROOTS@|\"$(dirname "$log")\"|" -e "s|@EXAMPLES@|$here/examples|" "$here/quickstart.yaml" >"$dir/baton.yaml"
"$baton" up --config "$dir/baton.yaml" >&2

say "Report on $log"
"$baton" run --plan "$here/examples/dpkg-report.yaml" --inputs "{\"log\": \"$log\"}" --json >"$dir/result.json"
plan=$(sed -n 's/.*"planId":"\([^"]*\)".*/\1/p' "$dir/result.json")
"$baton" result "$plan" report

say "The events of the plan"
"$baton" events "$plan" >&2

say "The same kind of question in words"
"$baton" run "read $log, then count the installs per day, then report the busiest day" >"$dir/answer.md"
sed 's/^/  /' "$dir/answer.md" >&2

say "Stopping"
