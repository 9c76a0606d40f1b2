#!/usr/bin/env bash
# PostgreSQL's own regression and isolation schedules, and libpq's pipeline program, directly and through hotlane
# in session mode. Their sources come from Debian; nothing of them is kept in this tree.
#   tests/integration/postgres_suites.sh [regress] [isolation] [pipeline]      all without words
# Server, psql and tests are of one minor release: the newest whose source package can be had. Exit 77: skipped,
# with the reason. Needs deb-src, a compiler and about 300 MB under HOTLANE_SUITES (default: build/postgres-suites).
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
export HOTLANE_BUILD=${HOTLANE_BUILD:-$here/build}
work=${HOTLANE_SUITES:-$HOTLANE_BUILD/postgres-suites}
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(regress isolation pipeline)
skip() { echo "skipped: $*"; exit 77; }
[ -x "$HOTLANE_BUILD/tests/integration/net-harness" ] || skip "net-harness is not built"

# ---- sources and binaries of one minor release ----
mkdir -p "$work"/{lists/partial,cache/archives/partial}
sources=$work/sources.list
# The sources of what this machine has its packages from.
apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Component: main' 'Origin: Debian' | sort -u >"$sources"
[ -s "$sources" ] || skip "apt knows no Debian repository"
own=(-o "Dir::Etc::sourcelist=$sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists"
    -o "Dir::Cache=$work/cache")
if [ ! -f "$work/version" ]; then
    apt-get "${own[@]}" update >"$work/apt.log" 2>&1 || skip "no deb-src can be reached (see $work/apt.log)"
    version=
    for candidate in $(apt-cache madison postgresql-15 | awk '{print $3}' | sort -Vru); do
        (cd "$work" && apt-get "${own[@]}" source --download-only "postgresql-15=$candidate" >>apt.log 2>&1 &&
            apt-get download "postgresql-15=$candidate" "postgresql-client-15=$candidate" >>apt.log 2>&1) || continue
        version=$candidate
        break
    done
    [ -n "$version" ] || skip "no release has both its source and its binaries (see $work/apt.log)"
    (cd "$work" && for deb in postgresql-15_* postgresql-client-15_*; do
        case $deb in *.deb) dpkg -x "$deb" unpacked ;; esac
    done && mkdir -p src && tar -xjf postgresql-15_*.orig.tar.bz2 -C src --strip-components 1)
    echo "$version" >"$work/version"
fi
version=$(cat "$work/version")
echo "PostgreSQL $version"
bin=$work/unpacked/usr/lib/postgresql/15/bin
src=$work/src
pgxs=$work/unpacked/usr/lib/postgresql/15/lib/pgxs

# regress.so, refint.so, autoinc.so and the isolation specs come from the source; only the libraries are built.
if [ ! -f "$work/lib/regress.so" ]; then
    mkdir -p "$work/lib"
    (cd "$work" && apt-get download "postgresql-server-dev-15=$version" >>apt.log 2>&1) ||
        skip "no server headers of $version"
    dpkg -x "$work"/postgresql-server-dev-15_*.deb "$work/unpacked"
    headers=$work/unpacked/usr/include/postgresql/15/server
    for file in src/test/regress/regress contrib/spi/refint contrib/spi/autoinc; do
        gcc -shared -fPIC -O1 -w -DREFINT_VERBOSE -I "$headers" -I "$headers/internal" -I /usr/include/postgresql \
            -I "$src/src/test/regress" "$src/$file.c" -o "$work/lib/$(basename "$file").so" ||
            skip "regress.so cannot be built"
    done
fi
[ -x "$work/lib/libpq_pipeline" ] ||
    gcc -O1 -w -I /usr/include/postgresql -I /usr/include/postgresql/internal \
        -I "$work/unpacked/usr/include/postgresql/15/server" "$src/src/test/modules/libpq_pipeline/libpq_pipeline.c" \
        -o "$work/lib/libpq_pipeline" -L "$work/unpacked/usr/lib/postgresql/15/lib" -lpq -lpgcommon -lpgport || echo "libpq_pipeline cannot be built: left out"
chmod -R a+rX "$work"
exec /usr/bin/env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here/tests/support" PG_BIN="$bin" /usr/bin/python3 \
    "$here/tests/integration/postgres_suites.py" --source "$src" --libraries "$work/lib" --pgxs "$pgxs" "${suites[@]}"
