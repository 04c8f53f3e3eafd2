#!/bin/sh
# Makes baton-VERSION.tar.gz of the commit HEAD, and baton-VERSION.spdx.json: what is in it, and what it is built with (SPDX
# 2.3). The tarball has that file too. One commit gives the same bytes each time.
# usage: tarball.sh [DIRECTORY]      default: build/tarball
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd -P)
out=${1:-$root/build/tarball}
version=$(sed -n 's/^project(baton VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
day=$(git -C "$root" show -s --format=%ct HEAD)
name=baton-$version

mkdir -p "$out"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git -C "$root" archive --prefix="$name/" HEAD | tar -x -C "$dir"
python3 -B "$root/deploy/packages/sbom.py" "$dir/$name" "$version" "$day" >"$out/$name.spdx.json"
cp "$out/$name.spdx.json" "$dir/$name/sbom.spdx.json"
tar -C "$dir" --sort=name --mtime="@$day" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf "$dir/$name.tar" "$name"
gzip -9nc "$dir/$name.tar" >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"
