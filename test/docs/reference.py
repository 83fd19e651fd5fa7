# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the generated reference: reference.py FOLDER. Every pass says what it does in a line and in a description with a
before and after (a block of code). Prints the passes."""
import pathlib
import re
import sys

failed = False
for page in sorted(pathlib.Path(sys.argv[1]).rglob("*.md")):
    # A section of a pass: its flag as heading, its summary in italics, its description.
    for name, body in re.findall(r"^### `-([\w-]+)`\n(.*?)(?=^### |\Z)", page.read_text(), re.M | re.S):
        print(name)
        summary = re.match(r"\s*_(.+)_\s", body)
        problems = [] if summary else ["no summary"]
        if "```" not in body:
            problems.append("no example in its description")
        for problem in problems:
            failed = True
            print(f"{page}: {name}: {problem}", file=sys.stderr)
sys.exit(failed)
