# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the project itself, written as a JUnit report: formatting, licence lines, sizes of files, include guards,
dependency order, names of a target, folders of tests, pass flags, links, versions of packages."""
import argparse
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import dependency_order
import unique_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {".cpp": 500, ".h": 500, ".c": 500, ".td": 400, ".py": 500}
TEST_LIMIT, TEST_HINT = 400, 200  # a test beyond the second is only mentioned
# Folders under test/ (and test/unit/) that mirror no folder of the source.
TEST_FOLDERS = {"docs", "e2e", "lib", "models", "reference", "scripts", "unit"}


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


def dependencies():
    """Includes follow the dependency order, and README and docs tell it (dependency_order.py)."""
    return "\n".join(dependency_order.violations(ROOT, dependency_order.tracked(ROOT)) +
                     dependency_order.table_problems(ROOT))


def names_of_targets():
    """No two files of a target define a name, so that they can be compiled as one (unique_names.py)."""
    return "\n".join(unique_names.problems(ROOT))


def guard_of(file):
    if file.startswith("runtime/include/"):  # public: installed by its name alone
        return re.sub(r"\W", "_", pathlib.PurePath(file).name).upper()
    return "SHARDC_" + re.sub(r"\W", "_", file).upper()


def include_guards():
    """#ifndef and #define after the comments, #endif with the name as the last line."""
    out = []
    for f in tracked("*.h", "*.hpp", "*.td"):
        lines = (ROOT / f).read_text().rstrip().split("\n") if (ROOT / f).exists() else []
        guard = guard_of(f)
        first = next((i for i, line in enumerate(lines) if line.startswith("#")), None)
        if lines and (first is None or lines[first:first + 2] != [f"#ifndef {guard}", f"#define {guard}"] or
                      lines[-1] not in (f"#endif // {guard}", f"#endif /* {guard} */")):
            out.append(f"{f}: the include guard is not {guard}")
    return "\n".join(out)


def tests_mirror_the_source():
    """A folder of tests has the name of a source folder, or of a pass below it: dist-propagate's are in propagate/."""
    out = []
    passes = {pathlib.PurePath(f).parent / flag.split("-", 1)[-1] for f in tracked("*Passes.td")
              for flag in re.findall(r': Pass<"([^"]+)"', (ROOT / f).read_text())}
    for f in tracked("test/*Test.cpp", "test/*.mlir", "test/*.test"):
        parts = pathlib.PurePath(f).parent.parts[1:]
        parts = parts[1:] if parts[:1] == ("unit",) else parts
        folder = pathlib.PurePath(*[p for p in parts if p != "Inputs"])
        if parts and parts[0] not in TEST_FOLDERS and folder not in passes and not (ROOT / folder).is_dir():
            out.append(f"{f}: there is no source folder {folder}")
    return "\n".join(sorted(out))


def pass_flags():
    """A flag begins with the dialect that the pass works on or makes, or with the target (a folder of lowering/) it is for."""
    dialects = {name for f in tracked("dialects/*.td")
                for name in re.findall(r': Dialect \{\s*let name = "(\w+)"', (ROOT / f).read_text())}
    targets = {path.name for path in (ROOT / "lowering").iterdir() if path.is_dir()}
    out = []
    for f in tracked("*Passes.td"):
        for flag in re.findall(r': Pass<"([^"]+)"', (ROOT / f).read_text()):
            if flag.split("-")[0] not in dialects | targets:
                out.append(f"{f}: the flag {flag} begins with no dialect and no target")
    return "\n".join(out)


def versions():
    """Pages and CMake name the versions of Python packages that the set-up installs."""
    pattern = r"\b([a-z][\w-]*)==(\d[\w.]*\w)"
    installed = dict(re.findall(pattern, (ROOT / "scripts/lib.sh").read_text()))
    return "\n".join(f"{f}: {name}=={version}, but scripts/lib.sh installs {installed[name]}"
                     for f in tracked("*.md", "*.cmake", "*CMakeLists.txt") if (ROOT / f).exists()
                     for name, version in re.findall(pattern, (ROOT / f).read_text())
                     if version != installed.get(name, version))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--long-tests", action="store_true", help=f"also list tests of more than {TEST_HINT} lines")
    args = parser.parse_args()
    suite = ET.Element("testsuite", name="project")
    failed = 0
    for check in (formatting, licence_lines, file_sizes, include_guards, dependencies, names_of_targets, tests_mirror_the_source,
                  pass_flags, links, versions):
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
