#!/bin/sh
# No test is forgotten: each tests/**/test_*.c is compiled, each test_*.py of tests/e2e and tests/package is a test of
# ctest, no CMakeLists.txt asks whether a file exists (a test that was renamed would vanish in silence), and deploy/install.sh
# has every package without which a test is skipped ("SKIPPED: ... install the package NAME").
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
for script in $(find tests/e2e tests/package -name 'test_*.py' | sort); do
    grep -qF "/$script\"" "$build/$(dirname "$script")/CTestTestfile.cmake" || complain "$script: ctest does not run it"
done
asks=$(find . -path ./build -prune -o \( -name CMakeLists.txt -o -name '*.cmake' \) -exec grep -nE 'if\(.*EXISTS|file\(GLOB' {} +) &&
    complain "a list of files is written out, so that a missing one is an error:
$asks"
for package in $(find tests -type f -exec grep -hoE 'SKIPPED: .*install the package [a-z0-9.+-]+' {} + | sed 's/.* //' | sort -u); do
    grep -qE "^tests=.*[\" ]$package[\" ]" deploy/install.sh ||
        complain "deploy/install.sh test lacks $package, without which a test is skipped"
done
exit $bad
