#!/usr/bin/env bash
# What hotlane costs, beside what others cost, interleaved in one run on this machine.
#   tests/bench/run.sh --quick        under four minutes
#   tests/bench/run.sh                longer runs, COPY of 1 GiB
#   tests/bench/run.sh --out FILE     the report into a file, too
# Builds hotlane if it is not built; `deploy/install.sh bench` installs what is compared with.
set -euo pipefail
cd "$(dirname "$0")/../.."
export HOTLANE_BUILD=${HOTLANE_BUILD:-$PWD/build}
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/tests/support:$PWD/tests/bench
if [ ! -x "$HOTLANE_BUILD/tests/bench/bench-relay" ] || [ ! -x "$HOTLANE_BUILD/router/app/hotlane" ]; then
    cmake -S . -B "$HOTLANE_BUILD" -G Ninja >/dev/null
    cmake --build "$HOTLANE_BUILD" --target hotlane hotlane-devengine bench-relay >&2
fi
exec /usr/bin/python3 tests/bench/bench.py "$@"
