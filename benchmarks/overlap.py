# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much communication hides behind compute: a forward whose weights are fully sharded over four ranks and gathered layer
by layer, over an emulated link (SHARDRT_LINK): as placement made it (`unscheduled`), as `shardc compile` makes it
(`default`), and scheduled by hand (`early_N`: each gather N gathers early; `half`: every other gather one early). Prints one JSON object.

    .venv/bin/python benchmarks/overlap.py --layers 12 --width 1024 --rows 1024 --trace traces

`hidden` is the part of the link's time during which some rank computed, from the traces; what is left is the time that
all ranks waited for data on the link. It holds on a busy machine too. `predicted` is what the optimiser's cost model says of the
same program, with the link's time and the kernels' times as measured here; `same_order` whether it puts any two variants in
another order than the traces do. `overlap` says the same by steps: 1 - (step over the link - step without) / (the same
of the unscheduled program). `without_link` is a variant's step over the unscheduled program's where nothing has to be
hidden: the median of paired runs."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

BUILD = pathlib.Path(os.environ.get("SHARDC_BUILD", pathlib.Path(__file__).resolve().parent.parent / "build"))
WORLD = 4


def call(*command, env=None):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, env={**os.environ, **(env or {})})
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout


def model(layers, width, rows):
    """A chain of linear layers and activations, before placement."""
    weight, value = f"tensor<{width}x{width}xf32>", f"tensor<{rows}x{width}xf32>"
    arguments = "".join(f'%w{i}: {weight} {{dist.kind = "parameter", dist.name = "layers.{i}.weight"}}, '
                        for i in range(layers))
    body, last = "", "%x"
    for i in range(layers):
        body += f"  %y{i} = aten.linear {last}, %w{i} : ({value}, {weight}) -> {value}\n"
        body += f"  %z{i} = aten.gelu %y{i} : ({value}) -> {value}\n"
        last = f"%z{i}"
    return (f'func.func @forward({arguments}%x: {value} {{dist.kind = "input", dist.name = "x"}}) -> '
            f'({value} {{dist.kind = "output", dist.name = "y"}}) {{\n{body}  return {last} : {value}\n}}\n')


GATHER = re.compile(r"^    (%\w+) = (dist\.all_gather .*) : \((.*)\) -> (tensor<[^>]*>)(.*)$", re.M)


def start_early(program, distance, every=1):
    """The program with gathers of parameters started `distance` gathers before their use, one in `every`, and the others
    right there: a schedule by hand."""
    gathers = list(GATHER.finditer(program))
    starts = [""] * len(gathers)  # by gather in front of which they stand
    for i, g in enumerate(gathers):
        ahead = distance if (i + 1) % every == 0 else 0
        starts[max(i - ahead, 0)] += f"    %early{i} = {g[2]} : ({g[3]}) -> !dist.future<{g[4]}>{g[5]}\n"
    out, at = "", 0
    for i, g in enumerate(gathers):
        out += program[at:g.start()] + starts[i] + f"    {g[1]} = dist.wait %early{i} : !dist.future<{g[4]}>"
        at = g.end()
    return out + program[at:]


