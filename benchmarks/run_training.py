# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section `training` of run.py: steps of training (forward, backward, AdamW), their compilation and their memory."""
import json
import os
import statistics
import subprocess
import sys
import time

OPTIMIZER = {"lr": 1e-4, "weight_decay": 0.01}
STEPS = 12  # of which the first three are not timed
CASES = {"gpt-tp4": "DTensor, gloo, 4 processes", "gpt-dp4": "DDP, gloo, 4 processes", "gpt-fully-sharded": "FSDP2, gloo, 4 processes"}
WARM_UP = 3  # steps that are not timed
# Of the model on four ranks (models.SIZES). JAX's program has the one in the middle.
TITLES = {"small": "GPT, 2 layers of width 128", "middle": "GPT, 4 layers of width 256", "large": "GPT, 6 layers of width 512"}


class Program:
    """A model with a loss, exported, and batches for all steps, which are the same one."""

    def __init__(self, name, folder, size="middle", clock="wall"):
        self.name, self.folder, self.size, self.clock = name, folder, size, clock
        label = name if size == "middle" else f"{name}_{size}"
        self.path, self.batches = folder / f"training_{label}.pt2", folder / f"training_{label}.batches.safetensors"

    def module(self):
        import models
        import sides
        if self.name == "gpt":
            module, _, inputs = models.training("gpt", size=self.size)
            return module, inputs
        module, inputs = sides.module_and_inputs("gpt2_124m" + sides.LOSS)
        return module, inputs

    def export(self):
        import shardc_export
        import torch
        from safetensors.torch import save_file
        module, inputs = self.module()
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.export.save(shardc_export.export(module, (), inputs), self.path)
        save_file({k: v.unsqueeze(0).contiguous() for k, v in inputs.items()}, self.batches)

    def command(self, tools, mesh, places, out):
        zero = ["--train", "zero=3"] if mesh == "fs=4" else []
        train = ["--train", "loss=0", "--train", "optimizer=adamw", "--train", f"optimizer.weight_decay={OPTIMIZER['weight_decay']}"]
        return [tools.shardc, "compile", self.path, "--mesh", mesh, *(p for spec in places for p in ("--place", spec)), *train, *zero, "-o", out]

    def compile(self, tools, mesh, places, out):
        """With the planned stage beside it, which products are read from."""
        import sides
        sides.run([*self.command(tools, mesh, places, out), "--save-stages", self.stages(out)])

    @staticmethod
    def stages(artifact):
        return artifact.with_suffix(".stages")

    def run(self, tools, program, ranks, threads):
        """(step in ms, losses)"""
        import sides
        log = program.with_suffix(".log")

        def cpu_ms(steps):
            log.unlink(missing_ok=True)
            return sides.run_measured([tools.shard_run, program, "-n", ranks, "--threads", threads, "--weights", self.path, "--batches", self.batches,
                                       "--steps", steps, "--lr", OPTIMIZER["lr"], "--log", log])[2]
        # Loading and the first steps are in both runs; there are more of the others, so that their time counts.
        steps = 4 * STEPS if self.clock == "cpu" and self.name == "gpt" else STEPS
        short = cpu_ms(WARM_UP) if self.clock == "cpu" else 0
        cpu = (cpu_ms(steps) - short) / (steps - WARM_UP)
        lines = [json.loads(line) for line in log.read_text().splitlines()][:STEPS]
        wall = statistics.median(line["seconds"] for line in lines[WARM_UP:]) * 1e3
        return cpu if self.clock == "cpu" else wall, [line["loss"] for line in lines]

    def products(self, artifact, ranks, threads):
        """The products of a step alone, in a process of their own."""
        import sides
        stage = next(self.stages(artifact).glob("*-planned.mlir"))
        return self.time_of(last_json([sys.executable, sides.ROOT / "benchmarks/training_products.py", stage, ranks, threads, STEPS], {}))

    def time_of(self, result):
        return result["cpu_ms"] if self.clock == "cpu" else statistics.median(result["step_ms"])


def pytorch(program, threads, compiled):
    """The same on one device, in a process of its own: eager, or under torch.compile."""
    code = f"""
import json, sys, time
sys.path[:0] = {sys.path!r}
import pathlib, torch
from run_training import OPTIMIZER, STEPS, Program
module, inputs = Program({program.name!r}, pathlib.Path({str(program.folder)!r})).module()
torch.set_grad_enabled(True)
torch.set_num_threads({threads})
optimizer = torch.optim.AdamW(module.parameters(), **OPTIMIZER, fused=True)
run = torch.compile(module) if {compiled} else module
times, cpu, losses = [], [], []
for _ in range(STEPS):
    begin, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad(set_to_none=True)
    loss = run(**inputs)
    loss = loss if isinstance(loss, torch.Tensor) else loss[0]
    loss.backward()
    optimizer.step()
    times.append((time.perf_counter() - begin) * 1e3)
    cpu.append((time.process_time() - used) * 1e3)
    losses.append(float(loss.detach()))
print(json.dumps({{"step_ms": sorted(times[3:]), "cpu_ms": sum(cpu[3:]) / len(cpu[3:]), "losses": losses}}))
"""
    return last_json([sys.executable, "-c", code], {})


