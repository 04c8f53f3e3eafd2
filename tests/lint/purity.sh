#!/bin/sh
# A pure room may call nothing but a few string functions, itself, and the pure rooms that it links.
# usage: purity.sh ALLOWED_REGEX OBJECT...
set -eu
allowed=$1
shift
defined=$(nm --defined-only "$@" | awk 'NF == 3 {print $3}' | sort -u)
for symbol in $(nm -u "$@" | awk '$1 == "U" {print $2}' | sort -u | grep -vxE "$allowed"); do
    if ! printf '%s\n' "$defined" | grep -qx "$symbol"; then
        echo "not pure: calls $symbol" >&2
        failed=1
    fi
done
exit "${failed:-0}"
