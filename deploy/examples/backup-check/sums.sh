#!/bin/sh
# sums.sh DIR prints a line of CSV for each file below DIR: its path, its size, its SHA-256.
set -eu
cd "$1"
echo "path,bytes,sha256"
find . -type f | LC_ALL=C sort | while IFS= read -r file; do
    sum=$(sha256sum <"$file")
    printf '"%s",%s,%s\n' "$(printf '%s' "${file#./}" | sed 's/"/""/g')" "$(wc -c <"$file")" "${sum%% *}"
done
