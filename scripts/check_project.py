# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the project itself, written as a JUnit report: formatting, licence lines, sizes of files, dependency order."""
import argparse
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {".cpp": 550, ".h": 550, ".c": 550, ".td": 450, ".py": 550}
# A folder may include headers only of folders before it (architecture.md); `runtime` sees only the std-only cores.
ORDER = ["dialects/interfaces", "dialects/aten", "dialects/dist", "importers", "passes", "lowering", "tools"]
RUNTIME_MAY_USE = ("runtime/", "dialects/interfaces/Layout", "dialects/interfaces/NearestNames",
                   "dialects/interfaces/JsonText",                   "importers/torch_export/archive/")


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, text=True, capture_output=True,
                          check=True).stdout.split()


def formatting():
    return subprocess.run(["scripts/format.sh", "--check"], cwd=ROOT, text=True, capture_output=True).stderr


def licence_lines():
    files = tracked("*.c", "*.cpp", "*.h", "*.hpp", "*.td", "*.py", "*.sh")
    return "\n".join(f for f in files
                     if (ROOT / f).exists() and "SPDX-License-Identifier" not in "".join((ROOT / f).open().readlines()[:4]))


def file_sizes():
    out = []
    for f in tracked("*.c", "*.cpp", "*.h", "*.td", "*.py"):
        path = ROOT / f
        lines = sum(1 for _ in path.open()) if path.exists() else 0
        if lines > LIMITS[path.suffix]:
            out.append(f"{f}: {lines} lines, at most {LIMITS[path.suffix]}")
    return "\n".join(out)


def layer(path):
    best = max((o for o in ORDER if path.startswith(o + "/")), key=len, default=None)
    return ORDER.index(best) if best else None


def dependency_order():
    out = []
    for f in tracked("*.cpp", "*.h", "*.c", "*.td"):
        if not (ROOT / f).exists():
            continue
        for inc in re.findall(r'^(?:#include|include) "([^"]+)"', (ROOT / f).read_text(), re.M):
            if f.startswith("runtime/"):
                if "/" in inc and not inc.startswith(RUNTIME_MAY_USE) and (ROOT / inc).exists():
                    out.append(f"{f} includes {inc}: the runtime knows nothing of the compiler")
            elif layer(f) is not None and layer(inc) is not None and layer(inc) > layer(f):
                out.append(f"{f} includes {inc}, which comes later in the dependency order")
            elif layer(f) == ORDER.index("dialects/dist") and layer(inc) == ORDER.index("dialects/aten"):
                out.append(f"{f} includes {inc}: dist knows nothing of aten")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit", type=pathlib.Path)
    args = parser.parse_args()
    suite = ET.Element("testsuite", name="project")
    failed = 0
    for check in (formatting, licence_lines, file_sizes, dependency_order):
        case = ET.SubElement(suite, "testcase", classname="project", name=check.__name__)
        problems = check().strip()
        if problems:
            failed += 1
            print(f"{check.__name__}:\n{problems}")
            ET.SubElement(case, "failure", message=check.__name__).text = problems
    if args.junit:
        ET.ElementTree(suite).write(args.junit)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
