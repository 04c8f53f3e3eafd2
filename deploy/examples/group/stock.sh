#!/bin/sh
# The programs of the three agents: load, count KIND, weigh KIND.
set -eu
case $1 in
load) sort goods.txt | tee stock.txt | wc -l | tr -d ' ' ;;
count) grep -c "^$2 " stock.txt ;;
weigh) awk -v kind="$2" '$1 == kind { sum += $2 } END { print sum + 0 }' goods.txt ;;
esac
