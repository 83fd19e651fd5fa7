# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the stages of `shardc explain` grow with the number of ops: CPU seconds and peak memory of each, over generated
decoders of so many ops, and the exponent of the growth from one size to the next (1 is linear).

  python benchmarks/large_graphs.py                          10k and 100k ops, tp=4
  python benchmarks/large_graphs.py --ops 10000,1000000 --mesh dp=2,tp=2 --json growth.json
  python benchmarks/large_graphs.py --write graph.mlir --ops 10000      only writes the graph

Seconds are of user and system CPU, which other programs on the machine change less than wall time. A stage's figure is
the difference between a run up to it and a run up to the stage before.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLAN = ("module:layers.*.{q,k,v}_proj=colwise", "module:layers.*.o_proj=rowwise",
        "module:layers.*.{gate,up}_proj=colwise", "module:layers.*.down_proj=rowwise")
BATCH, SEQUENCE, WIDTH, HEADS, HEAD, HIDDEN = 2, 16, 64, 4, 16, 176
# Stages in order: what it is called, and the passes that it adds.
STAGES = (("parse", ()), ("apply plan", ("dist-apply-plan{options}", "canonicalize", "func.func(aten-fold-masks)", "cse")),
          ("propagate", ("func.func(dist-propagate)",)), ("place", ("func.func(dist-place)",)),
          ("plan steps", ("dist-verify-stage{{stage=placed}}", "dist-plan-redistributions")),
          ("localise", ("dist-localize", "canonicalize", "cse", "dist-verify-stage{{stage=local}}")),
          ("specialise", ("dist-specialize",)))


