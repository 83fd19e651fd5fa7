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


class Program:
    """A model with a loss, exported, and batches for all steps, which are the same one."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.path, self.batches = folder / f"training_{name}.pt2", folder / f"training_{name}.batches.safetensors"

    def module(self):
        import models
        import sides
        if self.name == "gpt":
            module, _, inputs = models.training_gpt()
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

    def run(self, tools, program, ranks, threads):
        """(median step in ms, losses)"""
        import sides
        log = program.with_suffix(".log")
        log.unlink(missing_ok=True)
        sides.run([tools.shard_run, program, "-n", ranks, "--threads", threads, "--weights", self.path, "--batches", self.batches, "--steps", STEPS,
                   "--lr", OPTIMIZER["lr"], "--log", log])
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return statistics.median(line["seconds"] for line in lines[3:]) * 1e3, [line["loss"] for line in lines]


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
times, losses = [], []
for _ in range(STEPS):
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = run(**inputs)
    loss = loss if isinstance(loss, torch.Tensor) else loss[0]
    loss.backward()
    optimizer.step()
    times.append((time.perf_counter() - begin) * 1e3)
    losses.append(float(loss.detach()))
print(json.dumps({{"step_ms": sorted(times[3:]), "losses": losses}}))
"""
    return last_json([sys.executable, "-c", code], {})


def last_json(command, environment):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, env=os.environ | environment)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr[-3000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def torchrun(root, case):
    return last_json([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", root / "benchmarks/training_step_peers.py",
                      case, STEPS], {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})


def median(result):
    return statistics.median(result["step_ms"])


def section(report, tools, rounds, folder, jax):
    import sides
    import training_bytes
    report.section("Training: forward, backward and AdamW")
    gpt, gpt2 = Program("gpt", folder), Program("gpt2_124m", folder)
    for program in (gpt, gpt2):
        program.export()
    compile_ms = []
    for _ in range(rounds):
        begin = time.perf_counter()
        sides.run(gpt2.command(tools, "r=1", [], folder / "training_gpt2.so"))
        middle = time.perf_counter()
        sides.run([tools.shardc, "compile", gpt2.path, "--mesh", "r=1", "-o", folder / "training_gpt2_forward.so"])
        compile_ms.append(((middle - begin) * 1e3, (time.perf_counter() - middle) * 1e3))
    report.pair("shardc compile of GPT-2 124M's step, 1 rank", "shardc compile of the forward", "ms", compile_ms)
    for program, title in ((gpt, "GPT, 4 layers, 4 x 128 tokens"), (gpt2, "GPT-2 124M, 1 x 128 tokens")):
        artifact = folder / f"training_{program.name}.r1.so"
        sides.run(program.command(tools, "r=1", [], artifact))
        for threads in sorted({1, os.cpu_count()}):
            for compiled, other in ((False, "PyTorch eager"), (True, "torch.compile")):
                pairs, ours, theirs = [], None, None
                for _ in range(rounds):
                    ms, ours = program.run(tools, artifact, 1, threads)
                    theirs = pytorch(program, threads, compiled)
                    pairs.append((ms, median(theirs)))
                report.pair(f"{title}, {threads} thread{'s' * (threads > 1)}", other, "ms", pairs)
                report.note(f"    largest difference of the losses of {STEPS} steps: {difference(ours, theirs['losses']):.1e}")
    for case, other in CASES.items():
        _, mesh, places, _, _ = training_bytes.CASES[case]
        artifact = folder / f"training_{case}.so"
        places = [p for p in places if not p.startswith("param:")]  # ZeRO 3 shards them
        sides.run(gpt.command(tools, mesh, places, artifact))
        pairs, against_jax = [], []
        for _ in range(rounds):
            ms, ours = gpt.run(tools, artifact, 4, 1)
            theirs = torchrun(sides.ROOT, case)
            pairs.append((ms, median(theirs)))
            if jax:
                against_jax.append((ms, median(last_json([jax, sides.ROOT / "benchmarks/training_step_jax.py", case, STEPS], {}))))
        report.pair(f"GPT, 4 layers, {mesh}, one thread a rank", other, "ms", pairs)
        report.note(f"    largest difference of the losses of {STEPS} steps: {difference(ours, theirs['losses']):.1e}")
        if jax:
            report.pair(f"GPT, 4 layers, {mesh}, one thread a rank", "JAX, 4 devices", "ms", against_jax)


def difference(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
