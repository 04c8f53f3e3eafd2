#!/bin/sh
# A form: asks a person for the values of a journey. With `output: reply` a program prints the outcome of its step: here
# that it needs input which fits a schema. What the person gives is merged into the parameters of the next attempt; the step
# is on standard input as JSON.
set -eu
step=$(cat)
value() { # of a number among the parameters; empty when it is not there
    printf %s "$step" | sed -n 's/.*"parameters":{[^}]*"'"$1"'":\([0-9.]*\).*/\1/p'
}

kilometres=$(value kilometres) nights=$(value nights) meals=$(value meals)
if [ -z "$kilometres" ] || [ -z "$nights" ] || [ -z "$meals" ]; then
    cat <<'REPLY'
{"outcome": "needs_input",
 "need": {"kind": "form", "prompt": "How far was the journey, how many nights did it take, and what did you spend on meals?",
  "schema": {"type": "object", "required": ["kilometres", "nights", "meals"], "additionalProperties": false, "properties": {
    "kilometres": {"type": "integer", "minimum": 1, "maximum": 5000},
    "nights": {"type": "integer", "minimum": 0, "maximum": 60},
    "meals": {"type": "number", "minimum": 0}}}}}
REPLY
else
    echo "{\"outcome\": \"completed\", \"result\": {\"data\": {\"kilometres\": $kilometres, \"nights\": $nights, \"meals\": $meals}}}"
fi
