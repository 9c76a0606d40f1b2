#!/usr/bin/env bash
# All tests, on a fresh Debian 12: installs, builds, starts the servers that the tests need.
#   tests/run.sh                      everything but the benchmarks
#   tests/run.sh -L unit              what ctest's arguments say
#   SANITIZE=address tests/run.sh     the same, instrumented (address | undefined | thread)
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/install.sh test
sanitize=${SANITIZE:-}
build=${HOTLANE_BUILD:-$PWD/build${sanitize:+-$sanitize}}
export HOTLANE_BUILD=$build
cmake -S . -B "$build" -G Ninja -DHOTLANE_SANITIZE="$sanitize" >"$build.configure.log" 2>&1 ||
    { cat "$build.configure.log"; exit 1; }
rm -f "$build.configure.log"
cmake --build "$build"

arguments=("$@")
[ ${#arguments[@]} -gt 0 ] || arguments=(-LE bench)
exec ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "${arguments[@]}"
