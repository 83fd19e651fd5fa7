# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the generated reference: reference.py FOLDER TESTS. Every pass says what it does in a line and in a description
with a before and after (a block of code), counts something, and is run by name in a lit test. Prints the passes."""
import pathlib
import re
import sys

pages, tests = map(pathlib.Path, sys.argv[1:3])
# What lit runs, and the scripts that its tests call.
lit = "\n".join(path.read_text() for pattern in ("*.mlir", "*.test", "Inputs/*.py") for path in sorted(tests.rglob(pattern)))
named = set(re.findall(r"--([a-z][\w-]+)", lit))
failed = False
for page in sorted(pages.rglob("*.md")):
    # A section of a pass: its flag as heading, its summary in italics, its description, options and statistics.
    for name, body in re.findall(r"^### `-([\w-]+)`\n(.*?)(?=^### |\Z)", page.read_text(), re.M | re.S):
        print(name)
        problems = [] if re.match(r"\s*_(.+)_\s", body) else ["no summary"]
        if "```" not in body.split("#### ")[0]:
            problems.append("no example in its description")
        if "#### Statistics" not in body:
            problems.append("no statistics")
        if name not in named:
            problems.append("no lit test names it")
        for problem in problems:
            failed = True
            print(f"{page}: {name}: {problem}", file=sys.stderr)
sys.exit(failed)
