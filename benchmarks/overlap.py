# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much communication hides behind compute: a forward whose weights are fully sharded over four ranks and gathered layer
by layer, over an emulated link (SHARDRT_LINK): as placement made it, optimised, and scheduled by hand. Prints one JSON object.

    .venv/bin/python benchmarks/overlap.py --layers 12 --width 1024 --rows 1024 --trace traces

`hidden` is the part of the link's time during which some rank computed, from the traces; what is left is the time that
all ranks waited for data on the link. It holds on a busy machine too. `overlap` says the same by steps: 1 - (step over the
link - step without) / (the same of the unscheduled program). `without_link` is a variant's step over the
unscheduled program's where nothing has to be hidden."""
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


def start_early(program, distance):
    """The program with each gather of a parameter started `distance` gathers before its use: a schedule by hand."""
    gathers = list(GATHER.finditer(program))
    starts = [f"    %early{i} = {g[2]} : ({g[3]}) -> !dist.future<{g[4]}>{g[5]}\n" for i, g in enumerate(gathers)]
    out, at = "", 0
    for i, g in enumerate(gathers):
        now = starts[:distance + 1] if i == 0 else starts[i + distance:i + distance + 1]
        out += program[at:g.start()] + "".join(now) + f"    {g[1]} = dist.wait %early{i} : !dist.future<{g[4]}>"
        at = g.end()
    return out + program[at:]


class Variants:
    def __init__(self, folder, layers, width, rows):
        self.folder = folder
        source = folder / "model.mlir"
        source.write_text(model(layers, width, rows))
        random = np.random.default_rng(0)
        save_file({f"layers.{i}.weight": (random.standard_normal((width, width)) * (2 / width) ** 0.5).astype(np.float32)
                   for i in range(layers)}, folder / "weights")
        save_file({"x": random.standard_normal((rows, width)).astype(np.float32)}, folder / "inputs")
        self.artifacts = {"unscheduled": folder / "unscheduled.so", "optimised": folder / "optimised.so"}
        compile_it = (BUILD / "bin/shardc", "compile", source, "--mesh", f"dp={WORLD}", "--place", "param:*=dp:S(0)",
                      "--place", "input:x=dp:S(0)")
        call(*compile_it, "--keep-collectives", "--save-stages", folder / "stages", "-o", self.artifacts["unscheduled"])
        call(*compile_it, "-o", self.artifacts["optimised"])
        local = (folder / "stages/3-local.mlir").read_text()
        for distance in (1, 2):
            name = f"early_{distance}"
            (folder / f"{name}.mlir").write_text(start_early(local, distance))
            self.artifacts[name] = folder / f"{name}.so"
            call(BUILD / "bin/shardc", "compile", folder / f"{name}.mlir", "-o", self.artifacts[name])

    def run(self, name, steps, link="", trace=None):
        options = ["--trace", trace] if trace else []
        return json.loads(call(
            BUILD / "bin/shard-run", self.artifacts[name], "--weights", self.folder / "weights", "--inputs",
            self.folder / "inputs", "--outputs", self.folder / f"{name}.out", "--threads", 1, "--steps", steps + 1,
            "--format", "json", *options, env={"SHARDRT_LINK": link}))

    def hidden(self, name, steps, link, transfer_us):
        """The part of the link's time that is hidden. A collective's event ends when its data have crossed the link, which
        takes `transfer_us`; exposed is what the computing thread waits of that, on the rank that waits least: the
        others had been waiting for this one already."""
        trace = self.folder / f"{name}.json"
        self.run(name, steps, link, trace=trace)
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

    def check(self):
        """All variants compute the same."""
        results = {name: (self.run(name, 1), load_file(self.folder / f"{name}.out")["y"])[1] for name in self.artifacts}
        for name, value in results.items():
            assert np.array_equal(value, results["unscheduled"]), f"{name} differs from the unscheduled program"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=1024, help="of the whole batch")
    parser.add_argument("--steps", type=int, default=6, help="in one process")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each variant, taking turns")
    parser.add_argument("--share", type=float, default=0.3, help="the link's time over the compute time")
    parser.add_argument("--trace", type=pathlib.Path, help="folder for Chrome traces of every variant over the link")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        variants = Variants(pathlib.Path(folder), args.layers, args.width, args.rows)
        variants.check()
        # What the ranks compute, cores shared as they are, without waits.
        timed = variants.run("unscheduled", args.steps, trace=variants.folder / "trace")
        compute_ms = timed["per_step_and_rank_ms"]["compute"]
        wire_bytes = args.width * args.width * 4 * (WORLD - 1) / WORLD
        link_ms = args.share * compute_ms
        link = f"0,{args.layers * wire_bytes / (link_ms * 1e6)}"
        samples, hidden = {}, {}
        for _ in range(args.rounds):
            for name in variants.artifacts:
                for over in ("", link):
                    step = variants.run(name, args.steps, over)["step_ms"]["median"]
                    samples.setdefault((name, bool(over)), []).append(step)
                hidden.setdefault(name, []).append(variants.hidden(name, args.steps, link, link_ms * 1e3 / args.layers))
        if args.trace:
            args.trace.mkdir(parents=True, exist_ok=True)
            for name in variants.artifacts:
                (args.trace / f"{name}.json").write_text((variants.folder / f"{name}.json").read_text())
    step = {key: statistics.median(values) for key, values in samples.items()}
    exposed = {name: step[name, True] - step[name, False] for name in variants.artifacts}
    report = {"ranks": WORLD, "cores": os.cpu_count(), "layers": args.layers, "width": args.width, "rows": args.rows,
              "compute_ms": compute_ms, "link_ms": link_ms, "variants": {}}
    for name in variants.artifacts:
        report["variants"][name] = {
            "step_ms": step[name, False], "step_over_link_ms": step[name, True],
            "hidden": statistics.median(hidden[name]), "without_link": step[name, False] / step["unscheduled", False],
            "overlap": 1 - exposed[name] / exposed["unscheduled"]}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
