#!/bin/sh
# primes.sh UP_TO counts the primes below UP_TO in a hundred parts, and reports each part as progress.
# While it works, its notes are in work/; it removes them when it ends, also when it is cancelled.
set -eu
mkdir -p work
notes=$(mktemp work/primes.XXXXXX)
trap 'rm -f "$notes"' EXIT
trap 'exit 143' TERM INT

echo "started $BATON_KEY attempt $BATON_ATTEMPT" >>log.txt
part=0
while [ "$part" -lt 100 ]; do
    awk -v from=$(($1 * part / 100)) -v to=$(($1 * (part + 1) / 100)) 'BEGIN {
        for (n = from < 2 ? 2 : from; n < to; n++) {
            prime = 1
            for (d = 2; d * d <= n; d++) {
                if (n % d == 0) { prime = 0; break }
            }
            count += prime
        }
        print count + 0
    }' >>"$notes"
    part=$((part + 1))
    echo "::progress $part $(($1 * part / 100)) of $1" >&2
done
awk -v upTo="$1" '{ count += $1 } END { printf "{\"upTo\": %d, \"primes\": %d}\n", upTo, count }' "$notes"
