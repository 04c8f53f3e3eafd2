#!/bin/sh
# The unit is right and stays hardened. Checked with the program as built, since verify wants it to exist.
# usage: systemd.sh UNIT PROGRAM
set -eu
unit=$1
program=$2
if ! command -v systemd-analyze >/dev/null; then
    echo "SKIPPED: systemd-analyze is not there; install the package systemd"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
copy=$dir/$(basename "$unit")
sed "s|/usr/bin/$(basename "$program") |$program |; s|/usr/bin/baton |$(dirname "$program")/baton |" "$unit" >"$copy"
grep -q "^ExecStart=$program " "$copy" || {
    echo "the unit does not start /usr/bin/$(basename "$program")" >&2
    exit 1
}
# verify exits with 0 after some warnings; silence is what we want.
systemd-analyze verify --man=no "$copy" >"$dir/said" 2>&1 || failed=1
if [ -n "${failed:-}" ] || [ -s "$dir/said" ]; then
    cat "$dir/said" >&2
    exit 1
fi
# The exposure of 0.0 (safe) to 10.0, times ten.
systemd-analyze security --offline=true --threshold=25 --no-pager "$copy" >"$dir/said" 2>&1 || {
    cat "$dir/said" >&2
    exit 1
}
tail -1 "$dir/said"
