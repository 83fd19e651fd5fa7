# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much communication hides behind the products that it belongs to: the two products of an MLP under sequence parallelism
on four ranks, with an all-gather before the first and a reduce-scatter after the second, over an emulated link
(SHARDRT_LINK). Nothing else can run meanwhile. Variants: as placed (`unscheduled`), as it is optimised by default
(`default`), and with collectives and products in pieces, by the cost model (`auto`), in N pieces (`pieces_N`) and as a ring of permutes (`ring`). Prints
one JSON object.

    .venv/bin/python benchmarks/chunks.py --rows 2048 --width 1024 --share 0.6

`hidden` is the part of the link's time during which some rank computed, from the traces, and `predicted` what the cost
model says, with the link and the kernels as measured here. `step` is a variant's step over that of the default program:
medians of paired runs, over the link and without it."""
import argparse
import json
import math
import pathlib
import statistics
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

import overlap
from overlap import BUILD, WORLD, call


def program(width, rows):
    """One rank's program: as placement makes it for a column-wise product before a row-wise one."""
    part, shard = f"tensor<{width // WORLD}x{width}xf32>", f"tensor<{rows // WORLD}x{width}xf32>"
    whole, inner = f"tensor<{rows}x{width}xf32>", f"tensor<{rows}x{width // WORLD}xf32>"
    down = f"tensor<{width}x{width // WORLD}xf32>"

    def placed(kind, name, dim, rows):
        return (f'{{dist.global_type = tensor<{rows}x{width}xf32>, dist.kind = "{kind}", '
                f'dist.layout = #dist.layout<#mesh, [S({dim})]>, dist.name = "{name}"}}')

    return (f'#mesh = #dist.mesh<["tp" = {WORLD}]>\n#tp = #dist.axes<#mesh, ["tp"]>\n'
            f"module attributes {{dist.mesh = #mesh}} {{\n"
            f'  func.func @forward(%up: {part} {placed("parameter", "up", 0, width)}, '
            f'%down: {down} {placed("parameter", "down", 1, width)}, %x: {shard} {placed("input", "x", 0, rows)}) -> '
            f'({shard} {placed("output", "y", 0, rows)}) {{\n'
            f"    %g = dist.all_gather over #tp %x dim 0 : ({shard}) -> {whole}\n"
            f"    %a = aten.linear %g, %up : ({whole}, {part}) -> {inner}\n"
            f"    %b = aten.gelu %a : ({inner}) -> {inner}\n"
            f"    %p = aten.linear %b, %down : ({inner}, {down}) -> {whole}\n"
            f"    %y = dist.reduce_scatter sum over #tp %p dim 0 : ({whole}) -> {shard}\n"
            f"    return %y : {shard}\n  }}\n}}\n")


