#!/bin/sh
# Each room says what it is: a folder with sources has a README.md of at most 120 lines. Tests share tests/README.md.
# usage: readme.sh ROOT
set -eu
cd "$1"
[ -f protocol/messages.def ] # or this is not the root, and nothing would be checked
bad=0
folders=$(find protocol registry supervisor agents -name '*.[ch]' ! -path '*/include/*' -exec dirname {} \; | sort -u)
for folder in . tests deploy $folders; do
    readme=$folder/README.md
    if [ ! -s "$readme" ]; then
        echo "$folder: has no README.md"
        bad=1
    elif [ "$folder" != . ] && [ "$(wc -l <"$readme")" -gt 120 ]; then
        # The top one is the front page.
        echo "$readme: $(wc -l <"$readme") lines, at most 120"
        bad=1
    fi
done
# Nothing is promised that no test shows.
[ -s tests/GUARANTEES.md ]
known=$(mktemp)
trap 'rm -f "$known"' EXIT
grep -rhoE '[a-z][a-z0-9_]+' tests --include='*.c' --include='*.py' --include=CMakeLists.txt | sort -u >"$known"
for name in $(sed -n 's/^| [GE][0-9]* |//p' tests/GUARANTEES.md | grep -o '`[a-z0-9_]*`' | tr -d '`' | sort -u); do
    if ! grep -qx "$name" "$known"; then
        echo "tests/GUARANTEES.md: there is no test $name"
        bad=1
    fi
done
exit $bad
