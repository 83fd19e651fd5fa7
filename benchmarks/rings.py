# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Causal attention over a sharded sequence, whose keys and values are gathered or go around a ring (--ring-attention): what a step takes on CPU ranks,
without a link and over an emulated one (SHARDRT_LINK) on which moving one block of keys takes `--share` of the time that a rank computes with a block,
what each rank computes and waits, and the arena of the largest rank. Prints one JSON object.

    .venv/bin/python benchmarks/rings.py --ranks 2 --length 4096

`gathered`, `ring` and `balanced` are the forms, `auto` is what `shardc compile` makes of the program for the machine as measured. `predicted_ms` is its
step by the cost model. Steps are the shortest of all runs, one thread for each rank: one that other programs disturb says nothing of this one. `compute_ms`
of each rank is the least of several traces without a link. `cpu_ms` is the time of processors that all ranks take for a step, which other work on the
machine changes least: it is about the same for all forms, since they compute the same. `work` is
what the busiest rank computes over the mean of all, by the pairs of a query and a key that it sees: with the ranks on processors of their own, the time of
a step follows it."""
import argparse
import json
import os
import pathlib
import re
import resource
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

from overlap import BUILD, call

FORMS = {"gathered": "off", "ring": "all", "balanced": "balanced", "auto": "auto"}


def model(layers, heads, length, depth):
    """Attention, whose result is the query of the next one; before placement."""
    type_ = f"tensor<1x{heads}x{length}x{depth}xf32>"
    arguments = ", ".join(f'%{name}: {type_} {{dist.kind = "input", dist.name = "{name}"}}' for name in "qkv")
    body, last = "", "%q"
    for i in range(layers):
        body += f"  %y{i} = aten.scaled_dot_product_attention {last}, %k, %v causal : ({type_}, {type_}, {type_}) -> {type_}\n"
        last = f"%y{i}"
    return f'func.func @forward({arguments}) -> ({type_} {{dist.kind = "output", dist.name = "y"}}) {{\n{body}  return {last} : {type_}\n}}\n'


class Rings:
    def __init__(self, folder, ranks, layers, heads, length, depth, share, steps):
        self.folder, self.ranks, self.steps = folder, ranks, steps
        (folder / "model.mlir").write_text(model(layers, heads, length, depth))
        random = np.random.default_rng(0)
        save_file({name: random.standard_normal((1, heads, length, depth)).astype(np.float32) for name in "qkv"}, folder / "inputs")
        block_bytes = heads * length // ranks * depth * 4
        self.compile("gathered")
        # The last rank has all keys, of which it sees all but half of its own.
        compute_ms = max(self.computed("gathered")) / layers / (ranks - 0.5)
        self.link = f"0,{block_bytes / (share * compute_ms * 1e6)}"
        flops = 2 * 2 * heads * (length // ranks) ** 2 * depth
        gbps = block_bytes / (share * compute_ms * 1e6)
        (folder / "machine").write_text(
            f"name = measured\nranks_per_node = {ranks}\nlaunch_us = 5\nmemory_gb_per_s = 5\npeak_tflops f32 = {flops / (compute_ms * 1e9)}\n"
            + f"[permute intra algbw]\n{ranks} 0 {gbps}\n[all_gather intra algbw]\n{ranks} 0 {gbps * ranks / (ranks - 1)}\n")
        self.entries = {name: self.compile(name, "--topology", folder / "machine") for name in FORMS}

    def compile(self, name, *options):
        so = self.folder / f"{name}.so"
        call(BUILD / "bin/shardc", "compile", self.folder / "model.mlir", "--mesh", f"sp={self.ranks}",
             *(option for one in "qkv" for option in ("--place", f"input:{one}=sp:S(2)")), "--place", "output:*=sp:S(2)",
             "--ring-attention", FORMS[name], *options, "--save-stages", self.folder / f"{name}-stages", "-o", so)
        return json.loads(call(BUILD / "bin/shard-run", so, "--manifest"))["entries"][0]

    def run(self, name, link="", trace=None):
        options = ["--trace", trace] if trace else []
        return json.loads(call(BUILD / "bin/shard-run", self.folder / f"{name}.so", "--inputs", self.folder / "inputs", "--outputs", self.folder / "out",
                               "--threads", 1, "--steps", self.steps + 1, "--format", "json", *options, env={"SHARDRT_LINK": link}))

    def lanes(self, name, kind, link=""):
        """Of each rank and step, what a lane of the trace has, in milliseconds."""
        trace = self.folder / "trace.json"
        self.run(name, link, trace)
        spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and e["cat"] == kind]
        return [sum(e["dur"] for e in spans if e["pid"] == rank) / 1e3 / (self.steps + 1) for rank in range(self.ranks)]

    def computed(self, name):
        return self.lanes(name, "compute")

    def processors(self, name):
        """Milliseconds of processors for a step of all ranks."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.run(name)
        return (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) * 1e3 / (self.steps + 1)

    def check(self):
        """All forms give the same numbers, but for rounding."""
        results = []
        for name in FORMS:
            self.run(name)
            results.append(load_file(self.folder / "out")["y"])
        for result in results:
            assert np.abs(result - results[0]).max() < 1e-4 * np.abs(results[0]).max()

    def work(self, name):
        """The busiest rank over the mean."""
        done = call("bash", "-c", f"{BUILD}/bin/shard-opt {self.folder}/gathered-stages/3-local.mlir --dist-simplify-collectives --canonicalize "
                    f"--dist-ring-attention='mode={'all' if FORMS[name] == 'off' else FORMS[name]} topology={self.folder}/machine' --pass-statistics -o /dev/null 2>&1")
        most, mean = (int(re.search(rf"(\d+) {which}-pairs", done)[1]) for which in ("most", "mean"))
        return most / mean


def report(ranks=2, layers=2, heads=4, length=4096, depth=64, share=0.3, steps=3, rounds=3):
    samples = {}
    with tempfile.TemporaryDirectory() as folder:
        rings = Rings(pathlib.Path(folder), ranks, layers, heads, length, depth, share, steps)
        rings.check()
        for _ in range(rounds):
            for name in FORMS:
                for link in ("", rings.link):
                    samples.setdefault((name, bool(link)), []).append(rings.run(name, link)["step_ms"]["min"])
        return {"ranks": ranks, "cores": os.cpu_count(), "layers": layers, "heads": heads, "length": length, "depth": depth, "share": share,
                "forms": {name: {
                    "step_ms": min(samples[name, False]), "step_over_link_ms": min(samples[name, True]),
                    "predicted_ms": rings.entries[name]["predicted"]["step_us"] / 1e3,
                    "compute_ms": [min(of) for of in zip(*(rings.computed(name) for _ in range(rounds)))],
                    "cpu_ms": min(rings.processors(name) for _ in range(rounds)), "waiting_over_link_ms": rings.lanes(name, "waiting", rings.link), "work": rings.work(name),
                    "arena_mb": max(rings.entries[name]["arena_bytes"]) / 1e6} for name in FORMS}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("ranks", 2), ("layers", 2), ("heads", 4), ("length", 4096), ("depth", 64), ("share", 0.3), ("steps", 3), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    print(json.dumps(report(**vars(parser.parse_args())), indent=2))
