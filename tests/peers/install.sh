#!/bin/sh
# Installs the servers of language models that tests talk to, from npm, into a build directory; nothing when they are there.
# usage: install.sh DIR        exit codes: 0 they are there; 77 they cannot be had here (said why): their tests skip
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: install.sh DIR}

lock=$(sha256sum "$here/package-lock.json" | cut -d' ' -f1)
if [ "$(cat "$dir/installed" 2>/dev/null || true)" = "$lock" ]; then
    exit 0
fi
skip() {
    echo "SKIPPED: no models from npm for the tests: $*" >&2
    exit 77
}
command -v node >/dev/null || skip "there is no node"
command -v npm >/dev/null || skip "there is no npm"

mkdir -p "$dir"
rm -rf "$dir/installed" "$dir/node_modules"
cp "$here/package.json" "$here/package-lock.json" "$dir/"
# Without optional packages: they are the same engine for other machines and graphics cards, 300 MB of them. No package
# here needs a script of its own to be run.
if ! (cd "$dir" && timeout 180 npm ci --ignore-scripts --omit=optional --no-audit --no-fund --fetch-retries=1) \
    >"$dir/npm.log" 2>&1 </dev/null; then
    tail -n 5 "$dir/npm.log" >&2
    skip "npm ci failed (all of it: $dir/npm.log)"
fi
echo "$lock" >"$dir/installed"
