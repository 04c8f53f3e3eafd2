#!/bin/sh
# Prints the cards of the bundled agents, one a line, as cards.json has them.
# usage: cards.sh BIN [FILE]     with FILE: fails when it is not the same
set -eu
bin=$1
cards() {
    for agent in files sql calc; do
        BATON_AGENT_ID=$agent
        case $agent in
        files) BATON_SETTINGS='{"roots": ["/tmp"]}' ;;
        sql) BATON_SETTINGS='{"databaseDir": "/tmp", "readOnly": false}' ;;
        calc) BATON_SETTINGS='{}' ;;
        esac
        export BATON_AGENT_ID BATON_SETTINGS
        "$bin/baton-agent-$agent" --card | tr -d '\n'
        echo
    done
    export BATON_AGENT_ID=orchestrator
    export BATON_SETTINGS='{"providers": [{"api": "openai", "model": "m", "baseUrl": "http://127.0.0.1:1/v1"}]}'
    "$bin/baton-agent-llm" --card | tr -d '\n'
    echo
    export BATON_AGENT_ID=plain # as deploy/examples/tour.yaml has it
    export BATON_SETTINGS='{"commands": [
        {"id": "checksum", "argv": ["sha256sum"], "description": "Computes the checksum of a text.", "stdin": "text", "effects": "none"},
        {"id": "say", "argv": ["echo", "{text}"], "description": "Says a text.", "effects": "none"}]}'
    "$bin/baton-agent-exec" --card | tr -d '\n'
    echo
}
if [ $# -gt 1 ]; then
    cards | diff "$2" - || {
        echo "the cards have changed: sh tests/unit/keyword/cards.sh $bin >$2"
        exit 1
    }
else
    cards
fi
