#!/bin/sh
# No test is forgotten: each tests/**/test_*.c is compiled, each tests/e2e/test_*.py is a test of ctest,
# and no CMakeLists.txt asks whether a file exists (a test that was renamed would vanish in silence).
# usage: registered.sh ROOT BUILD_DIR
set -eu
cd "$1"
build=$2
[ -f "$build/compile_commands.json" ] || {
    echo "no compile_commands.json in $build: configure with a preset"
    exit 1
}
bad=0
complain() {
    echo "$*"
    bad=1
}

for source in $(find tests -name 'test_*.c' | sort); do
    grep -qF "/$source\"" "$build/compile_commands.json" || complain "$source: no target compiles it"
done
for script in $(find tests/e2e -name 'test_*.py' | sort); do
    grep -qF "/$script\"" "$build/tests/e2e/CTestTestfile.cmake" || complain "$script: ctest does not run it"
done
asks=$(find . -path ./build -prune -o \( -name CMakeLists.txt -o -name '*.cmake' \) -exec grep -nE 'if\(.*EXISTS|file\(GLOB' {} +) &&
    complain "a list of files is written out, so that a missing one is an error:
$asks"
exit $bad
