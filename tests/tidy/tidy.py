#!/usr/bin/env python3
"""The walls of the architecture and the rules of the page, checked on the text of the tree.

Usage: tidy.py ROOT. Prints one line for each breach (path:line: rule) and ends with 1 if there is
one. `links` below is the architecture: the link line of every folder's CMakeLists.txt must equal
it, and a folder may include the headers of what it links, directly or through another folder.
"""
import os
import re
import sys

links = {
    "policy": "tl::expected fmt::fmt",
    "config": "hotlane_policy tl::expected fmt::fmt yaml-cpp OpenSSL::Crypto",
    "metrics": "hotlane_policy hotlane_pq tl::expected fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json "
               "prometheus-cpp::core PostgreSQL::PostgreSQL",
    "router/wire": "tl::expected",
    "router/pq": "tl::expected fmt::fmt PostgreSQL::PostgreSQL",
    "router/sql": "tl::expected ${PG_QUERY_LIBRARY} ${PROTOBUF_C_LIBRARY} Threads::Threads",
    "router/session": "hotlane_wire hotlane_sql hotlane_policy tl::expected fmt::fmt "
                      "OpenSSL::Crypto ${IDN_LIBRARY}",
    "router/placement": "hotlane_policy hotlane_config hotlane_pq tl::expected fmt::fmt "
                        "nlohmann_json::nlohmann_json SQLite::SQLite3 PostgreSQL::PostgreSQL "
                        "Threads::Threads",
    "router/net": "hotlane_session hotlane_placement hotlane_config hotlane_metrics Boost::boost "
                  "OpenSSL::SSL Threads::Threads",
    "router/levers": "hotlane_sql hotlane_policy tl::expected fmt::fmt",
    "router/move": "hotlane_placement hotlane_config hotlane_policy hotlane_sql hotlane_pq "
                   "tl::expected fmt::fmt nlohmann_json::nlohmann_json PostgreSQL::PostgreSQL OpenSSL::Crypto "
                   "Threads::Threads",
    "router/admin": "tl::expected fmt::fmt nlohmann_json::nlohmann_json Boost::boost "
                    "Threads::Threads",
    "router/control": "hotlane_policy hotlane_config hotlane_metrics hotlane_placement "
                      "hotlane_move hotlane_levers hotlane_admin tl::expected fmt::fmt "
                      "nlohmann_json::nlohmann_json Threads::Threads",
    "router/app": "hotlane_options hotlane_net hotlane_control hotlane_admin hotlane_config "
                  "hotlane_metrics CLI11::CLI11 nlohmann_json::nlohmann_json",
    "tests/devengine": "hotlane_options hotlane_wire tl::expected fmt::fmt SQLite::SQLite3 "
                       "CLI11::CLI11 Threads::Threads",
}
# Which library a header belongs to. Vocabulary is seen through other folders, the rest is not.
headers = {
    "tl/": "tl::expected", "fmt/": "fmt::fmt", "yaml-cpp/": "yaml-cpp",
    "openssl/": "OpenSSL", "spdlog/": "spdlog::spdlog", "nlohmann/": "nlohmann_json",
    "prometheus/": "prometheus-cpp", "libpq": "PostgreSQL", "pg_query": "${PG_QUERY_LIBRARY}",
    "stringprep": "${IDN_LIBRARY}",
    "sqlite3": "SQLite", "boost/": "Boost", "CLI/": "CLI11", "protobuf-c": "${PROTOBUF_C_LIBRARY}",
}
vocabulary = {"tl::expected", "fmt::fmt"}
pure = {"policy", "router/wire"}              # the standard library and the vocabulary, no more
timeless = pure | {"router/sql", "router/session", "router/levers"}
world = re.compile(r"(?:system|steady|high_resolution)_clock::now|random_device|[io]?fstream\b|"
                   r"\bgetenv\(|\bfopen\(|\bgettimeofday\(|\bstd::time\(")
sleeping = re.compile(r"\bsleep_(?:for|until)\b|\bu?sleep\(|\bnanosleep\(|\btime\.sleep\(")
# A service time is slept in the engine; the helpers of the integration tests poll with a deadline, and
# so do four places that wait for another process, for sockets or for open transactions to end, on threads of their own.
may_sleep = ("tests/devengine/", "tests/support/", "router/app/act.cpp", "router/move/execute.cpp",
             "router/move/ahead.cpp", "router/net/server.cpp")
unfinished = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|//\s*st" r"ub\b|"
                        r"[Nn]ot (?:yet )?impl" r"emented")
