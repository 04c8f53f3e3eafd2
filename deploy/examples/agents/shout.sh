#!/bin/sh
# An agent as a shell script: the exec agent runs it for each step. Standard input is the parameter `input` (or the whole
# step as JSON, as the settings say), standard output is the result, standard error goes to the log, and an exit code
# above 0 fails the step. From the root of the tree:
#   baton-agent-exec --settings deploy/examples/agents/shout.json
tr '[:lower:]' '[:upper:]'
