#!/bin/sh
# Makes the page of an agent: man(7) on stdout. The parts: "What" of its README (its settings), its skills from its
# card, its options from its help.
# usage: agent.sh BIN_DIR AGENT DATE README.md
set -eu
bin=$1 agent=$2 date=$3 readme=$4
program=baton-agent-$agent
here=$(dirname "$0")
text=$(mktemp)
trap 'rm -f "$text"' EXIT

# An agent reads its settings before it prints its card.
case $agent in
files) settings='{"roots": ["/"]}' ;;
sql) settings='{"databaseDir": "/tmp", "readOnly": false}' ;;
llm) settings='{"providers": [{"api": "openai", "model": "m", "baseUrl": "http://127.0.0.1:1/v1"}]}' ;;
http) settings='{"baseUrl": "https://127.0.0.1", "actions": [{"id": "x", "path": "/", "description": "x"}]}' ;;
rag) settings='{"folder": "/", "database": "/tmp/baton-manual.db"}' ;;
graph) settings='{"database": "/tmp/baton-manual.db"}' ;;
exec) settings='{"commands": [{"id": "x", "argv": ["true"], "description": "x"}]}' ;;
*) settings='{}' ;;
esac

brief=$(sed -n '1s/^# [^:]*: //p' "$readme")
{
    echo "# $program"
    echo
    awk '/^## / { on = $0 == "## What"; next } on' "$readme"
    if [ "$agent" != exec ] && [ "$agent" != http ] && [ "$agent" != mcp ] && [ "$agent" != a2a ]; then # their skills are those of the settings
        BATON_AGENT_ID=$agent BATON_SETTINGS=$settings "$bin/$program" --card | "$bin/baton_card"
    fi
    printf '\n## Options\n\n```\n'
    BATON_AGENT_ID=$agent BATON_SETTINGS=$settings "$bin/$program" --help | sed '1,/^Options:/d'
    printf '```\n'
} >"$text"
sh "$here/page.sh" "$program" 1 "$date" "$brief" "baton(1), baton-plan(5), baton.yaml(5), baton-protocol(7), batond(8)" "$text"