machine = re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|tmp/bu" r"ild)\b[/-]")
include = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
code = (".cpp", ".hpp")
text = code + (".py", ".txt", ".md", ".yaml", ".yml", ".sh", ".cmake", ".toml", ".service", ".json")
lines_max, test_lines_max = 400, 600
widths = {".cpp": 100, ".hpp": 100, ".py": 120}


def folder_of(path):
    parts = path.split("/")
    for size in (2, 1):
        if "/".join(parts[:size]) in links:
            return "/".join(parts[:size])
    return None


def folder_named(target):
    return next((f for f in links if f.split("/")[-1] == target[len("hotlane_"):]), None)


def reach(folder, seen=None):
    """The folders whose headers this one may include, itself included."""
    seen = set() if seen is None else seen
    seen.add(folder)
    for link in links[folder].split():
        other = folder_named(link) if link.startswith("hotlane_") else None
        if other and other not in seen:
            reach(other, seen)
    return seen


def may_use(folder, library):
    if any(link.startswith(library) for link in links[folder].split()):
        return True
    return library in vocabulary and any(library in links[f].split() for f in reach(folder))


def include_breach(path, folder, own, name):
    if name == "regex":
        return "<regex> is slow to compile and to run: read the text by hand"
    if name.startswith("router/app/") and folder != "router/app":
        return "nothing includes router/app"
    if folder is None:
        return None
    if own:
        other = folder_of(name)
        if other is None:
            return f'"{name}": our headers are included from the top of the tree'
        if other not in reach(folder):
            return f"{folder} may not know {other}"
        return None
    library = next((lib for head, lib in headers.items() if name.startswith(head)), None)
    if library and not may_use(folder, library):
        return f"{folder} does not link what <{name}> belongs to"
    if folder in pure and library is None and ("/" in name or name.endswith(".h")):
        return f"{folder} is pure: <{name}> is not of the standard library"
    return None


def line_breaches(path, line):
    folder = folder_of(path)
    if path.endswith(code):
        found = include.match(line)
        if found:
            yield include_breach(path, folder, found.group(1) == '"', found.group(2))
        if folder in timeless and world.search(line):
            yield f"{folder} has no clock, file, environment or random of its own"
    if path.endswith(code + (".py",)) and not path.startswith(may_sleep) and sleeping.search(line):
        yield "a sleep: wait for a condition with a deadline"
    if unfinished.search(line):
        yield "unfinished"
    if machine.search(line):
        yield "a path of somebody's machine"


def file_breaches(path, content):
    lines = content.split("\n")
    in_table = False  # tables are laid out by hand, one row a line
    for number, line in enumerate(lines, 1):
        if "clang-format off" in line or "clang-format on" in line:
            in_table = "clang-format off" in line
        width = None if in_table else widths.get(os.path.splitext(path)[1])
        if width and len(line) > width and "://" not in line:
            yield f"{path}:{number}: longer than {width} columns"
        for breach in line_breaches(path, line):
            if breach:
                yield f"{path}:{number}: {breach}"
    most = test_lines_max if path.startswith("tests/") else lines_max
    if path.endswith(code + (".py",)) and content.count("\n") > most:
        yield f"{path}:{most}: longer than {most} lines"
    if path.endswith(".hpp") and "#pragma once" not in lines:
        yield f"{path}:1: no #pragma once"
    if path.endswith("CMakeLists.txt") and os.path.dirname(path) in links:
        yield from link_breaches(path, content)


def link_breaches(path, content):
    folder = os.path.dirname(path)
    said = re.search(r"(?:hotlane_folder|target_link_libraries)\(\s*\S+\s+([^)]*)\)", content)
    found = set(said.group(1).split()) - {"PRIVATE", "PUBLIC"} if said else set()
    wanted = set(links[folder].split())
    for link in sorted(found - wanted):
        yield f"{path}:1: links {link}, which its place in the architecture does not allow"
    for link in sorted(wanted - found):
        yield f"{path}:1: does not link {link}: if it is not needed, take it out of tidy.py too"


def tree_breaches(root):
    for top, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders
                            if not f.startswith((".", "build", "__pycache__", "corpus", "node_modules")))
        for name in sorted(files):
            if not name.endswith(text):
                continue
            path = os.path.join(top, name)
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from file_breaches(os.path.relpath(path, root), file.read())


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.isfile(os.path.join(sys.argv[1], "CMakeLists.txt")):
        print("usage: tidy.py ROOT, the folder of the source tree", file=sys.stderr)
        sys.exit(2)
    breaches = list(tree_breaches(sys.argv[1]))
    print("\n".join(breaches) if breaches else "tidy")
    sys.exit(1 if breaches else 0)
