#!/bin/sh
# The shop: shop.sh ORDER WHAT writes a line into orders.csv, unless it is there.
set -eu
[ -e orders.csv ] || echo "order,what" >orders.csv
grep -qxF "$1,$2" orders.csv || echo "$1,$2" >>orders.csv
echo "order $1: $2"
