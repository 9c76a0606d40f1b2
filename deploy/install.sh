#!/usr/bin/env bash
# Installs what building and running hotlane needs, by name, from Debian 12.
#   deploy/install.sh build        to build
#   deploy/install.sh demo         and to run deploy/demo.sh
#   deploy/install.sh test         and to run tests/run.sh
#   deploy/install.sh bench        and what tests/bench/run.sh compares hotlane with
# Does nothing when all is there. Needs root (or sudo) only when something is missing.
set -euo pipefail

build=(g++ cmake ninja-build ccache pkg-config libboost1.81-dev libpq-dev libyaml-cpp-dev
    prometheus-cpp-dev catch2 librapidcheck-dev libpg-query-dev libprotobuf-c-dev libssl-dev
    libsqlite3-dev libcli11-dev libspdlog-dev libfmt-dev libexpected-dev nlohmann-json3-dev libidn-dev)
demo=("${build[@]}" postgresql-15 postgresql-client-15 python3 python3-psycopg util-linux psmisc)
test=("${demo[@]}" python3-pytest python3-psycopg2 python3-asyncpg python3-yaml prometheus
    prometheus-alertmanager openjdk-17-jdk-headless libpostgresql-jdbc-java)
# Debian's, unless another node.js with its npm is there already.
command -v node >/dev/null && command -v npm >/dev/null || test+=(nodejs npm)
bench=("${demo[@]}" pgbouncer haproxy)

case "${1:-build}" in
    build) wanted=("${build[@]}") ;;
    demo) wanted=("${demo[@]}") ;;
    test) wanted=("${test[@]}") ;;
    bench) wanted=("${bench[@]}") ;;
    *) echo "usage: deploy/install.sh build|demo|test|bench" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing+=("$package")
done

# Packages of npm that the tests drive hotlane with. Without them one test is skipped, and says so.
install_node_packages() {
    local folder
    folder=$(dirname "$0")/../tests/integration/drivers
    [ -d "$folder/node_modules/pg" ] || (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund >&2) ||
        echo "the npm packages of tests/integration/drivers could not be installed" >&2
}

if [ ${#missing[@]} -eq 0 ]; then
    [ "${1:-build}" != test ] || install_node_packages
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "not installed: ${missing[*]}; run as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
# libboost1.81-dev replaces an older libboost-dev; nothing else is removed.
# Installed services are not started: the servers that hotlane's scripts need are private ones.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
[ "${1:-build}" != test ] || install_node_packages
