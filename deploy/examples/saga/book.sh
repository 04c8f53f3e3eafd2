#!/bin/sh
# The ledger: book.sh ORDER WHAT writes a line into ledger.csv, unless it is there.
set -eu
[ -e ledger.csv ] || echo "order,what" >ledger.csv
grep -qxF "$1,$2" ledger.csv || echo "$1,$2" >>ledger.csv
echo "$1: $2"
