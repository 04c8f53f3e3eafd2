#!/bin/sh
# Two instances of an agent that never registers: the first one crashes, the second one ends in peace
# when there is a file "go" in the state directory. Which of them this is, its log tells.
case $(readlink "/proc/$$/fd/1") in
    *'#1.log') exit 3 ;;
esac
until [ -e "$BATON_STATE/go" ]; do
    sleep 0.05
done
