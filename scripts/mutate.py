# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutation testing of the cores, verifiers, lowering and runtime (see scripts/mutate.sh).

A mutation is one small change of one line: a comparison, a bound, a constant, a condition, an order or a call that is dropped. The
program is built with it, and the tests of its folder are run: unit tests first, then lit, until one fails. A mutation that no test
notices has *survived*: it wants a test, or a reason in scripts/mutants-accepted.txt, whose lines are `PATH: OLD => NEW: REASON`.

Mutations are drawn with a fixed seed, equally from the groups of folders below. Those that do not compile are replaced. The exit status
is 1 if a mutation survived without a reason."""

import argparse
import fnmatch
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
SOURCE, BUILD = WORK / "source", WORK / "build"
ACCEPTED = ROOT / "scripts" / "mutants-accepted.txt"
TEST_SECONDS = 240
GROUPS = {
    "cores": ["dialects/sharding/*.cpp", "passes/*/core/*.cpp", "lowering/memory/core/*.cpp", "support/*.cpp", "support/archive/*.cpp"],
    "verifiers": ["passes/verify/*.cpp", "passes/collectives/verify/*.cpp", "dialects/dist/*Verify*.cpp", "dialects/exec/*.cpp"],
    "passes": ["passes/*/*.cpp", "passes/collectives/*/*.cpp", "dialects/aten/*.cpp"],
    "lowering": ["lowering/*/*.cpp"],
    "runtime": ["runtime/*/*.cpp"],
}
# (what is looked for, what it becomes); spaces keep templates, arrows and shifts out.
OPERATORS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r"\bif \(!", "if ("),
    (r" \+ 1\b", " + 2"), (r" - 1\b", ""), (r"(?<=[\w\)\]]) \+ (?=\w)", " - "), (r"(?<=[\w\)\]]) \* (?=\w)", " + "),
    (r"\breturn false;", "return true;"), (r"\breturn true;", "return false;"), (r" = 0;", " = 1;"), (r" = 1;", " = 2;"),
    (r"\bstd::max\b", "std::min"), (r"\bstd::min\b", "std::max"), (r"\bllvm::reverse\((\w+)\)", r"\1"), (r"\bany_of\b", "all_of"), (r"\ball_of\b", "any_of"),
    # A call that is a statement of its own.
    (r"^(\s+)(?!return\b|delete\b)\w[\w:.>-]*\([^;{}]*\);$", r"\1;"),
]
SKIP = re.compile(r"^\s*(//|#|\*|using |static_assert|namespace )")


class Mutation:
    def __init__(self, path, line, old, new):
        self.path, self.line, self.old, self.new = path, line, old, new

    def key(self):
        return f"{self.path}: {self.old.strip()} => {self.new.strip()}"

    def __str__(self):
        return f"{self.path}:{self.line + 1}: {self.old.strip()} => {self.new.strip()}"

    def apply(self, undo=False):
        path = SOURCE / self.path
        lines = path.read_text().split("\n")
        lines[self.line] = self.old if undo else self.new
        path.write_text("\n".join(lines))


def mutations_of(path):
    for number, text in enumerate((ROOT / path).read_text().split("\n")):
        if SKIP.match(text) or '"' in text:
            continue
        code = text.split("//")[0]
        for pattern, replacement in OPERATORS:
            for match in re.finditer(pattern, code):
                yield Mutation(path, number, text, code[:match.start()] + match.expand(replacement) + code[match.end():])


def draw(count, seed, only):
    """Mutations in the order in which they are tried: one of each group in turn."""
    files = subprocess.run(["git", "ls-files", "*.cpp"], cwd=ROOT, text=True, capture_output=True, check=True).stdout.split()
    files = [f for f in files if not f.startswith("test/")]
    generator, taken, queues, drawn = random.Random(seed), set(), [], set()
    for patterns in GROUPS.values():
        # fnmatch's * also matches slashes: compare the number of folders.
        mine = [f for f in files if f not in taken and any(fnmatch.fnmatch(f, p) and f.count("/") == p.count("/") for p in patterns)]
        taken.update(mine)
        queue = [m for f in mine if not only or any(fnmatch.fnmatch(f, o) for o in only) for m in mutations_of(f)]
        generator.shuffle(queue)
        queues.append(queue)
    while any(queues):
        for queue in queues:
            if queue and (mutation := queue.pop()) and str(mutation) not in drawn:  # two operators may make one text
                drawn.add(str(mutation))
                yield mutation


def run(command, log, seconds=None):
    """Exit status of a command; 124 after so many seconds."""
    with open(log, "ab") as out:
        process = subprocess.Popen(command, cwd=BUILD, stdout=out, stderr=out, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 124


def unit_tests(folder):
    """The unit tests of the nearest folder of test/unit that mirrors this one."""
    place = ROOT / "test" / "unit" / folder
    while place != ROOT / "test" / "unit":
        names = [n for f in sorted(place.rglob("CMakeLists.txt")) for n in re.findall(r"add_(?:mlir_)?unit_test\((\w+)", f.read_text())]
        if names:
            return names
        place = place.parent
    return []


def lit_folder(folder):
    """The nearest folder of lit tests that mirrors this one, in the build."""
    parts = pathlib.PurePath(folder).parts
    for length in range(len(parts), 0, -1):
        place = pathlib.Path("test", *parts[:length])
        if any((ROOT / place).rglob("*.mlir")) or any((ROOT / place).rglob("*.test")):
            return str(BUILD / place)
    return None


def tests_of(path):
    """Builds and commands that decide over a mutation of this file, the quickest first."""
    folder = str(pathlib.PurePath(path).parent)
    names = unit_tests(folder)
    if names:
        yield names, [[str(BUILD / "test" / "unit" / n), "--gtest_brief=1", "--gtest_fail_fast"] for n in names]
    if not folder.startswith(("runtime", "support")):
        lit = lit_folder(folder)
        if lit:
            yield ["shard-opt", "shardc", "shard-run"], [["/usr/lib/llvm-22/bin/lit", "-q", "--max-failures", "1", lit]]
    if folder.startswith(("lowering", "runtime")):
        e2e = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-x", "--rootdir", str(SOURCE)]
        yield ["shardc", "shard-run"], [e2e + [str(SOURCE / "test/e2e" / f) for f in ("test_outputs.py", "test_kernels.py")]]


def verdict(mutation, log):
    """'killed by TEST', 'survived', or None if it does not compile."""
    mutation.apply()
    try:
        for targets, commands in tests_of(mutation.path):
            if run(["ninja", "-k", "1", *targets], log):
                return None
            for command in commands:
                if status := run(command, log, TEST_SECONDS):
                    name = pathlib.PurePath(command[0] if "unit" in command[0] else command[-1]).name
                    return f"killed by {name}" + (" (hangs)" if status == 124 else "")
        return "survived"
    finally:
        mutation.apply(undo=True)


def prepare():
    """A copy of what is committed, built once, in which all tests pass."""
    WORK.mkdir(exist_ok=True)
    if not (SOURCE / "CMakeLists.txt").exists():
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(SOURCE)], check=True)
    subprocess.run(["git", "fetch", "-q", str(ROOT), "HEAD"], cwd=SOURCE, check=True)
    subprocess.run(["git", "reset", "-q", "--hard", "FETCH_HEAD"], cwd=SOURCE, check=True)
    venv = SOURCE / ".venv"
    if not venv.exists():
        venv.symlink_to(ROOT / ".venv")
    log = WORK / "prepare.log"
    print(f"building the unchanged program in {BUILD} (details: {log})", flush=True)
    if not (BUILD / "build.ninja").exists():
        BUILD.mkdir(exist_ok=True)
        if run(["cmake", "--preset", "default", "-S", str(SOURCE), "-B", str(BUILD)], log):
            sys.exit(f"CMake could not configure the build: see {log}")
    if run(["ninja", "all"], log):
        sys.exit(f"the unchanged program does not build: see {log}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120, help="number of mutations to try, without those that do not compile (120)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random choice of mutations (1)")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="files that may be mutated; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the mutations without trying them")
    options = parser.parse_args()
    drawn = draw(options.count, options.seed, options.only)
    if options.list:
        for _, mutation in zip(range(options.count), drawn):
            print(mutation)
        return 0
    accepted = ACCEPTED.read_text() if ACCEPTED.exists() else ""
    prepare()
    killed, survived, reasons, stillborn = 0, [], 0, 0
    for mutation in drawn:
        if killed + len(survived) + reasons == options.count:
            break
        began = time.monotonic()
        result = verdict(mutation, WORK / "last.log")
        if result is None:
            stillborn += 1
            continue
        if result != "survived":
            killed += 1
        elif mutation.key() in accepted:
            reasons += 1
            result = "survived, with a reason"
        else:
            survived.append(mutation)
        print(f"{result:32} {time.monotonic() - began:5.0f} s  {mutation}", flush=True)
    print(f"\n{killed} killed, {len(survived)} survived, {reasons} survived with a reason, {stillborn} did not compile")
    for mutation in survived:
        print(f"survived: {mutation}")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main())
