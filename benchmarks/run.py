#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures shardc beside what it is compared with, in one run, and prints ratios (below 1: shardc is faster or smaller).

  .venv/bin/python benchmarks/run.py                        everything, a few minutes
  .venv/bin/python benchmarks/run.py --only startup,step    some of it
  .venv/bin/python benchmarks/run.py --rounds 9 --json results.json

Both sides of a row are measured in turn, `--rounds` times; a ratio is the median of the rounds' ratios, and its spread the
least and the largest of them. docs/benchmarks.md says what each row means."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import run_training
import sides

SECTIONS = ("startup", "import", "compile", "step", "dtensor", "processes", "gradients", "training", "memory")


class Report:
    """Rows of two sides, printed as they come."""

    def __init__(self):
        self.rows = []

    def section(self, title):
        print(f"\n{title}\n{'':4}{'':44}{'shardc':>12}{'other':>12}{'ratio':>8}  {'spread':<16}other", flush=True)

    def pair(self, name, other, unit, rounds):
        """`rounds`: (shardc's figure, the other's), one for each round."""
        ratio = [a / b for a, b in rounds]
        ours, theirs = (statistics.median(side) for side in zip(*rounds))
        spread = f"{min(ratio):.2f} to {max(ratio):.2f}"
        print(f"{'':4}{name:<44}{ours:9.1f} {unit:<2}{theirs:9.1f} {unit:<2}{statistics.median(ratio):8.2f}  {spread:<16}"
              f"{other}", flush=True)
        self.rows.append({"name": name, "other": other, "unit": unit, "shardc": [r[0] for r in rounds],
                          "theirs": [r[1] for r in rounds], "ratio": statistics.median(ratio)})

    def note(self, text):
        print(f"{'':4}{text}", flush=True)


def wall_ms(command):
    begin = time.perf_counter()
    sides.run(command)
    return (time.perf_counter() - begin) * 1e3


def startup(report, tools, rounds):
    report.section("Start-up: a whole process that reads a small .mlir file and prints it")
    file = sides.ROOT / "test/tools/shard-opt/Inputs/small.mlir"
    commands = [tools.shard_opt, file], [tools.mlir_opt, "--allow-unregistered-dialect", file]
    rounds *= 5  # short, so more often
    report.pair("shard-opt small.mlir", "mlir-opt", "ms", [tuple(wall_ms(c) for c in commands) for _ in range(rounds)])
    report.pair("  the same, CPU time (other work matters less)", "mlir-opt", "ms",
                [tuple(sides.run_measured(c)[2] for c in commands) for _ in range(rounds)])


def import_time(report, tools, rounds, model):
    report.section("Import of GPT-2 124M: .pt2 to IR, weights left in the file")
    ours = [wall_ms([tools.shard_opt, model.path, "-o", os.devnull]) for _ in range(rounds)]
    theirs = sides.torch_load_ms(model.path, rounds)
    report.pair("shard-opt gpt2_124m.pt2 (whole process)", "torch.export.load, PyTorch imported before", "ms",
                list(zip(ours, theirs)))


def compile_time(report, tools, rounds, model):
    report.section("Compilation of GPT-2 124M to a shared object, whole process")
    command = [tools.shardc, "compile", model.path, "-o", model.folder / "compile.so", "--mesh"]
    pairs = [(wall_ms(command + ["tp=4", *sides.GPT2_TP]), wall_ms(command + ["tp=1"])) for _ in range(rounds)]
    report.pair("shardc compile, 4 ranks (tp=4)", "shardc compile, 1 rank", "ms", pairs)


def step(report, tools, rounds, models):
    report.section("A step on 1 rank, equal thread counts")
    for threads in sorted({1, os.cpu_count()}):
        for model in models:
            artifact = model.compile(tools, "tp=1")
            pairs = []
            for _ in range(rounds):
                ours = model.run(tools, artifact, 1, threads)
                pairs.append((ours["step_ms"]["median"], sides.eager_ms(model, threads)))
            report.pair(f"{model.title}, {threads} thread{'s' * (threads > 1)}", "PyTorch eager", "ms", pairs)
            report.note(f"    largest difference of the outputs, of their scale: {model.difference():.1e}")


def dtensor(report, tools, rounds, model):
    report.section("A step on 4 ranks, tensor parallel, one thread each")
    against_dtensor(report, tools, rounds, model)


