#!/bin/sh
# The partner runs beside its agent here, so that the example is whole; elsewhere `url` is all that is needed.
cd "$(dirname "$0")" || exit 1
rm -f port
python3 partner.py port &
for _ in $(seq 200); do
    [ -s port ] && break
    sleep 0.05
done
printf '{"agentId": "partner", "url": "http://127.0.0.1:%s", "allowPrivate": ["127.0.0.1"], "effects": {"spell": "none"}, "timeoutMs": 30000}\n' \
    "$(cat port)" >settings.json
exec "$1" --settings settings.json
