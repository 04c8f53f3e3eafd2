#!/bin/sh
# Installs the Debian packages that are missing, and nothing when none is. sudo only where it is needed.
# usage: install.sh build|package|test|full
#   build     to build and run Baton        test   and its everyday tests
#   package   and to make packages of it    full   and ThreadSanitizer, fuzzing (clang), packages in a chroot, other shells and kernels
set -eu

packages="gcc libc6-dev cmake ninja-build pkg-config
    libnng-dev libmsgpack-dev libcjson-dev libyaml-dev libsqlite3-dev libpcre2-dev libcurl4-openssl-dev libstemmer-dev libmbedtls-dev nettle-dev libmicrohttpd-dev
    libcmark-gfm-dev libcmark-gfm-extensions-dev libnats-dev lowdown tzdata libpq-dev"
tests="libcmocka-dev nats-server postgresql-15 python3 python3-jsonschema binutils json-schema-test-suite nng-utils nanomsg-utils perl libnanomsg-raw-perl openssl systemd abigail-tools mandoc iproute2 util-linux curl chromium mold ccache"
# For the models that tests talk to. Who has npm has node, too, and perhaps not from Debian, whose packages would not go with it.
command -v npm >/dev/null || tests="$tests nodejs npm"
clang="clang libclang-rt-14-dev clang-format llvm"
counts="valgrind" # of instructions

package="dpkg-dev file binutils python3"
chroot="debootstrap lintian mount util-linux git"
shells="fish zsh tmux" # their completion, and what is drawn on a terminal
kernel=$([ "$(uname -m)" = x86_64 ] && echo user-mode-linux || true) # one whose cgroups are the tests' own

case ${1:-build} in
build) ;;
package) packages="$packages $package" ;;
test) packages="$packages $tests" ;;
full) packages="$packages $package $tests $clang $counts $chroot $shells $kernel" ;;
*)
    echo "usage: install.sh build|package|test|full" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null; then
    echo "install.sh: no apt-get here; these Debian packages (or their like) must be there:" $packages >&2
    exit 0
fi

missing=
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    case $state in
    installed*) ;;
    *) missing="$missing $package" ;;
    esac
done
if [ -z "$missing" ]; then
    exit 0
fi

echo "installing:$missing" >&2
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install.sh: not root and no sudo; as root, run: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# Lists that are a little old may still do; what is really missing is said by install.
$as_root apt-get -q update >&2 </dev/null || echo "install.sh: apt-get update failed; trying with the lists as they are" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install $missing >&2 </dev/null
