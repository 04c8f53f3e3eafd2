#!/bin/sh
# The shared libraries export what their headers declare, with a version, and nothing else; and programs that were built
# against the last release go on working: abidiff against deploy/abi/*.abi finds nothing removed and nothing changed.
# usage: abi.sh ROOT BUILD_DIR [--write]      --write makes the .abi files from this build: with a release, or a new SONAME
set -eu
root=$1
build=$2
write=${3:-}
if ! command -v abidiff >/dev/null; then
    echo "SKIPPED: abidiff is not there; install the package abigail-tools"
    exit 77
fi
bad=0
complain() {
    echo "$*"
    bad=1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() { # NAME NODE HEADER...
    name=$1
    node=$2
    shift 2
    library=$build/install/lib$name.so.0
    map=deploy/abi/lib$name.map
    reference=$root/deploy/abi/lib$name.abi
    [ -f "$library" ] || {
        complain "$library is missing; build first"
        return
    }
    (cd "$root" && cat "$@") | tr '\n' ' ' | grep -o 'BT_API [^(;]*(' | sed -n 's/.*\(bt_[a-z0-9_]*\)($/\1/p' | sort >"$dir/declared"
    sed -n 's/^    \(bt_[a-z0-9_]*\);$/\1/p' "$root/$map" | sort >"$dir/mapped"
    nm -D --defined-only "$library" | sed -n "s/.* [A-Z] \([^@]*\)@@$node\$/\1/p" | sort >"$dir/exported"
    nm -D --defined-only "$library" | grep -v "@@$node\$" | grep -v " A $node\$" >"$dir/others" && complain "$library exports more: $(cat "$dir/others")"
    for symbol in $(comm -23 "$dir/declared" "$dir/mapped"); do
        complain "$map lacks $symbol, which a header declares"
    done
    for symbol in $(comm -13 "$dir/declared" "$dir/mapped"); do
        complain "$map has $symbol, which no header declares"
    done
    for symbol in $(comm -23 "$dir/mapped" "$dir/exported"); do
        complain "$library lacks $symbol of $map"
    done
    if [ -n "$write" ]; then
        abidw --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs --drop-private-types --no-elf-needed \
            --headers-dir "$root/protocol" --headers-dir "$root/agents/sdk/include" --out-file "$reference" "$library"
    fi
    abidiff --no-added-syms --suppressions "$root/deploy/abi/opaque.suppr" "$reference" "$library" >"$dir/said" 2>&1 || {
        cat "$dir/said"
        complain "lib$name.so.0: programs that are built already would break. Keep what the release had, or raise the SONAME and run
  sh tests/lint/abi.sh . BUILD_DIR --write"
    }
}

check baton BATON_0 protocol/base/include/baton/error.h protocol/client/include/baton/client.h protocol/compat/include/baton/vocabulary.h
check baton-agent BATON_AGENT_0 protocol/base/include/baton/error.h agents/sdk/include/baton/agent.h
exit $bad
