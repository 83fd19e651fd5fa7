# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the project itself: formatting, licence lines, sizes of files, dependency order and links. It can write a JUnit report."""
import argparse
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {".cpp": 500, ".h": 500, ".c": 500, ".td": 400, ".py": 500}
TEST_LIMIT, TEST_HINT = 400, 200  # a test beyond the second is only mentioned
# A folder may include headers only of folders before it (architecture.md); `runtime` sees only the std-only cores.
ORDER = ["support", "dialects/sharding", "dialects/interfaces", "dialects/aten", "dialects/dist", "dialects/exec", "importers",
         "passes", "lowering", "tools"]
RUNTIME_MAY_USE = ("runtime/", "support/", "dialects/sharding/")


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
        limit = TEST_LIMIT if f.startswith("test/") else LIMITS[path.suffix]
        if lines > limit:
            out.append(f"{f}: {lines} lines, at most {limit}")
    return "\n".join(out)


def long_tests():
    """Not wrong, but better in parts."""
    files = [f for f in tracked("test/*.cpp", "test/*.py", "test/*.mlir") if (ROOT / f).exists()]
    counts = {f: sum(1 for _ in (ROOT / f).open()) for f in files}
    return [f"{f}: {n} lines" for f, n in counts.items() if n > TEST_HINT]


def anchors(text):
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def links():
    """Relative links of README and docs lead to files of the project, and to headings that are there."""
    out = []
    for page in tracked("*.md"):
        text = (ROOT / page).read_text() if (ROOT / page).exists() else ""
        for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            path, _, anchor = target.partition("#")
            if re.match(r"\w+:", path):
                continue
            file = (ROOT / page).parent / path if path else ROOT / page
            if not file.exists():
                out.append(f"{page}: the link to {target} leads nowhere")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                out.append(f"{page}: {target} names no heading there")
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
    parser.add_argument("--long-tests", action="store_true", help=f"also list tests of more than {TEST_HINT} lines")
    args = parser.parse_args()
    suite = ET.Element("testsuite", name="project")
    failed = 0
    for check in (formatting, licence_lines, file_sizes, dependency_order, links):
        case = ET.SubElement(suite, "testcase", classname="project", name=check.__name__)
        problems = check().strip()
        if problems:
            failed += 1
            print(f"{check.__name__}:\n{problems}")
            ET.SubElement(case, "failure", message=check.__name__).text = problems
    if args.long_tests:
        print("\n".join(long_tests()))
    if args.junit:
        ET.ElementTree(suite).write(args.junit)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