class Writer:
    """Ops of one function in MLIR's text form, each with the location of its module and line."""

    def __init__(self, batch):
        self.batch, self.ops, self.arguments, self.values = batch, [], [], 0

    def type(self, *shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    def parameter(self, name, *shape):
        value = f"%a{len(self.arguments)}"
        self.arguments.append(f'{value}: {self.type(*shape)} {{dist.kind = "parameter", dist.name = "{name}"}}')
        return value, shape

    def op(self, text, module, shape, *operands):
        """`text` has a place {0}, {1}, ... for each operand; types follow."""
        value = f"%{self.values}"
        self.values += 1
        types = ", ".join(self.type(*s) for _, s in operands)
        result = f"({types}) -> {self.type(*shape)}"
        loc = f'loc(fused<"{module}">["node_{self.values}"("modeling.py":{10 + len(text)}:0)])'
        self.ops.append(f"    {value} = aten.{text.format(*(v for v, _ in operands))} : {result} {loc}\n")
        return value, shape

    def linear(self, x, module, width):
        weight = self.parameter(f"{module}.weight", width, x[1][-1])
        return self.op("linear {0}, {1}", module, (*x[1][:-1], width), x, weight)

    def norm(self, x, module):
        weight = self.parameter(f"{module}.weight", x[1][-1])
        return self.op(f"rms_norm {{0}} [{x[1][-1]}] weight({{1}})", module, x[1], x, weight)

    def heads(self, x, module):
        split = self.op(f"view {{0}} [{self.batch}, {SEQUENCE}, {HEADS}, {HEAD}]", module,
                        (self.batch, SEQUENCE, HEADS, HEAD), x)
        return self.op("transpose {0} [1, 2]", module, (self.batch, HEADS, SEQUENCE, HEAD), split)

    def layer(self, x, index):
        name = f"layers.{index}"
        normed = self.norm(x, f"{name}.input_norm")
        q, k, v = (self.heads(self.linear(normed, f"{name}.{p}_proj", WIDTH), name) for p in "qkv")
        attended = self.op("scaled_dot_product_attention {0}, {1}, {2} causal", name, q[1], q, k, v)
        back = self.op("transpose {0} [1, 2]", name, (self.batch, SEQUENCE, HEADS, HEAD), attended)
        merged = self.op(f"view {{0}} [{self.batch}, {SEQUENCE}, {WIDTH}]", name, x[1], back)
        x = self.op("add {0}, {1}", name, x[1], x, self.linear(merged, f"{name}.o_proj", WIDTH))
        normed = self.norm(x, f"{name}.post_norm")
        gate = self.linear(normed, f"{name}.gate_proj", HIDDEN)
        gated = self.op("silu {0}", name, gate[1], gate)
        wide = self.op("mul {0}, {1}", name, gate[1], gated, self.linear(normed, f"{name}.up_proj", HIDDEN))
        return self.op("add {0}, {1}", name, x[1], x, self.linear(wide, f"{name}.down_proj", WIDTH))


def write_graph(path, ops, batch=BATCH):
    """A decoder of at least so many ops; returns their exact number."""
    writer = Writer(batch)
    shape = (batch, SEQUENCE, WIDTH)
    x, layer = ("%x", shape), 0
    while len(writer.ops) < ops:
        x, layer = writer.layer(x, layer), layer + 1
    writer.arguments.append(f'%x: {writer.type(*shape)} {{dist.kind = "input", dist.name = "x"}}')
    with open(path, "w") as file:
        file.write(f"func.func @forward({', '.join(writer.arguments)}) -> ({writer.type(*shape)} "
                   f'{{dist.kind = "output", dist.name = "y"}}) {{\n')
        file.writelines(writer.ops)
        file.write(f"    return {x[0]} : {writer.type(*shape)}\n}}\n")
    return len(writer.ops)


def measure(command):
    """CPU seconds and peak bytes of a process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def stages(build, graph, mesh, places):
    """{stage: (CPU seconds of the stage, peak bytes up to it)}"""
    options = "{mesh=" + mesh + "".join(f" place={p}" for p in places) + "}"
    passes, before, out = [], 0.0, {}
    for name, added in STAGES:
        passes += [p.format(options=options) for p in added]
        seconds, peak = measure([build / "bin/shard-opt", graph, f"--pass-pipeline=builtin.module({','.join(passes)})",
                                 "-o", os.devnull])
        out[name] = (max(seconds - before, 0.0), peak)
        before = seconds
    places = [part for place in places for part in ("--place", place)]
    out["explain, all of it"] = measure([build / "bin/shardc", "explain", graph, "--mesh", mesh, *places, "-o", os.devnull])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="10000,100000", help="numbers of ops, ascending, with commas between")
    parser.add_argument("--mesh", default="tp=4")
    parser.add_argument("--place", action="append", default=[], help="more lines of a plan, beside the Megatron ones")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    parser.add_argument("--write", type=pathlib.Path, help="only write the graph of the first size to this file")
    args = parser.parse_args()
    sizes = [int(size) for size in args.ops.split(",")]
    if args.write:
        print(f"{args.write}: {write_graph(args.write, sizes[0])} ops")
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            graph = pathlib.Path(folder) / f"{size}.mlir"
            rows.append((write_graph(graph, size), stages(args.build, graph, args.mesh, (*PLAN, *args.place))))
            graph.unlink()
    print(f"mesh {args.mesh}\n{'stage':<20}" + "".join(f"{ops:>12} ops{'':>12}" for ops, _ in rows))
    report = []
    for name in rows[0][1]:
        line, last = f"{name:<20}", None
        for ops, figures in rows:
            seconds, peak = figures[name]
            exponent = None
            if last and last[1] > 0.02 and seconds > 0.02:
                exponent = math.log(seconds / last[1]) / math.log(ops / last[0])
            line += f"{seconds:9.2f} s {peak / 2**20:7.0f} MiB " + (f"^{exponent:4.2f} " if exponent is not None else "      ")
            report.append({"stage": name, "ops": ops, "cpu_s": seconds, "peak_bytes": peak, "exponent": exponent})
            last = (ops, seconds)
        print(line)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
