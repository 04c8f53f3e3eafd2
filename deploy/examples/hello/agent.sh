#!/bin/sh
# An agent as a shell script: the exec agent runs it for each step. What it prints is the result; an exit code above 0
# fails the step, and the last line on standard error says why.
set -eu
case $1 in
greet)
    [ -n "$2" ] || { echo "there is nobody to greet; give a name" >&2; exit 1; }
    echo "Hello, $2!"
    ;;
shout) tr '[:lower:]' '[:upper:]' ;;
esac
