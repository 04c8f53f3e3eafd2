#!/bin/sh
# usage: slow.sh LOG NAME SECONDS: writes NAME to LOG (one execution), takes its time, says so.
echo "$2" >>"$1"
sleep "$3"
echo "done $2"
