#!/bin/sh
# Makes the name of a file out of a title: slug.sh "My first post" prints my-first-post
# Runs of other characters become one dash, and none is left at either end.
printf '%s\n' "$1" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' '-' |
    sed -e 's/^-//' -e 's/-$//'
