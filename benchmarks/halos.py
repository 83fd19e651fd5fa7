# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of a halo exchange hides behind the interior: a chain of convolutions over an image that two ranks share, over an emulated link
(SHARDRT_LINK) on which an exchange takes `--share` of the time that a layer computes. Prints one JSON object.

    .venv/bin/python benchmarks/halos.py --layers 8 --channels 64 --size 192 --share 0.1 --trace traces

`whole` is the program with every convolution whole (`--split-windows off`), `split` as `shardc compile` makes it for that link. `hidden` is the part of the
link's time during which some rank computed, from the traces, and `predicted` what the cost model says of the same program. `step_ms` is without a link,
`step_over_link_ms` with it, `gain` what part of the step over the link the split saves, and `without_link` a step over that of `whole` where nothing has
to be hidden: medians of paired runs. `one_rank` is a rank alone with the whole image, compiled in both ways: the programs are the same."""
import argparse
import json
import os
import pathlib
import statistics
import tempfile

import numpy as np
from safetensors.numpy import save_file

import overlap
from overlap import BUILD, call


def model(layers, channels, size):
    """A chain of convolutions with a bias and activations, before placement."""
    weight, value, bias = f"tensor<{channels}x{channels}x3x3xf32>", f"tensor<1x{channels}x{size}x{size}xf32>", f"tensor<{channels}xf32>"
    arguments = "".join(f'%w{i}: {weight} {{dist.kind = "parameter", dist.name = "{i}.weight"}}, '
                        f'%b{i}: {bias} {{dist.kind = "parameter", dist.name = "{i}.bias"}}, ' for i in range(layers))
    body, last = "", "%x"
    for i in range(layers):
        body += (f"  %y{i} = aten.convolution {last}, %w{i} bias(%b{i}) stride [1, 1] padding [1, 1] dilation [1, 1] : "
                 f"({value}, {weight}, {bias}) -> {value}\n  %z{i} = aten.relu %y{i} : ({value}) -> {value}\n")
        last = f"%z{i}"
    return (f'func.func @forward({arguments}%x: {value} {{dist.kind = "input", dist.name = "x"}}) -> '
            f'({value} {{dist.kind = "output", dist.name = "y"}}) {{\n{body}  return {last} : {value}\n}}\n')


class Halos(overlap.Variants):
    collective, world, bound = "all_to_all", 2, 1

    def __init__(self, folder, layers, channels, size, share):
        self.folder, self.layers, self.channels, self.size = folder, layers, channels, size
        (folder / "model.mlir").write_text(model(layers, channels, size))
        random = np.random.default_rng(0)
        scale = (2 / (9 * channels)) ** 0.5
        save_file({**{f"{i}.weight": (random.standard_normal((channels, channels, 3, 3)) * scale).astype(np.float32) for i in range(layers)},
                   **{f"{i}.bias": np.zeros(channels, np.float32) for i in range(layers)}}, folder / "weights")
        save_file({"x": random.standard_normal((1, channels, size, size)).astype(np.float32)}, folder / "inputs")
        self.artifacts, self.predicted = {}, {}
        self.compile("default", "--split-windows", "off")
        self.measure(share)
        self.artifacts = {}
        self.compile("whole", "--split-windows", "off", "--topology", folder / "machine")
        self.compile("split", "--topology", folder / "machine")
        self.artifacts["unscheduled"] = self.artifacts["whole"]
        self.check()
        del self.artifacts["unscheduled"]

    def compile(self, name, *options, mesh="h=2"):
        self.artifacts[name] = self.folder / f"{name}.so"
        call(BUILD / "bin/shardc", "compile", self.folder / "model.mlir", "--mesh", mesh, "--place", "input:x=h:S(2)", *options,
             "--save-stages", self.folder / f"{name}-stages", "-o", self.artifacts[name])
        manifest = json.loads(call(BUILD / "bin/shard-run", self.artifacts[name], "--manifest"))
        self.predicted[name] = manifest["entries"][0]["predicted"]

    def measure(self, share, steps=4):
        """What the ranks compute, and a link that is as slow; both as a target description."""
        self.compute_ms = min(self.run("default", steps, trace=self.folder / "compute.json")["per_step_and_rank_ms"]["compute"]
                              for _ in range(3))
        self.set_link(share * self.compute_ms * 1e3 / self.layers)
        (self.folder / "machine").write_text(self.machine())

    def set_link(self, transfer_us):
        """A link that takes so long for a row."""
        self.transfer_us = transfer_us
        self.link = f"0,{self.row_bytes / (transfer_us * 1e3)}"

    @property
    def row_bytes(self):
        return self.channels * self.size * 4

    def machine(self):
        """The target description of that link, and of kernels that together take the time as measured."""
        flops = 2 * 9 * self.channels ** 2 * self.size * self.size / self.world
        return (f"name = measured\nranks_per_node = {self.world}\nlaunch_us = 5\nmemory_gb_per_s = 10\n"
                f"peak_tflops f32 = {flops / (self.compute_ms * 1e3 / self.layers) * 1e-6}\n"
                # Of a whole tensor, of which a rank sends what is not its own.
                + "".join(f"[{kind} intra algbw]\n{self.world} 0 {2 * self.row_bytes / self.transfer_us * 1e-3}\n"
                          for kind in ("all_gather", self.collective)))


def report(layers=8, channels=64, size=192, steps=4, rounds=5, share=0.1, trace=None):
    """Everything; with a folder for `trace`, also traces of both over the link."""
    samples, hidden = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        halos = Halos(pathlib.Path(folder), layers, channels, size, share)
        names = list(halos.artifacts)
        for split in ("off", "auto"):
            halos.compile(f"one rank, {split}", "--split-windows", split, "--topology", halos.folder / "machine", mesh="h=1")
        for _ in range(rounds):
            for name in names:
                for over in ("", halos.link):
                    samples.setdefault((name, bool(over)), []).append(halos.run(name, steps, over)["step_ms"]["median"])
                hidden.setdefault(name, []).append(halos.hidden(name, steps))
            for name in ("one rank, off", "one rank, auto"):
                samples.setdefault((name, False), []).append(halos.run(name, steps)["step_ms"]["median"])
        if trace:
            trace.mkdir(parents=True, exist_ok=True)
            for name in names:
                (trace / f"{name}.json").write_text((halos.folder / f"{name}.json").read_text())
                (trace / f"{name}.txt").write_text(overlap.draw(trace / f"{name}.json", layers))
    ratio = {key: statistics.median(a / b for a, b in zip(samples[key], samples["whole", key[1]])) for key in samples if key[0] in names}
    alone = zip(samples["one rank, auto", False], samples["one rank, off", False])
    return {"ranks": halos.world, "cores": os.cpu_count(), "layers": layers, "channels": channels, "size": size, "compute_ms": halos.compute_ms,
            "link_ms": layers * halos.transfer_us / 1e3, "one_rank": statistics.median(a / b for a, b in alone),
            "variants": {name: {
                "step_ms": statistics.median(samples[name, False]), "step_over_link_ms": statistics.median(samples[name, True]),
                "hidden": statistics.median(hidden[name]), "predicted": halos.predicted_hidden(name), "without_link": ratio[name, False],
                "gain": 1 - ratio[name, True]} for name in names}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--size", type=int, default=192, help="height and width of the image")
    parser.add_argument("--steps", type=int, default=4, help="in one process")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each variant, taking turns")
    parser.add_argument("--share", type=float, default=0.1, help="the link's time over the compute time")
    parser.add_argument("--trace", type=pathlib.Path, help="folder for traces of both over the link: for Chrome, and drawn as text")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
