#!/bin/sh
# Makes the name of a file out of a title: slug.sh "My first post" prints my-first-post
printf '%s\n' "$1" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9\n' '-'
