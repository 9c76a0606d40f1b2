#!/usr/bin/env bash
# What a fleet of many sidecars costs its store, and how soon all know of a change.
#   tests/bench/fleet.sh [CLIENTS [TOOLS [SECONDS]]]      default 500 2000 30
set -euo pipefail
cd "$(dirname "$0")/../.."
export HOTLANE_BUILD=${HOTLANE_BUILD:-$PWD/build}
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/tests/support
if [ ! -x "$HOTLANE_BUILD/tests/bench/bench-fleet-store" ]; then
    cmake -S . -B "$HOTLANE_BUILD" -G Ninja >/dev/null
    cmake --build "$HOTLANE_BUILD" --target bench-fleet-store >&2
fi
exec /usr/bin/python3 tests/bench/fleet_store.py "$@"
