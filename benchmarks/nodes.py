# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What collectives over several nodes gain when they are taken apart into some within the nodes and some between them
(dist-split-nodes): one collective of each kind on CPU ranks, over an emulated network of two levels (SHARDRT_LINK). Prints one
JSON object.

    .venv/bin/python benchmarks/nodes.py --nodes 2 --ranks 2 --within 20,2 --between 100,0.1

`step_ms` is the measured step and `predicted_ms` what the cost model says of the same program and network, each `whole`, `split`
and as the cost model decides (`auto`); `gain` is the whole step over the split one, the median of paired runs. All variants
compute the same: whole numbers, whose sums are exact."""
import argparse
import json
import pathlib
import statistics
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

from overlap import BUILD, call

KINDS = ("all_reduce", "reduce_scatter", "all_gather")
MODES = {"whole": "off", "split": "all", "auto": "auto"}


def program(kind, world, count, devices=None):
    """One rank's program: a collective of its `count` elements of x, in the order of `devices`."""
    order = f", devices = {list(devices)}" if devices else ""
    x, result, whole = count, {"all_reduce": count, "reduce_scatter": count // world, "all_gather": count * world}[kind], "R"
    if kind == "reduce_scatter":
        whole, op = "S(0)", f"dist.reduce_scatter sum over #ranks %x dim 0 : (tensor<{x}xf32>) -> tensor<{result}xf32>"
    elif kind == "all_gather":
        op = f"dist.all_gather over #ranks %x dim 0 : (tensor<{x}xf32>) -> tensor<{result}xf32>"
    else:
        op = f"dist.all_reduce sum over #ranks %x : tensor<{x}xf32>"
    total = count * world if kind == "all_gather" else count
    return (f'#mesh = #dist.mesh<["r" = {world}]{order}>\n#ranks = #dist.axes<#mesh, ["r"]>\n'
            f"module attributes {{dist.mesh = #mesh}} {{\n"
            f'  func.func @forward(%x: tensor<{x}xf32> {{dist.global_type = tensor<{x * world}xf32>, dist.kind = "input", '
            f'dist.layout = #dist.layout<#mesh, [S(0)]>, dist.name = "x"}}) -> (tensor<{result}xf32> '
            f'{{dist.global_type = tensor<{total}xf32>, dist.kind = "output", dist.layout = #dist.layout<#mesh, [{whole}]>, '
            f'dist.name = "y"}}) {{\n    %y = {op}\n    return %y : tensor<{result}xf32>\n  }}\n}}\n')


def target(nodes, ranks, within, between):
    """The emulated network as a target description; its bandwidths are those of rings, and of a full node between nodes."""
    rows = {"intra": (ranks, within), "inter": (nodes, between)}
    return (f"name = emulated\nranks_per_node = {ranks}\nmemory_gb_per_s = 10\nlaunch_us = 1\n"
            + "".join(f"[all_gather {level} busbw]\n{count} {link.replace(',', ' ')}\n" for level, (count, link) in rows.items()))


class Nodes:
    def __init__(self, folder, nodes, ranks, count, within, between, kinds=KINDS, devices=None):
        self.folder, self.world, self.link = folder, nodes * ranks, f"{within};{ranks}:{between}"
        self.x = np.random.default_rng(0).integers(-1000, 1000, count * self.world).astype(np.float32)
        save_file({"x": self.x}, folder / "inputs")
        (folder / "machine").write_text(target(nodes, ranks, within, between))
        self.artifacts, self.predicted_ms = {}, {}
        for kind in kinds:
            (folder / f"{kind}.mlir").write_text(program(kind, self.world, count, devices))
            for name, mode in MODES.items():
                stem = folder / f"{kind}.{name}"
                call(BUILD / "bin/shard-opt", folder / f"{kind}.mlir", "-o", f"{stem}.mlir",
                     f"--shardc-optimize-collectives=topology={folder / 'machine'} split-nodes={mode} memory-limit=8GB")
                call(BUILD / "bin/shardc", "compile", f"{stem}.mlir", "--topology", folder / "machine", "-o", f"{stem}.so")
                manifest = json.loads(call(BUILD / "bin/shard-run", f"{stem}.so", "--manifest"))
                self.predicted_ms[kind, name] = manifest["entries"][0]["predicted"]["step_us"] / 1e3
                self.artifacts[kind, name] = f"{stem}.so"

    def collectives(self, kind, name):
        """How many there are in a variant."""
        return (self.folder / f"{kind}.{name}.mlir").read_text().count(" = dist.") - (
            self.folder / f"{kind}.{name}.mlir").read_text().count(" = dist.wait")

    def run(self, kind, name, steps=1, link="", which="median"):
        out = self.folder / "out"
        report = json.loads(call(BUILD / "bin/shard-run", "-n", self.world, self.artifacts[kind, name], "--inputs",
                                 self.folder / "inputs", "--outputs", out, "--threads", 1, "--steps", steps + 1, "--format",
                                 "json", env={"SHARDRT_LINK": link}))
        expected = self.x if kind == "all_gather" else self.x.reshape(self.world, -1).sum(0)
        assert np.array_equal(load_file(out)["y"], expected), f"{kind} {name} computes something else"
        return report["step_ms"][which]


def report(nodes, ranks, megabytes, within, between, steps, rounds):
    result = {"nodes": nodes, "ranks_per_node": ranks, "within": within, "between": between, "kinds": {}}
    with tempfile.TemporaryDirectory() as folder:
        count = int(megabytes * 1e6) // 4 // (nodes * ranks) * nodes * ranks
        made = Nodes(pathlib.Path(folder), nodes, ranks, count, within, between)
        for kind in KINDS:
            step = {name: [] for name in MODES}
            for _ in range(rounds):
                for name in MODES:
                    step[name].append(made.run(kind, name, steps, made.link))
            predicted = {name: made.predicted_ms[kind, name] for name in MODES}
            result["kinds"][kind] = {
                "step_ms": {name: statistics.median(values) for name, values in step.items()}, "predicted_ms": predicted,
                "gain": statistics.median(a / b for a, b in zip(step["whole"], step["split"])),
                "predicted_gain": predicted["whole"] / predicted["split"]}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2, help="of each node")
    parser.add_argument("--megabytes", type=float, default=4, help="of a rank's operand")
    parser.add_argument("--within", default="20,2", help="latency in us and GB/s within a node")
    parser.add_argument("--between", default="100,0.1", help="the same of a full node, between nodes")
    parser.add_argument("--steps", type=int, default=6, help="in one process")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each variant, taking turns")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
