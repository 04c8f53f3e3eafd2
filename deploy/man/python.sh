#!/bin/sh
# The page of a program in Python, in Markdown: what its first text says, then its help. Without python3 only the former.
# usage: python.sh PROGRAM
set -eu
program=$1
printf '# %s\n\n```\n' "$(basename "$program")"
awk '/^"""/ && on { exit } /^"""/ { on = 1; sub(/^"""/, "") } on' "$program"
printf '```\n'
if command -v python3 >/dev/null; then
    printf '\n## Options\n\n```\n'
    COLUMNS=90 PYTHONDONTWRITEBYTECODE=1 BATON_AGENT_ID= python3 "$program" --help
    printf '```\n'
fi
