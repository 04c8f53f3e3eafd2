#!/bin/sh
# book.sh DAY TOTAL enters the total of a day into book.csv, once for each key.
set -eu
[ -e book.csv ] || echo "day,total,key" >book.csv
if ! grep -qF ",$BATON_KEY" book.csv; then
    echo "$1,$2,$BATON_KEY" >>book.csv
fi
echo "entered"
