#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures two builds of shardc side by side, in one run, and prints ratios (below 1: the first is faster).

  .venv/bin/python benchmarks/compare_builds.py build ../before/build     # what a change costs or wins
  .venv/bin/python benchmarks/compare_builds.py build ../before/build --only step --rounds 15

Both builds take turns within a round, the first of a round in turn, so that the drift of a machine meets both. The rows are those of run.py:
start-up, import, compilation, and steps of three models on one rank and of one on four."""
import argparse
import os
import pathlib
import subprocess
import sys

import sides
from run import Report, wall_ms

SECTIONS = ("startup", "import", "compile", "step")


def pairs(rounds, measure, builds):
    """(first build's figure, second's) of each round."""
    result = []
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        figures = {which: measure(builds[which]) for which in order}
        result.append((figures[0], figures[1]))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas between: " + ", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [s for s in wanted if s not in SECTIONS]:
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    tools = [sides.Tools(build.resolve()) for build in options.builds]
    folder = options.builds[0].resolve() / "benchmarks"
    gpt, gpt2, minilm = (sides.Model(name, folder) for name in ("gpt", "gpt2_124m", "minilm"))
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start, {options.rounds} rounds")
    report = Report()
    second = str(options.builds[1])

    def row(name, measure, rounds=options.rounds):
        report.pair(name, second, "ms", pairs(rounds, measure, tools))

    if "startup" in wanted:
        report.section("Start-up: a whole process that reads a small .mlir file and prints it")
        file = sides.ROOT / "test/tools/shard-opt/Inputs/small.mlir"
        row("shard-opt small.mlir", lambda t: wall_ms([t.shard_opt, file]), 5 * options.rounds)
    if "import" in wanted:
        report.section("Import of GPT-2 124M")
        row("shard-opt gpt2_124m.pt2", lambda t: wall_ms([t.shard_opt, gpt2.path, "-o", os.devnull]))
    if "compile" in wanted:
        report.section("Compilation of GPT-2 124M to a shared object, whole process")
        for mesh, plan in (("tp=1", []), ("tp=4", gpt2.plan)):
            command = ["compile", gpt2.path, "-o", folder / "compile.so", "--mesh", mesh, *plan]
            row(f"shardc compile, {mesh}", lambda t, c=command: wall_ms([t.shardc, *c]))
    if "step" in wanted:
        report.section("A step")
        for model, mesh, plan, ranks, threads in (
                (minilm, "tp=1", [], 1, 1), (gpt, "tp=1", [], 1, 1), (gpt2, "tp=1", [], 1, 1), (minilm, "tp=1", [], 1, 2),
                (gpt, "tp=1", [], 1, 2), (gpt2, "tp=1", [], 1, 2), (gpt, "tp=4", gpt.plan, 4, 1)):
            artifacts = {}
            for number, t in enumerate(tools):
                artifacts[t] = folder / f"{model.name}.{mesh}.{number}.so"
                sides.run([t.shardc, "compile", model.path, "--mesh", mesh, *plan, "-o", artifacts[t]])
            row(f"{model.title}, {mesh}, {threads} thread{'s' * (threads > 1)}",
                lambda t, m=model, a=artifacts, r=ranks, n=threads: m.run(t, a[t], r, n)["step_ms"]["median"])


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}\nfailed:\n{error.stderr}")
