# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares citations of numbered rules with the page that states them: semantics.py ROOT.

A rule is stated as `- **(L3)** ...`, on docs/semantics.md alone. It is cited in parentheses, `(L3)`, `(L3, L3a)` or `(L1 to L4)`, or after the
page's name, `semantics.md L3`. Every id that is cited must be stated, every id is stated once, and every rule has a reason."""

import pathlib
import re
import subprocess
import sys

ID = r"[LRGNHBS]\d+[a-z]?"
LIST = rf"{ID}(?:(?:, | to | and ){ID})*"
CITATION = re.compile(rf"(?:(?<=[\s*])|^)\(({LIST})\)|semantics\.md,? \(?({LIST})", re.M)
STATEMENT = re.compile(rf"^\s*- \*{{0,2}}\(({ID})\)\*{{0,2}} (.*?)(?=^\s*- |^\s*#|\Z)", re.M | re.S)
SUFFIXES = {".h", ".hpp", ".cpp", ".c", ".td", ".md", ".py", ".mlir", ".test", ".def"}


def expand(text):
    """ "L1 to L4" -> L1, L2, L3, L4."""
    for first, last in re.findall(rf"({ID}) to ({ID})", text):
        for number in range(int(re.sub(r"\D", "", first)), int(re.sub(r"\D", "", last)) + 1):
            yield f"{first[0]}{number}"
    yield from re.findall(ID, text)


def main(root):
    page = root / "docs" / "semantics.md"
    problems, stated, cited = [], {}, {}
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True, capture_output=True,
                           check=True).stdout.split()
    for name in files:
        path = root / name
        if path.suffix not in SUFFIXES or not path.exists() or name.startswith("test/docs/semantics."):
            continue
        text = path.read_text()
        if path.suffix == ".md":
            for rule, body in STATEMENT.findall(text):
                where = stated.setdefault(rule, [])
                where.append(name)
                if path != page:
                    problems.append(f"{name} states {rule}, which belongs on docs/semantics.md")
                elif "*Reason:*" not in body:
                    problems.append(f"{rule} has no reason")
            if path == page:
                text = STATEMENT.sub("", text)
        for match in CITATION.finditer(text):
            for rule in expand(match.group(1) or match.group(2)):
                cited.setdefault(rule, set()).add(name)
    problems += [f"{rule} is stated {len(where)} times: {', '.join(where)}" for rule, where in stated.items() if len(where) > 1]
    problems += [f"{rule} is cited in {', '.join(sorted(where))}, but docs/semantics.md does not state it"
                 for rule, where in sorted(cited.items()) if rule not in stated]
    print("\n".join(problems) if problems else f"{len(stated)} rules, {len(cited)} of them cited")
    return bool(problems)


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
