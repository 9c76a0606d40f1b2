#!/usr/bin/env bash
# The main job, end to end, on this machine: a private PostgreSQL, the development engine with three
# tools, hotlane, and writers with a ledger. Installs and builds what it needs on a fresh Debian 12.
#   deploy/demo.sh           about three minutes after the build; exit status 0 only if every ledger matches
#   deploy/demo.sh --keep    leaves it running and prints the addresses; Ctrl-C ends it
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/install.sh demo
build=${HOTLANE_BUILD:-$PWD/build}
export HOTLANE_BUILD=$build
cmake -S . -B "$build" -G Ninja >"${TMPDIR:-/tmp}/hotlane-configure.$$" 2>&1 ||
    { cat "${TMPDIR:-/tmp}/hotlane-configure.$$"; exit 1; }
rm -f "${TMPDIR:-/tmp}/hotlane-configure.$$"
cmake --build "$build" --target hotlane hotlane-devengine
exec /usr/bin/python3 -B deploy/demo.py "$@"
