# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the examples of the generated reference of passes: examples.py DOCS [PASS...] [--FLAG...].

The description of every pass has at least one example, in one of these forms. The words in front of a block say what it is:

  Before:                      a whole program, on which `shard-opt --PASS` is run; `Before, with `OPTIONS`:` gives it options
  After:                       the whole program that comes out, compared after both are parsed and printed again
  After, in part:              lines that come out in this order; `...` stands for any text, and %names stand for any value, the
                               same value wherever the name is the same
  Refused:                     a whole program with `// expected-error` comments, which `--verify-diagnostics` checks

A pass that has no such example is an error. Prints the number of examples that were run. The flags go to shard-opt: with
--load-pass-plugin=FILE it has the passes of a plugin, too."""

import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

BLOCK = re.compile(
    r"^(Before|After|Refused)(, in part)?(?:, with `([^`]*)`)?:\n+```mlir\n(.*?)^```$", re.M | re.S)
FLAGS = [argument for argument in sys.argv[2:] if argument.startswith("--")]


def shard_opt(program, *flags):
    run = subprocess.run(["shard-opt", "-", *FLAGS, *flags], input=program, text=True, capture_output=True)
    return run.returncode, run.stdout, run.stderr


def pattern_of(line, names):
    """A regular expression of a line; a name that was seen before is a back reference."""
    out = ""
    for part in re.split(r"(\.\.\.|%[\w-]+|\s+)", line.strip()):
        if part == "...":
            out += ".*?"
        elif part.startswith("%"):
            if part in names:
                out += f"(?P={names[part]})\\b"
            else:
                names[part] = f"v{len(names)}"
                out += f"(?P<{names[part]}>%[\\w-]+)"
        else:
            out += r"\s+" if part.isspace() else re.escape(part)
    return out


def contains_in_order(output, excerpt):
    names = {}
    lines = [pattern_of(line, names) for line in excerpt.splitlines() if line.strip()]
    return re.search(r"[^\n]*\n(?:.*\n)*?[^\n]*?".join(lines), output) is not None


def run_example(name, before, options, after, in_part):
    flag = f"--{name}={options}" if options else f"--{name}"
    status, output, errors = shard_opt(before, flag)
    if status:
        return f"fails on its own example:\n{errors}"
    if in_part:
        return None if contains_in_order(output, after) else f"should print, in part:\n{after}but prints:\n{output}"
    status, expected, errors = shard_opt(after)
    if status:
        return f"the program after it cannot be read:\n{errors}"
    return None if output == expected else f"should print:\n{expected}but prints:\n{output}"


def examples_of(name, body):
    """Functions that run one example each, and what is wrong with their form."""
    runs, before = [], None
    is_waiting = False

    def wrong(problem):
        runs.append(lambda: problem)

    for kind, in_part, options, text in [*BLOCK.findall(body), ("End", "", "", "")]:
        if kind != "After" and is_waiting:
            wrong("has a program before it, but none after")
        is_waiting = kind == "Before"
        if kind == "Before":
            before = (text, options)
        elif kind == "Refused":
            def refused(text=text, options=options):
                flag = f"--{name}={options}" if options else f"--{name}"
                status, _, errors = shard_opt(text, flag, "--verify-diagnostics", "--split-input-file")
                if "expected-error" not in text:
                    return "a refused program says which error is expected"
                return f"refuses its example otherwise:\n{errors}" if status else None
            runs.append(refused)
        elif kind == "After" and before is None:
            wrong("has a program after it, but none before")
        elif kind == "After":
            runs.append(lambda before=before, text=text, part=in_part: run_example(name, *before, text, bool(part)))
    return runs


def main(docs, chosen):
    jobs = []
    problems = []
    for page in sorted(docs.rglob("*.md")):
        for name, body in re.findall(r"^### `-([\w-]+)`\n(.*?)(?=^### |\Z)", page.read_text(), re.M | re.S):
            if chosen and name not in chosen:
                continue
            runs = examples_of(name, body.split("#### ")[0])
            if not runs:
                problems.append(f"{name}: has no example that can be run")
            jobs += [(name, run) for run in runs]
    with ThreadPoolExecutor(2) as pool:
        for (name, _), problem in zip(jobs, pool.map(lambda job: job[1](), jobs)):
            if problem:
                problems.append(f"{name}: {problem}")
    print("\n".join(problems) if problems else f"{len(jobs)} examples")
    return bool(problems)


sys.exit(main(pathlib.Path(sys.argv[1]), [name for name in sys.argv[2:] if name not in FLAGS]))
