#!/bin/sh
# The carrier: ship.sh ORDER KILOS takes at most 30 kilos.
set -eu
if [ "$2" -gt 30 ]; then
    echo "the carrier takes at most 30 kilos, and order $1 has $2" >&2
    exit 1
fi
sh book.sh "$1" shipped
