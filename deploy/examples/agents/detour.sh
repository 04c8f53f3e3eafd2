#!/bin/sh
# A planner as a shell script: the exec agent runs it when a plan asks for a new one. Standard input is the step as JSON, its
# parameters are what there is to know: {goal, stepId, error, completed, failed, agents, history}. The answer is a plan:
# `reuse` names the steps whose results stay, `steps` are the new ones. Exit code 1 = there is no other way.
set -eu
question=$(cat)
case $question in
*'/var/log/dpkg.log.lost'*) ;;
*)
    echo "only the lost log has another way" >&2
    exit 1
    ;;
esac
cat <<'PLAN'
{
  "reasoning": "the log was rotated away; its successor is there",
  "reuse": ["today"],
  "steps": [
    {"stepId": "found", "agentId": "files", "skill": "grep", "task": "Count the installs in the log that is there",
     "parameters": {"path": "/var/log/dpkg.log", "pattern": " install ", "limit": 1}, "dependsOn": []},
    {"stepId": "sum", "agentId": "calc", "skill": "evaluate", "task": "Say how many there were",
     "parameters": {"expression": "{{results.found.count}} + 0"}, "dependsOn": ["today", "found"]}
  ]
}
PLAN
