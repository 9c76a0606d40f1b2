#!/usr/bin/env python3
"""tidy.py must see each breach: a tree that is clean, then the same with one breach at a time."""
import importlib.util
import os
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("tidy", os.path.join(here, "tidy.py"))
tidy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tidy)

header = "#pragma once\n"
sleep = "sleep"  # apart, so that this file is tidy itself
clean = {
    "policy/a.hpp": header + "#include <vector>\n#include <tl/expected.hpp>\n",
    "policy/a.cpp": '#include "policy/a.hpp"\n',
    "config/b.cpp": '#include <yaml-cpp/yaml.h>\n#include "policy/a.hpp"\n',
    "router/net/c.cpp": '#include <boost/asio/post.hpp>\n#include "router/wire/w.hpp"\n',
    "router/wire/w.hpp": header,
    "router/app/main.cpp": '#include "router/control/x.hpp"\n#include <CLI/CLI.hpp>\n',
    "tests/devengine/d.cpp": f"#include <sqlite3.h>\nvoid f() {{ std::this_thread::{sleep}_for(x); }}\n",
    "policy/t.cpp": "// clang-format off\n" + "x" * 120 + "\n// clang-format on\n",
    "policy/u.cpp": "// see https://example.org/" + "x" * 100 + "\n",
}
for place, line in tidy.links.items():
    clean[f"{place}/CMakeLists.txt"] = f"hotlane_folder(hotlane_x {line})\n"

word = "TO" + "DO"
breaches = [  # file, content, what tidy must say
    ("policy/x.cpp", '#include "config/b.hpp"\n', "policy may not know config"),
    ("router/wire/x.cpp", '#include "policy/a.hpp"\n', "router/wire may not know policy"),
    ("router/session/x.cpp", '#include "router/net/a.hpp"\n', "may not know router/net"),
    ("router/move/x.cpp", '#include "router/control/a.hpp"\n', "may not know router/control"),
    ("router/net/x.cpp", '#include "router/move/a.hpp"\n', "may not know router/move"),
    ("metrics/x.cpp", '#include "router/control/a.hpp"\n', "may not know router/control"),
    ("router/net/x.cpp", '#include "tests/devengine/a.hpp"\n', "may not know tests/devengine"),
    ("tests/unit/net/x.cpp", '#include "router/app/a.hpp"\n', "nothing includes router/app"),
    ("router/move/x.cpp", '#include "move.hpp"\n', "from the top of the tree"),
    ("policy/x.cpp", "#include <boost/asio.hpp>\n", "does not link"),
    ("policy/x.cpp", "#include <unistd.h>\n", "is pure"),
    ("router/wire/x.cpp", "#include <fmt/format.h>\n", "does not link"),
    ("router/control/x.cpp", "#include <boost/asio.hpp>\n", "does not link"),
    ("router/session/x.cpp", "#include <boost/beast.hpp>\n", "does not link"),
    ("router/control/x.cpp", "#include <yaml-cpp/yaml.h>\n", "does not link"),
    ("router/control/x.cpp", "#include <libpq-fe.h>\n", "does not link"),
    ("router/move/x.cpp", "#include <sqlite3.h>\n", "does not link"),
    ("router/levers/x.cpp", "#include <pg_query.h>\n", "does not link"),
    ("router/net/x.cpp", "#include <regex>\n", "<regex>"),
    ("router/session/x.cpp", "auto t = std::chrono::steady_clock::now();\n", "no clock"),
    ("policy/x.cpp", "std::random_device seed;\n", "no clock"),
    ("router/move/x.cpp", f"std::this_thread::{sleep}_for(1s);\n", "a sleep"),
    ("tests/unit/move/x.cpp", f"u{sleep}(5);\n", "a sleep"),
    ("tests/integration/x.py", f"time.{sleep}(1)\n", "a sleep"),
    ("policy/x.cpp", "int x;\n" * 401, "longer than 400 lines"),
    ("tests/unit/policy/x.cpp", "int x;\n" * 601, "longer than 600 lines"),
    ("policy/x.hpp", "int x;\n", "no #pragma once"),
    ("policy/x.cpp", "x" * 101 + "\n", "longer than 100 columns"),
    ("policy/x.cpp", f"// {word}: later\n", "unfinished"),
    ("README.md", "not " + "implemented yet\n", "unfinished"),
    ("deploy/x.yaml", "path: /ro" + "ot/x\n", "a path of somebody's machine"),
    ("policy/CMakeLists.txt", "hotlane_folder(hotlane_policy tl::expected fmt::fmt Boost::boost)\n",
     "links Boost::boost"),
    ("policy/CMakeLists.txt", "hotlane_folder(hotlane_policy tl::expected)\n",
     "does not link fmt::fmt"),
]


def found_in(files):
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(content)
        return list(tidy.tree_breaches(root))


failures = [f"the clean tree: {line}" for line in found_in(clean)]
for path, content, said in breaches:
    lines = found_in({**clean, path: content})
    if len(lines) != 1 or said not in lines[0] or not lines[0].startswith(path + ":"):
        failures.append(f"{path} ({said}): {lines}")
print("\n".join(failures) if failures else f"{len(breaches)} breaches seen")
sys.exit(1 if failures else 0)
