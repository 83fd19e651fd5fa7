# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much communication hides behind compute: a forward whose weights are fully sharded over four ranks and gathered layer
by layer, over an emulated link (SHARDRT_LINK): as placement made it (`unscheduled`), as `shardc compile` makes it
(`default`), and scheduled by hand (`early_N`: each gather N gathers early; `half`: every other gather one early). Prints one JSON object.

    .venv/bin/python benchmarks/overlap.py --layers 12 --width 1024 --rows 1024 --trace traces

`hidden` is the part of the link's time during which some rank computed, from the traces; what is left is the time that
all ranks waited for data on the link. It holds on a busy machine too. `predicted` is what the optimiser's cost model says of the
same program, with the link's time and the kernels' times as measured here; `bound` is the most that any schedule could hide; `same_order` whether it puts any two variants in
another order than the traces do. `overlap` says the same by steps: 1 - (step over the link - step without) / (the same
of the unscheduled program). `without_link` is a variant's step over the unscheduled program's where nothing has to be
hidden: the median of paired runs.

With `--gradients`, the program is the backward of such a model, with its loss, under data parallelism: each rank has all weights and
a part of the rows, and the gradient of each weight is all-reduced (`early`: started where it is made and waited for in the end,
by hand).

    .venv/bin/python benchmarks/overlap.py --gradients"""
import argparse
import json
import os
import pathlib
import re
import resource
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


def model(layers, width, rows, loss=False):
    """A chain of linear layers and activations, before placement; with `loss`, the mean of its result."""
    weight, value = f"tensor<{width}x{width}xf32>", f"tensor<{rows}x{width}xf32>"
    arguments = "".join(f'%w{i}: {weight} {{dist.kind = "parameter", dist.name = "layers.{i}.weight"}}, '
                        for i in range(layers))
    body, last, type_ = "", "%x", value
    for i in range(layers):
        body += f"  %y{i} = aten.linear {last}, %w{i} : ({value}, {weight}) -> {value}\n"
        body += f"  %z{i} = aten.gelu %y{i} : ({value}) -> {value}\n"
        last = f"%z{i}"
    if loss:
        body += f"  %loss = aten.mean {last} : ({value}) -> tensor<f32>\n"
        last, type_ = "%loss", "tensor<f32>"
    return (f'func.func @forward({arguments}%x: {value} {{dist.kind = "input", dist.name = "x"}}) -> '
            f'({type_} {{dist.kind = "output", dist.name = "y"}}) {{\n{body}  return {last} : {type_}\n}}\n')


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


def function(program, name):
    """Where the text of one function of a program begins and ends."""
    begin = program.index(f"func.func @{name}(")
    return begin, re.compile(r"^  \}", re.M).search(program, begin).start()


REDUCE = re.compile(r"^    (%\w+) = (dist\.all_reduce .*) : (tensor<[^>]*>)(.*)$", re.M)


def wait_last(program, name):
    """The program with every all-reduce of a function started in order of the backward, where its operand has been made, and
    waited for before the return."""
    begin, end = function(program, name)
    lines, starts, waits = program[begin:end].splitlines(keepends=True), {}, ""
    for i, line in enumerate(lines):
        if match := REDUCE.match(line):
            operand = re.findall(r"%\w+", match[2])[0]
            starts[operand] = f"    %early{i} = {match[2]} : ({match[3]}) -> !dist.future<{match[3]}>{match[4]}\n"
            waits += f"    {match[1]} = dist.wait %early{i} : !dist.future<{match[3]}>\n"
            lines[i] = ""
    for i, line in enumerate(lines):
        made = re.match(r"    (%\w+) = ", line)
        lines[i] = waits * line.startswith("    return ") + line + starts.pop(made[1] if made else "", "")
    assert not starts, f"not made by one line each: {list(starts)}"
    return program[:begin] + "".join(lines) + program[end:]


class Variants:
    """The variants of one model. `share` is the link's time over the compute time, both of one rank's step."""

    entry, collective, world = "forward", "all_gather", WORLD
    moved = (WORLD - 1) / WORLD  # of a weight, by a rank, in one collective
    products = ("linear",)
    plan = ["--place", "param:*=dp:S(0)", "--place", "input:x=dp:S(0)"]

    def __init__(self, folder, layers, width, rows, share):
        self.folder, self.layers, self.width, self.rows = folder, layers, width, rows
        source = folder / "model.mlir"
        source.write_text(self.source())
        random = np.random.default_rng(0)
        save_file({f"layers.{i}.weight": (random.standard_normal((width, width)) * (2 / width) ** 0.5).astype(np.float32)
                   for i in range(layers)}, folder / "weights")
        save_file({"x": random.standard_normal((rows, width)).astype(np.float32)}, folder / "inputs")
        self.artifacts = {"default": folder / "default.so"}
        call(BUILD / "bin/shardc", "compile", source, "--mesh", f"dp={WORLD}", *self.plan, "--save-stages", folder / "stages",
             "-o", self.artifacts["default"])
        local = (folder / "stages/3-local.mlir").read_text()
        programs = {"unscheduled": local, "default": (folder / "stages/4-scheduled.mlir").read_text(), **self.by_hand(local)}
        self.measure(share)
        self.predicted = {}
        for name, program in programs.items():
            (folder / f"{name}.mlir").write_text(program)
            self.artifacts[name] = folder / f"{name}.so"
            # What is partitioned already is compiled as it is.
            call(BUILD / "bin/shardc", "compile", folder / f"{name}.mlir", "--topology", folder / "machine", "-o",
                 self.artifacts[name])
            manifest = json.loads(call(BUILD / "bin/shard-run", self.artifacts[name], "--manifest"))
            entry = next(e for e in manifest["entries"] if e["name"] == self.entry)
            self.predicted[name] = entry["predicted"]

    def source(self):
        return model(self.layers, self.width, self.rows)

    def by_hand(self, local):
        """Programs that are scheduled by hand, by name."""
        return {"half": start_early(local, 1, every=2), "early_1": start_early(local, 1), "early_2": start_early(local, 2)}

    @property
    def bound(self):
        """Nothing can run during the first gather, or during the last all-reduce: what makes its operand is over."""
        return 1 - 1 / self.layers

    def measure(self, share, steps=4):
        """What the ranks compute, cores shared as they are, and a link that is as slow; both as a target description."""
        trace = self.folder / "compute.json"
        self.compute_ms = float("inf")
        for _ in range(3):  # the least: one that other programs disturb says nothing of this one
            timed = self.run("default", steps, trace=trace)["per_step_and_rank_ms"]["compute"]
            if timed < self.compute_ms:
                self.compute_ms, events = timed, json.loads(trace.read_text())["traceEvents"]
        self.set_link(share * self.compute_ms * 1e3 / self.layers)
        spans = [e for e in events if e["ph"] == "X" and e["cat"] == "compute"]
        # Means: together they are the compute time that the link is a share of.
        self.kernels_us = {name: statistics.mean(e["dur"] for e in spans if e["name"] == name) for name in (*self.products, "gelu")}
        (self.folder / "machine").write_text(self.machine())

    def set_link(self, transfer_us):
        """A link that takes so long for a weight."""
        self.transfer_us = transfer_us
        self.link = f"0,{self.width * self.width * 4 * self.moved / (transfer_us * 1e3)}"

    def machine(self):
        """The target description of that link and of the kernels as measured."""
        us, rows, weight = self.kernels_us, self.rows / WORLD, self.width * self.width * 4
        return (f"name = measured\nranks_per_node = {WORLD}\nlaunch_us = 1\n"
                f"peak_tflops f32 = {2 * rows * self.width ** 2 / statistics.mean(us[p] for p in self.products) * 1e-6}\n"
                f"memory_gb_per_s = {2 * rows * self.width * 4 / us['gelu'] * 1e-3}\n"
                + "".join(f"[{kind} intra algbw]\n{WORLD} 0 {weight / self.transfer_us * 1e-3}\n"
                          for kind in sorted({"all_gather", self.collective})))

    def run(self, name, steps, link="", trace=None):
        options = ["--trace", trace] if trace else []
        return json.loads(call(
            BUILD / "bin/shard-run", self.artifacts[name], "--entry", self.entry, "--weights", self.folder / "weights", "--inputs",
            self.folder / "inputs", "--outputs", self.folder / f"{name}.out", "--threads", 1, "--steps", steps + 1,
            "--format", "json", *options, env={"SHARDRT_LINK": link}))

    def hidden(self, name, steps):
        """The part of the link's time that is hidden. A collective's event ends when its data have crossed the link, which
        takes `transfer_us`; exposed is what the computing thread waits of that, on the rank that waits least: the
        others had been waiting for this one already."""
        trace = self.folder / f"{name}.json"
        self.run(name, steps, self.link, trace=trace)
        # The sum of the loss is a few bytes, for which the link takes no time.
        spans = [e for e in json.loads(trace.read_text())["traceEvents"]
                 if e["ph"] == "X" and (e["cat"] != "communication" or e["args"]["bytes"] > 64)]
        transfer_us = self.each_us(sum(e["pid"] == 0 and e["cat"] == "communication" for e in spans), steps)
        exposed = []  # by rank, then by collective
        for rank in range(self.world):
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

    def hidden_now(self, names, steps):
        """`hidden` of several variants, in turn, over a link that is as slow beside what the ranks compute as it was when that was
        measured for the cost model: the machine may be busy with other work by now, or not any more. `busy` then is how many times as
        long the ranks took to compute as with all processors to themselves, by the time of processors that they have used."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        times = [self.run(names[0], steps, trace=self.folder / "now.json")["per_step_and_rank_ms"]["compute"] for _ in range(2)]
        used_ms = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) * 1e3
        self.busy = sum(times) * (steps + 1) * min(self.world, len(os.sched_getaffinity(0))) / used_ms
        now, planned = min(times), self.transfer_us
        self.set_link(planned * now / self.compute_ms)
        try:
            return {name: self.hidden(name, steps) for name in names}
        finally:
            self.set_link(planned)

    def each_us(self, collectives, steps):
        """What the link takes for each of so many collectives in so many steps."""
        return self.transfer_us

    def predicted_hidden(self, name):
        return 1 - self.predicted[name]["exposed_us"] / (self.layers * self.transfer_us)

    def check(self):
        """All variants compute the same."""
        results = {name: (self.run(name, 1), load_file(self.folder / f"{name}.out"))[1] for name in self.artifacts}
        for name, values in results.items():
            for output, value in values.items():
                same = np.array_equal(value, results["unscheduled"][output])
                assert same, f"{output} of {name} differs from the unscheduled program"