class Variants:
    """The variants of one model. `share` is the link's time over the compute time, both of one rank's step."""

    def __init__(self, folder, layers, width, rows, share):
        self.folder, self.layers, self.width, self.rows = folder, layers, width, rows
        source = folder / "model.mlir"
        source.write_text(model(layers, width, rows))
        random = np.random.default_rng(0)
        save_file({f"layers.{i}.weight": (random.standard_normal((width, width)) * (2 / width) ** 0.5).astype(np.float32)
                   for i in range(layers)}, folder / "weights")
        save_file({"x": random.standard_normal((rows, width)).astype(np.float32)}, folder / "inputs")
        self.artifacts = {"default": folder / "default.so"}
        call(BUILD / "bin/shardc", "compile", source, "--mesh", f"dp={WORLD}", "--place", "param:*=dp:S(0)",
             "--place", "input:x=dp:S(0)", "--save-stages", folder / "stages", "-o", self.artifacts["default"])
        local = (folder / "stages/3-local.mlir").read_text()
        programs = {"unscheduled": local, "default": (folder / "stages/4-scheduled.mlir").read_text(),
                    "half": start_early(local, 1, every=2), "early_1": start_early(local, 1), "early_2": start_early(local, 2)}
        self.measure(share)
        self.predicted = {}
        for name, program in programs.items():
            (folder / f"{name}.mlir").write_text(program)
            self.artifacts[name] = folder / f"{name}.so"
            # What is partitioned already is compiled as it is.
            call(BUILD / "bin/shardc", "compile", folder / f"{name}.mlir", "--topology", folder / "machine", "-o",
                 self.artifacts[name])
            manifest = json.loads(call(BUILD / "bin/shard-run", self.artifacts[name], "--manifest"))
            self.predicted[name] = manifest["entries"][0]["predicted"]

    def measure(self, share, steps=4):
        """What the ranks compute, cores shared as they are, and a link that is as slow; both as a target description."""
        trace = self.folder / "compute.json"
        timed = self.run("default", steps, trace=trace)
        self.compute_ms = timed["per_step_and_rank_ms"]["compute"]
        self.transfer_us = share * self.compute_ms * 1e3 / self.layers
        weight = self.width * self.width * 4
        self.link = f"0,{weight * (WORLD - 1) / WORLD / (self.transfer_us * 1e3)}"
        spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and e["cat"] == "compute"]
        us = {name: statistics.median(e["dur"] for e in spans if e["name"] == name) for name in ("linear", "gelu")}
        rows = self.rows / WORLD
        (self.folder / "machine").write_text(
            f"name = measured\nranks_per_node = {WORLD}\nlaunch_us = 1\n"
            f"peak_tflops f32 = {2 * rows * self.width ** 2 / us['linear'] * 1e-6}\n"
            f"memory_gb_per_s = {2 * rows * self.width * 4 / us['gelu'] * 1e-3}\n"
            f"[all_gather intra algbw]\n{WORLD} 0 {weight / self.transfer_us * 1e-3}\n")

    def run(self, name, steps, link="", trace=None):
        options = ["--trace", trace] if trace else []
        return json.loads(call(
            BUILD / "bin/shard-run", self.artifacts[name], "--weights", self.folder / "weights", "--inputs",
            self.folder / "inputs", "--outputs", self.folder / f"{name}.out", "--threads", 1, "--steps", steps + 1,
            "--format", "json", *options, env={"SHARDRT_LINK": link}))

    def hidden(self, name, steps):
        """The part of the link's time that is hidden. A collective's event ends when its data have crossed the link, which
        takes `transfer_us`; exposed is what the computing thread waits of that, on the rank that waits least: the
        others had been waiting for this one already."""
        trace, transfer_us = self.folder / f"{name}.json", self.transfer_us
        self.run(name, steps, self.link, trace=trace)
        spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
        exposed = []  # by rank, then by collective
        for rank in range(WORLD):
            lane = {kind: sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["pid"] == rank and e["cat"] == kind)
                    for kind in ("communication", "waiting")}
            waits, first = lane["waiting"], 0
            exposed.append([])
            for begin, end in lane["communication"]:
                begin = max(begin, end - transfer_us)
                while first < len(waits) and waits[first][1] <= begin:
                    first += 1
                exposed[-1].append(0.0)
                for wait_begin, wait_end in waits[first:]:
                    if wait_begin >= end:
                        break
                    exposed[-1][-1] += min(end, wait_end) - max(begin, wait_begin)
        return 1 - sum(map(min, zip(*exposed))) / (len(exposed[0]) * transfer_us)

    def predicted_hidden(self, name):
        return 1 - self.predicted[name]["exposed_us"] / (self.layers * self.transfer_us)

    def check(self):
        """All variants compute the same."""
        results = {name: (self.run(name, 1), load_file(self.folder / f"{name}.out")["y"])[1] for name in self.artifacts}
        for name, value in results.items():
            assert np.array_equal(value, results["unscheduled"]), f"{name} differs from the unscheduled program"