class Chunks(overlap.Variants):
    def __init__(self, folder, width, rows, share, pieces=(2, 4)):
        self.folder, self.layers, self.width, self.rows = folder, 2, width, rows
        random = np.random.default_rng(0)
        save_file({name: (random.standard_normal((width, width)) / width ** 0.5).astype(np.float32)
                   for name in ("up", "down")}, folder / "weights")
        save_file({"x": random.standard_normal((rows, width)).astype(np.float32)}, folder / "inputs")
        self.artifacts, self.predicted = {}, {}
        source = folder / "unscheduled.mlir"
        source.write_text(program(width, rows))
        self.compile("unscheduled", "cpu-local")
        self.measure(share)
        self.compile("unscheduled", folder / "machine")
        for name, chunks in {"default": "off", "auto": "auto", "ring": "ring", **{f"pieces_{n}": n for n in pieces}}.items():
            call(BUILD / "bin/shard-opt", source, "-o", folder / f"{name}.mlir", "--mlir-print-debuginfo",
                 f"--shardc-optimize-collectives=topology={folder / 'machine'} chunk-collectives={chunks} memory-limit=4GB")
            self.compile(name, folder / "machine")

    def compile(self, name, topology):
        self.artifacts[name] = self.folder / f"{name}.so"
        call(BUILD / "bin/shardc", "compile", self.folder / f"{name}.mlir", "--topology", topology, "-o", self.artifacts[name])
        manifest = json.loads(call(BUILD / "bin/shard-run", self.artifacts[name], "--manifest"))
        self.predicted[name] = next(e for e in manifest["entries"] if e["name"] == self.entry)["predicted"]

    def measure(self, share, steps=4):
        """A link that takes `share` of the compute time for both collectives, and a machine that is as fast as this one."""
        trace = self.folder / "compute.json"
        self.compute_ms = self.run("unscheduled", steps, trace=trace)["per_step_and_rank_ms"]["compute"]
        self.transfer_us = share * self.compute_ms * 1e3 / 2
        size = self.rows * self.width * 4
        self.link = f"0,{size * (WORLD - 1) / WORLD / (self.transfer_us * 1e3)}"
        spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and e["cat"] == "compute"]
        us = {kind: statistics.mean(e["dur"] for e in spans if kind in e["name"]) for kind in ("linear", "gelu")}
        inner = self.width / WORLD
        (self.folder / "machine").write_text(
            f"name = measured\nranks_per_node = {WORLD}\nlaunch_us = 1\n"
            f"peak_tflops f32 = {2 * self.rows * self.width * inner / us['linear'] * 1e-6}\n"
            f"memory_gb_per_s = {2 * self.rows * inner * 4 / us['gelu'] * 1e-3}\n"
            + "".join(f"[{kind} intra algbw]\n{WORLD} 0 {bytes / us * 1e-3}\n" for kind, bytes, us in (
                ("all_gather", size, self.transfer_us), ("reduce_scatter", size, self.transfer_us),
                ("permute", size / WORLD, self.transfer_us / (WORLD - 1)))))

    def check(self):
        """All variants compute the same, and numpy too; kernels may round a row as it lies in their tiles."""
        weights, x = load_file(self.folder / "weights"), load_file(self.folder / "inputs")["x"].astype(np.float64)
        inner = x @ weights["up"].astype(np.float64).T
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / 2 ** 0.5))
        expected = inner @ weights["down"].astype(np.float64).T
        for name in self.artifacts:
            self.run(name, 1)
            off = np.abs(load_file(self.folder / f"{name}.out")["y"] - expected).max() / np.abs(expected).max()
            assert off < 2e-6, f"{name} is {off:.3g} of the scale off"

    def each_us(self, collectives, steps):
        return 2 * self.transfer_us * steps / collectives


def report(width, rows, share, steps, rounds):
    samples, hidden = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        variants = Chunks(pathlib.Path(folder), width, rows, share)
        variants.check()
        for _ in range(rounds):
            for name in variants.artifacts:
                for over in ("", variants.link):
                    samples.setdefault((name, bool(over)), []).append(variants.run(name, steps, over)["step_ms"]["median"])
                hidden.setdefault(name, []).append(variants.hidden(name, steps))
    result = {"ranks": WORLD, "width": width, "rows": rows, "compute_ms": variants.compute_ms,
              "link_ms": 2 * variants.transfer_us / 1e3, "variants": {}}
    for name in variants.artifacts:
        step = {over: statistics.median(a / b for a, b in zip(samples[name, over], samples["default", over]))
                for over in (False, True)}
        result["variants"][name] = {
            "step_over_link_ms": statistics.median(samples[name, True]), "step": step[True], "step_without_link": step[False],
            "hidden": statistics.median(hidden[name]), "predicted": variants.predicted_hidden(name),
            "predicted_step_ms": variants.predicted[name]["step_us"] / 1e3}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=2048, help="of the whole batch")
    parser.add_argument("--share", type=float, default=0.6, help="the link's time over the compute time")
    parser.add_argument("--steps", type=int, default=6, help="in one process")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each variant, taking turns")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