def last_json(command, environment):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, env=os.environ | environment)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr[-3000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def torchrun(root, case, size):
    return last_json([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", root / "benchmarks/training_step_peers.py",
                      case, STEPS, size], {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})


def section(report, tools, rounds, folder, jax, clock):
    import sides
    import training_products
    report.section("Training: forward, backward and AdamW" + (" (CPU time of all ranks)" if clock == "cpu" else ""))
    report.note(f"shardc's products run OpenBLAS's kernels for {training_products.kernels()}")
    gpt, gpt2 = Program("gpt", folder, clock=clock), Program("gpt2_124m", folder, clock=clock)
    for program in (gpt, gpt2):
        program.export()
    compilation(report, tools, rounds, folder, gpt2)
    for program, title in ((gpt, "GPT, 4 layers, 4 x 128 tokens"), (gpt2, "GPT-2 124M, 1 x 128 tokens")):
        one_rank(report, tools, rounds, folder, program, title)
    for size in TITLES:
        program = Program("gpt", folder, size, clock)
        program.export()
        for case in CASES:
            four_ranks(report, tools, rounds, folder, program, case, jax if size == "middle" and clock == "wall" else None)


def compilation(report, tools, rounds, folder, program):
    import sides
    compile_ms = []
    for _ in range(rounds):
        begin = time.perf_counter()
        sides.run(program.command(tools, "r=1", [], folder / "training_gpt2.so"))
        middle = time.perf_counter()
        sides.run([tools.shardc, "compile", program.path, "--mesh", "r=1", "-o", folder / "training_gpt2_forward.so"])
        compile_ms.append(((middle - begin) * 1e3, (time.perf_counter() - middle) * 1e3))
    report.pair("shardc compile of GPT-2 124M's step, 1 rank", "shardc compile of the forward", "ms", compile_ms)


def one_rank(report, tools, rounds, folder, program, title):
    artifact = folder / f"training_{program.name}.r1.so"
    program.compile(tools, "r=1", [], artifact)
    for threads in sorted({1, os.cpu_count()}):
        label = f"{threads} thread{'s' * (threads > 1)}"
        for compiled, other in ((False, "PyTorch eager"), (True, "torch.compile")):
            pairs, floor, ours, theirs = [], [], None, None
            for _ in range(rounds):
                ms, ours = program.run(tools, artifact, 1, threads)
                theirs = pytorch(program, threads, compiled)
                pairs.append((ms, program.time_of(theirs)))
                floor.append((program.products(artifact, 1, threads), pairs[-1][1]))
            report.pair(f"{title}, {label}", other, "ms", pairs)
            report.pair("  its products alone", other, "ms", floor)
            report.note(f"    largest difference of the losses of {STEPS} steps: {difference(ours, theirs['losses']):.1e}")


def four_ranks(report, tools, rounds, folder, program, case, jax):
    """Beside a peer: ours, the products of ours alone, and for data parallelism what PyTorch computes without communication."""
    import sides
    import training_bytes
    _, mesh, places, _, _ = training_bytes.CASES[case]
    artifact = folder / f"training_{case}.{program.size}.so"
    places = [p for p in places if not p.startswith("param:")]  # ZeRO 3 shards them
    program.compile(tools, mesh, places, artifact)
    pairs, floor, alone, against_jax = [], [], [], []
    for _ in range(rounds):
        ms, ours = program.run(tools, artifact, 4, 1)
        theirs = torchrun(sides.ROOT, case, program.size)
        other = program.time_of(theirs)
        pairs.append((ms, other))
        floor.append((program.products(artifact, 4, 1), other))
        if case == "gpt-dp4":
            alone.append((program.time_of(torchrun(sides.ROOT, "gpt-alone", program.size)), other))
        if jax:
            theirs_jax = last_json([jax, sides.ROOT / "benchmarks/training_step_jax.py", case, STEPS], {})
            against_jax.append((ms, statistics.median(theirs_jax["step_ms"])))
    report.pair(f"{TITLES[program.size]}, {mesh}", CASES[case], "ms", pairs)
    report.note(f"    largest difference of the losses of {STEPS} steps: {difference(ours, theirs['losses']):.1e}")
    report.pair("  its products alone", CASES[case], "ms", floor)
    if alone:
        report.pair("  PyTorch's step without communication", CASES[case], "ms", alone)
    if jax:
        report.pair(f"{TITLES[program.size]}, {mesh}", "JAX, 4 devices", "ms", against_jax)


def difference(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
