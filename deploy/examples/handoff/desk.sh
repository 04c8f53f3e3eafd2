#!/bin/sh
# The first line of the office: desk.sh TEXT answers what it knows, and hands the rest to those who know. Who takes a step
# over reads why in `feedback` of the step, which is on standard input as JSON.
set -eu
text=$(printf %s "$1" | tr '[:upper:]' '[:lower:]')
case $text in
*open*sunday*) echo '{"outcome": "completed", "result": {"text": "On Sunday we are open from 8 to 12."}}' ;;
*invoice*) echo '{"outcome": "handoff", "handoff": {"toAgentId": "billing", "reason": "it is about an invoice"}}' ;;
*error*) echo '{"outcome": "handoff", "handoff": {"toAgentId": "technics", "reason": "something in the shop is broken"}}' ;;
*) echo '{"outcome": "failed", "failure": {"class": "RESOURCE_NOT_FOUND", "message": "nobody here knows; ask a person"}}' ;;
esac