def against_dtensor(report, tools, rounds, model):
    artifact = model.compile(tools, "tp=4", *model.plan)
    times, memory = [], []
    for _ in range(rounds):
        begin = sides.run_dtensor(20, *(["gradients"] if model.has_loss else []))
        ours = model.run(tools, artifact, 4, 1)
        times.append((ours["step_ms"]["median"], begin["step_ms"][len(begin["step_ms"]) // 2]))
        memory.append((ours["process_bytes"] / 4 / 2**20, begin["peak_bytes"] / 2**20))
    report.pair(f"{model.title}, tp=4", "DTensor, gloo, 4 processes", "ms", times)
    report.note(f"    largest difference of the outputs, of their scale: {model.difference():.1e}")
    report.pair("peak memory of a rank (a quarter of the process)", "a process of DTensor", "MB", memory)


def processes(report, tools, rounds, gpt, gpt2):
    """Threads and DTensor are measured in turn with them. The engines between hosts run here on one."""
    report.section("A step on 4 ranks that are processes, tensor parallel, one thread each")
    for model, plan in ((gpt, gpt.plan), (gpt2, sides.GPT2_TP)):
        artifact = model.compile(tools, "tp=4", *plan)
        pairs = [(model.run(tools, artifact, 4, 1, ["--processes"])["step_ms"]["median"],
                  model.run(tools, artifact, 4, 1)["step_ms"]["median"]) for _ in range(rounds)]
        report.pair(f"{model.title}, over shared memory", "4 threads of one process", "ms", pairs)
        report.note(f"    largest difference of the outputs, of their scale: {model.difference():.1e}")
    artifact = gpt.compile(tools, "tp=4", *gpt.plan)
    kinds = [kind for kind in ("local", "gloo", "mpi") if kind == "local" or sides.has_plugin(tools, kind)]
    pairs = {kind: [] for kind in kinds}
    for _ in range(rounds):
        steps = sides.run_dtensor(20)["step_ms"]
        for kind in kinds:
            pairs[kind].append((gpt.run_processes(tools, artifact, 4, kind)["step_ms"]["median"], steps[len(steps) // 2]))
    for kind in kinds:
        report.pair(f"{gpt.title}, {kind}", "DTensor, gloo, 4 processes", "ms", pairs[kind])


def gradients(report, tools, rounds, small, large):
    report.section("Gradients: forward and backward, one thread for each rank")
    command = [tools.shardc, "compile", large.path, "-o", large.folder / "compile.so", "--mesh"]
    for mesh, plan in (("r=1", []), ("tp=4", large.plan)):
        pairs = [(wall_ms(command + [mesh, *plan, *large.gradients]), wall_ms(command + [mesh, *plan])) for _ in range(rounds)]
        report.pair(f"shardc compile of GPT-2 124M, {mesh}", "shardc compile of the forward", "ms", pairs)
    artifact = large.compile(tools, "r=1")
    pairs = [(large.run(tools, artifact, 1, 1)["step_ms"]["median"], sides.eager_ms(large, 1)) for _ in range(rounds)]
    report.pair(f"{large.title}, 1 thread", "PyTorch eager", "ms", pairs)
    report.note(f"    largest difference of the gradients, of their scale: {large.difference():.1e}")
    against_dtensor(report, tools, rounds, small)


def memory(report, tools, rounds, model):
    report.section("Peak memory of GPT-2 124M")
    single = model.run(tools, model.compile(tools, "tp=1"), 1, 1)
    sharded = model.run(tools, model.compile(tools, "tp=4", *sides.GPT2_TP), 4, 1)
    eager = sides.eager_process_bytes("gpt2_124m")
    report.pair("1 rank, whole process", "PyTorch eager, whole process", "MB",
                [(single["process_bytes"] / 2**20, eager / 2**20)])

    def rank_bytes(result):
        held = result["peak_memory_of_a_rank"]
        return sum(held[kind] for kind in ("parameter_bytes", "persistent_bytes", "arena_bytes")) / 2**20

    report.pair("a rank of tp=4: its parameters and arena", "the same of 1 rank", "MB",
                [(rank_bytes(sharded), rank_bytes(single))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=sides.ROOT / "build")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas between: " + ", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jax", help="a Python interpreter that has jax: `training` is also measured beside it")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="`training`: the time of a step, or the CPU time of all ranks, which other work on the machine changes less")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures there")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [s for s in wanted if s not in SECTIONS]:
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    tools = sides.Tools(options.build)
    folder = options.build / "benchmarks"
    gpt, gpt2, minilm = (sides.Model(name, folder) for name in ("gpt", "gpt2_124m", "minilm"))
    losses = [sides.Model(name + sides.LOSS, folder) for name in ("gpt", "gpt2_124m")]
    report = Report()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load average {load:.1f} at the start, {options.rounds} rounds")
    if load > os.cpu_count() / 2:
        print("warning: something else runs on this machine; the figures will vary", file=sys.stderr)
    if kernels := os.environ.get("OPENBLAS_CORETYPE"):
        print(f"warning: OPENBLAS_CORETYPE={kernels} is set: shardc's products run the kernels of that processor, whatever this one is", file=sys.stderr)
    actions = {
        "startup": lambda: startup(report, tools, options.rounds),
        "import": lambda: import_time(report, tools, options.rounds, gpt2),
        "compile": lambda: compile_time(report, tools, options.rounds, gpt2),
        "step": lambda: step(report, tools, options.rounds, [minilm, gpt, gpt2]),
        "dtensor": lambda: dtensor(report, tools, options.rounds, gpt),
        "processes": lambda: processes(report, tools, options.rounds, gpt, gpt2),
        "gradients": lambda: gradients(report, tools, options.rounds, *losses),
        "training": lambda: run_training.section(report, tools, options.rounds, folder, options.jax, options.clock),
        "memory": lambda: memory(report, tools, options.rounds, gpt2),
    }
    for section in SECTIONS:
        if section in wanted:
            actions[section]()
    if options.json:
        options.json.write_text(json.dumps({"cores": os.cpu_count(), "load": load, "rows": report.rows}, indent=1))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}\nfailed:\n{error.stderr}")
