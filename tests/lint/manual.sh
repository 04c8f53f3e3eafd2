#!/bin/sh
# The pages of the manual that a build has made: there is one for each verb, agent, format and protocol, and mandoc finds
# no mistake. Pages that are made of Markdown may have long lines; those of the verbs may not.
# usage: manual.sh MAN_DIR BATON
set -eu
man=$1 baton=$2
if ! command -v mandoc >/dev/null; then
    echo "mandoc is missing"
    exit 77
fi
failed=0
missing() {
    echo "$1: the page is missing"
    failed=1
}
for verb in $("$baton" help --json | tr '{' '\n' | sed -n 's/^"name":"\([a-z]*\)".*"summary":.*/\1/p'); do
    [ -s "$man/verbs/baton-$verb.1" ] || missing "baton-$verb(1)"
    verbs=1
done
[ -n "${verbs-}" ] || missing "baton help --json has no verbs; so each verb's"
gateway=$([ ! -x "$(dirname "$baton")/baton-gateway" ] || echo baton-gateway.8)
bridge=$([ ! -x "$(dirname "$baton")/baton-bridge-nats" ] || echo baton-bridge-nats.8)
for agent in "$(dirname "$0")"/../../agents/*/main.c; do
    agent=$(basename "$(dirname "$agent")")
    [ -s "$man/baton-agent-$agent.1" ] || missing "baton-agent-$agent(1)"
done
for page in baton-agent-check.1 baton-agent-faulty.1 baton-plan.5 \
    baton.yaml.5 baton-events.7 baton-messages.7 baton-protocol.7 batond.8 $gateway $bridge; do
    [ -s "$man/$page" ] || missing "$page"
done
# Markdown has other uses for _ and ^: a name in the source is the same name in the page.
names() {
    sed 's/\\f[A-Z]//g; s/\\(ha/^/g' "$1" | grep -o '[A-Za-z0-9]\{1,\}[_^][A-Za-z0-9_^]\{1,\}' | sort -u
}
protocol=$(dirname "$0")/../../protocol
for pair in PLANS:baton-plan.5 EVENTS:baton-events.7 MESSAGES:baton-messages.7 WIRE:baton-protocol.7; do
    names "$man/${pair#*:}" >"$man/names"
    lost=$(names "$protocol/${pair%:*}.md" | grep -vxFf "$man/names" || true)
    [ -z "$lost" ] || { echo "${pair#*:} has lost: $lost" && failed=1; }
done
rm -f "$man/names"
mistakes=$({
    mandoc -T lint -W style "$man"/verbs/*.1 || true
    mandoc -T lint -W warning "$man"/*.[1578] || true
} | sed '/referenced manual not found/d')
if [ -n "$mistakes" ]; then
    echo "$mistakes"
    failed=1
fi
exit "$failed"
