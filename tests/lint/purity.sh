#!/bin/sh
# A pure room may call nothing but a few string functions and its own kind.
# usage: purity.sh ALLOWED_REGEX OBJECT...
set -eu
allowed=$1
shift
defined=$(nm --defined-only "$@" | awk 'NF == 3 {print $3}' | sort -u)
bad=$(nm -u "$@" | awk '$1 == "U" {print $2}' | sort -u | grep -vxE "$allowed" |
    grep -vE '^(uuid_|str_|blob_|heap_|list_|registry_|plan_|run_|core_|card_|instance_|health_|select_|lease_|err_class_|map_|utf8_)' || true)
for symbol in $bad; do
    if ! printf '%s\n' "$defined" | grep -qx "$symbol"; then
        echo "not pure: calls $symbol" >&2
        failed=1
    fi
done
exit "${failed:-0}"