class Gradients(Variants):
    """The backward of the model under data parallelism."""

    entry, collective = "gradients", "all_reduce"
    moved = 2 * (WORLD - 1) / WORLD
    products = ("linear", "matmul", "tensordot")
    plan = ["--place", "input:x=dp:S(0)", "--gradients", "y"]

    def source(self):
        return model(self.layers, self.width, self.rows, loss=True)

    def by_hand(self, local):
        return {"early": wait_last(wait_last(local, "forward"), "gradients")}


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


def report(layers=12, width=1024, rows=1024, steps=6, rounds=5, share=0.3, trace=None, gradients=False):
    """Everything; with a folder for `trace`, also traces of every variant over the link."""
    samples, hidden = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        variants = (Gradients if gradients else Variants)(pathlib.Path(folder), layers, width, rows, share)
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
                (trace / f"{name}.txt").write_text(draw(trace / f"{name}.json", layers + gradients))
    step = {key: statistics.median(values) for key, values in samples.items()}
    hidden = {name: statistics.median(values) for name, values in hidden.items()}
    predicted = {name: variants.predicted_hidden(name) for name in variants.artifacts}
    exposed = {name: step[name, True] - step[name, False] for name in variants.artifacts}
    result = {"ranks": WORLD, "cores": os.cpu_count(), "layers": layers, "width": width, "rows": rows,
              "compute_ms": variants.compute_ms, "link_ms": layers * variants.transfer_us / 1e3,
              "bound": variants.bound, "same_order": same_order(predicted, hidden), "variants": {}}
    for name in variants.artifacts:
        pairs = zip(samples[name, False], samples["unscheduled", False])
        result["variants"][name] = {
            "step_ms": step[name, False], "step_over_link_ms": step[name, True], "hidden": hidden[name],
            "of_bound": hidden[name] / variants.bound,
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
    parser.add_argument("--gradients", action="store_true", help="the backward under data parallelism")
    parser.add_argument("--trace", type=pathlib.Path,
                        help="folder for traces of every variant over the link: for Chrome, and drawn as text")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
