#!/bin/sh
# A planner that remembers: it gets the messages of the session with each goal, and makes a plan of what was said so far.
# "spent 12.50 on books" and "how much on books" are what it understands; anything else is no plan (exit code 1).
set -eu
question=$(tr '\n' ' ')
goal=$(printf %s "$question" | sed 's/.*"parameters":{"goal":"\([^"]*\)".*/\1/')
said=$(printf %s "$question" | sed 's/.*"session":{\(.*\)}},"context":.*/\1/' |
    grep -o '"role":"user","text":"spent [0-9.]* on [a-z]*"' | sed 's/.*"spent \([0-9.]*\) on \([a-z]*\)"/\1 \2/' || true)

case $goal in
spent\ [0-9]*\ on\ *) what=everything ;;
how\ much\ on\ *) what=$(printf %s "$goal" | sed 's/how much on \([a-z]*\).*/\1/') ;;
how\ much*) what=everything ;;
*)
    echo "say: spent 12.50 on books; how much on books; how much in all" >&2
    exit 1
    ;;
esac
sum=$(printf '%s\n' "$said" | awk -v what="$what" '$2 != "" && (what == "everything" || $2 == what) { sum = sum " + " $1 } END { print "0" sum }')
cat <<PLAN
{"steps": [{"stepId": "sum", "agentId": "calc", "skill": "evaluate", "task": "Add up what was spent on $what",
            "parameters": {"expression": "$sum"}, "dependsOn": []}]}
PLAN
