#!/bin/sh
# specialist.sh NAME ANSWER: answers, and says why the mail came here.
set -eu
why=$(sed -n 's/.*"feedback":"\([^"]*\)".*/\1/p')
echo "$2 ($1 took over: ${why:-asked directly})"