def draw(trace, gathers, columns=96, rank=0):
    """The last step, of so many gathers, of one rank as text: a row for each lane, measured above predicted; `#` where it is
    busy at least half of a column's time."""
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == rank}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index" and e["pid"] == rank}
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == rank]
    begin = [e["ts"] for e in spans if lanes[e["tid"]] == "predicted communication"][-gathers]
    spans = [e for e in spans if e["ts"] >= begin - 1]
    width = (max(e["ts"] + e["dur"] for e in spans) - begin) / columns
    text = f"one column is {width / 1e3:.2f} ms\n"
    for tid in sorted(lanes, key=order.get):
        busy = [0.0] * columns
        for e in spans:
            if e["tid"] != tid:
                continue
            for column in range(columns):
                low, high = begin + column * width, begin + (column + 1) * width
                busy[column] += max(0.0, min(high, e["ts"] + e["dur"]) - max(low, e["ts"]))
        text += f"{lanes[tid]:>24} " + "".join("#" if b >= width / 2 else "." for b in busy) + "\n"
    return text


def same_order(predicted, measured, least=0.1):
    """Whether no two variants are in another order; predictions closer than `least` of the link's time are equal."""
    return all(measured[a] < measured[b] for a in predicted for b in predicted if predicted[a] + least < predicted[b])


def report(layers=12, width=1024, rows=1024, steps=6, rounds=5, share=0.3, trace=None):
    """Everything; with a folder for `trace`, also traces of every variant over the link."""
    samples, hidden = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        variants = Variants(pathlib.Path(folder), layers, width, rows, share)
        variants.check()
        for _ in range(rounds):
            for name in variants.artifacts:
                for over in ("", variants.link):
                    step = variants.run(name, steps, over)["step_ms"]["median"]
                    samples.setdefault((name, bool(over)), []).append(step)
                hidden.setdefault(name, []).append(variants.hidden(name, steps))
        if trace:
            trace.mkdir(parents=True, exist_ok=True)
            for name in variants.artifacts:
                (trace / f"{name}.json").write_text((variants.folder / f"{name}.json").read_text())
                (trace / f"{name}.txt").write_text(draw(trace / f"{name}.json", layers))
    step = {key: statistics.median(values) for key, values in samples.items()}
    hidden = {name: statistics.median(values) for name, values in hidden.items()}
    predicted = {name: variants.predicted_hidden(name) for name in variants.artifacts}
    exposed = {name: step[name, True] - step[name, False] for name in variants.artifacts}
    result = {"ranks": WORLD, "cores": os.cpu_count(), "layers": layers, "width": width, "rows": rows,
              "compute_ms": variants.compute_ms, "link_ms": layers * variants.transfer_us / 1e3,
              "same_order": same_order(predicted, hidden), "variants": {}}
    for name in variants.artifacts:
        pairs = zip(samples[name, False], samples["unscheduled", False])
        result["variants"][name] = {
            "step_ms": step[name, False], "step_over_link_ms": step[name, True], "hidden": hidden[name],
            "predicted": predicted[name], "without_link": statistics.median(a / b for a, b in pairs),
            "overlap": 1 - exposed[name] / exposed["unscheduled"]}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=1024, help="of the whole batch")
    parser.add_argument("--steps", type=int, default=6, help="in one process")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each variant, taking turns")
    parser.add_argument("--share", type=float, default=0.3, help="the link's time over the compute time")
    parser.add_argument("--trace", type=pathlib.Path,
                        help="folder for traces of every variant over the link: for Chrome, and drawn as text")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
