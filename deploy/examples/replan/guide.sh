#!/bin/sh
# A planner as a shell script. Standard input is the question as JSON; its parameters have {goal, stepId, error, completed,
# failed, agents}. It prints the rest of the plan: `reuse` names results that stay. Exit code 1 = there is no other way.
set -eu
question=$(cat)
case $question in
*prices-wholesale.csv*) ;;
*)
    echo "only the list of the wholesaler has another way" >&2
    exit 1
    ;;
esac
cat <<'PLAN'
{"reasoning": "the wholesaler's list is not there; the shop nearby has one",
 "reuse": ["recipe"],
 "steps": [
  {"stepId": "nearby", "agentId": "files", "skill": "csv", "task": "Read the prices of the shop nearby",
   "parameters": {"path": "prices-nearby.csv"}, "dependsOn": []},
  {"stepId": "load-nearby", "agentId": "sql", "skill": "load", "task": "Load the prices of the shop nearby",
   "parameters": {"database": "kitchen", "table": "prices", "replace": true, "rows": "{{results.nearby}}"}, "dependsOn": ["nearby"]},
  {"stepId": "load-recipe", "agentId": "sql", "skill": "load", "task": "Load the recipe into a table",
   "parameters": {"database": "kitchen", "table": "recipe", "replace": true, "rows": "{{results.recipe}}"}, "dependsOn": ["recipe"]},
  {"stepId": "cost", "agentId": "sql", "skill": "query", "task": "Work out what the cake costs there",
   "parameters": {"database": "kitchen", "sql": "SELECT printf('%.2f', sum(r.amount * p.price)) AS cost, count(*) AS items FROM recipe r JOIN prices p USING (item)"},
   "dependsOn": ["load-nearby", "load-recipe"]}]}
PLAN
