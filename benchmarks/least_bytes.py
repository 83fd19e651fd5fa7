#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that small graphs with odd shapes move, beside the least that is possible, and whether each is right.

  .venv/bin/python benchmarks/least_bytes.py [--only PATTERN] [--json FILE]
  .venv/bin/python benchmarks/least_bytes.py --dtensor                       PyTorch's DTensor beside it
  .venv/bin/python benchmarks/least_bytes.py --jax /path/to/python           an interpreter that has jax: XLA beside it

A figure is the most that a rank sends or gets in a collective of its group, summed over collectives, as `shardc explain` reports it; an all-gather of B bytes
is (n-1)/n B to each rank, and an all-reduce twice that. The graphs are in small_graphs.py. Of those that move elements the least is found by brute force: the
function is run on the numbers of the elements; a rank that is to have an element of the result needs the elements that it is made of, and gets each that it
does not have from the one rank that has it. The most that a rank gets or gives is the least possible. In the sum over all rows no row counts as less than its
least: an all-gather of uneven parts is counted by their average. The least of the graphs in spatial_graphs.py is that of least_spatial.py, which no program
is below; the second figure is that of one exchange, which a program can reach."""
import argparse
import fnmatch
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/export"))

import shardc_export  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from least_spatial import chunks, held, least_by_cuts, mesh_of, of_one_exchange, outputs, placement  # noqa: E402
from small_graphs import BACKWARD, COMPUTED, MOVED, all_reduce  # noqa: E402
from spatial_graphs import BACKWARD as SPATIAL_BACKWARD  # noqa: E402
from spatial_graphs import SPATIAL, backward_sums  # noqa: E402

RANKS = (2, 3, 4)
LISTS = {"small": MOVED | COMPUTED | BACKWARD, "spatial": SPATIAL}
GRAPHS = LISTS["small"] | SPATIAL


def least_moved(graph, n):
    """By brute force: which elements of the inputs an element of the result is made of is read from derivatives."""
    mesh = mesh_of(graph, n)
    ranks = list(itertools.product(*map(range, mesh)))
    inputs = [torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in graph.shapes]
    results = outputs(graph.function(*inputs))
    out = placement(graph.out, mesh)
    gets, gives = dict.fromkeys(ranks, 0), dict.fromkeys(ranks, 0)
    for rank in ranks:
        # Random, so that no two parts cancel.
        weights = [torch.where(held(r.shape, out, mesh, rank), torch.rand(r.shape, dtype=torch.float64) + 0.5, 0) for r in results]
        gradients = torch.autograd.grad(sum((r * w).sum() for r, w in zip(results, weights)), inputs, retain_graph=True, allow_unused=True)
        for i, gradient in enumerate(gradients):
            if i not in graph.sharded or gradient is None:
                continue
            holders = {other: held(graph.shapes[i], placement(graph.sharded[i], mesh), mesh, other) for other in ranks}
            lacks = (gradient != 0) & ~holders[rank]
            gets[rank] += int(lacks.sum())
            # What several ranks have may come from any of them, and what all need goes around.
            single = sum(h.int() for h in holders.values()) == 1
            for owner, mask in holders.items() if None not in out else ():
                gives[owner] += int((lacks & mask & single).sum())
    return 4 * max(*gets.values(), *gives.values())


def least_of(name, n, find=least_by_cuts):
    graph = GRAPHS[name]
    if name in SPATIAL_BACKWARD:
        once = 0 if graph.sums else find(graph, n)
        return 2 * once + backward_sums(graph, math.prod(mesh_of(graph, n)))
    if name in SPATIAL and not graph.least:
        return find(graph, n)
    if graph.least:
        return graph.least(n)
    moved = least_moved(graph, n)
    return 2 * moved + all_reduce(math.prod(mesh_of(graph, n)), 4) if name in BACKWARD else moved


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Loss(torch.nn.Module):
    """A number whose derivatives by the parameters are what is asked for. Of spatial graphs it is no linear function of the results, which are asked for, too."""

    def __init__(self, function, values, spatial=False):
        super().__init__()
        self.function, self.x, self.spatial = function, torch.nn.ParameterList(values), spatial

    def forward(self, *weights):
        return of_results(outputs(self.function(*self.x)), weights, self.spatial)


def of_results(results, weights, spatial):
    if not spatial:
        return sum((y * w).sum() for y, w in zip(results, weights))
    return sum((y.sin() * w).sum() for y, w in zip(results, weights)), *results


def run(*words):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True)


def spec(dims, mesh, shape=None):
    """With a shape, of exactly the chunks of that."""
    axes = ("tp",) if len(mesh) == 1 else ("dp", "tp")
    sizes = [f", sizes = {chunks(shape[dim], n)}" if shape and dim is not None else "" for dim, n in zip(dims, mesh, strict=True)]
    return ",".join(f"{axis}:" + ("R" if dim is None else f"S({dim}{size})") for axis, dim, size in zip(axes, dims, sizes, strict=True))


def is_backward(name):
    return name in BACKWARD or name in SPATIAL_BACKWARD


def ours(name, n, folder, build):
    """(bytes, collectives, what is wrong)."""
    graph, mesh, backward = GRAPHS[name], mesh_of(GRAPHS[name], n), is_backward(name)
    torch.manual_seed(0)
    values = [torch.randn(shape) for shape in graph.shapes]
    results = wants = outputs(graph.function(*values))
    module, inputs = Module(graph.function), values
    if backward:
        inputs = [torch.randn(want.shape) for want in wants]
        module = Loss(graph.function, values, name in SPATIAL)
        outputs(module(*inputs))[0].backward()
        wants = ([y.detach() for y in results] if name in SPATIAL else []) + [x.grad for x in module.x]
    program = shardc_export.export(module, tuple(inputs))
    torch.export.save(program, folder / "model.pt2")
    save_file(dict(zip(program.graph_signature.user_inputs, inputs)), folder / "in.safetensors")
    command = plan(name, n, results)
    entry = ["--entry", "gradients", "--weights", folder / "model.pt2"] if backward else []
    done = run(build / "bin/shardc", "compile", folder / "model.pt2", *command, "-o", folder / "model.so")
    if done.returncode == 0:
        done = run(build / "bin/shard-run", folder / "model.so", *entry, "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors",
                   "--timeout", 60)
    if done.returncode:
        return 0, [], done.stderr[-600:]
    got = load_file(folder / "out.safetensors")
    entries = json.loads(run(build / "bin/shard-run", folder / "model.so", "--manifest").stdout)["entries"]
    names = [o["name"] for e in entries for o in e["outputs"] if e["name"] == ("gradients" if backward else entries[0]["name"])]
    got = [got[name] for name in names][-len(wants):]  # gradients come behind the loss
    right = all(g.shape == w.shape and torch.allclose(g, w, 1e-4, 1e-5) for g, w in zip(got, wants, strict=True))
    report = json.loads(run(build / "bin/shardc", "explain", folder / "model.pt2", *command, "--format", "json").stdout)["collectives"]
    report = [c for c in report if not backward or c["entry"] == "gradients"]
    return sum(c["bytes_per_rank"] for c in report), [c["kind"] for c in report], "" if right else "differs from PyTorch"


def plan(name, n, results):
    """What a user would write; of the results of spatial graphs also the sizes of the shards, which are else left open."""
    graph, mesh, backward, spatial = GRAPHS[name], mesh_of(GRAPHS[name], n), is_backward(name), name in SPATIAL
    given = [(f"{'param:x.' if backward else 'input:'}{i}", graph.sharded.get(i), None) for i in range(len(graph.shapes))]
    for i, result in enumerate(results):  # of a derivative, what the results are weighted by
        shape = result.shape if spatial else None
        given += [(f"{'input' if backward else 'output'}:{i}", graph.out, shape)]
        given += [(f"output:{i + 1}", graph.out, shape)] if backward and spatial else []
    size = f"tp={mesh[0]}" if len(mesh) == 1 else f"dp={mesh[0]},tp={mesh[1]}"
    placed = (f"{what}={spec(placement(dims, mesh), mesh, shape)}" for what, dims, shape in given)
    return ["--mesh", size, *(word for text in placed for word in ("--place", text)), *(["--gradients", "0"] if backward else [])]


def peer(command, text=None):
    """{name: [bytes, what is wrong]} of a program that prints it as its last line."""
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, input=text, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def survived(command, names):
    """As peer, of a program that prints it after each graph; where it crashes, it starts again behind the graph at which it did."""
    found, left = {}, list(names)
    while left:
        done = subprocess.run([*map(str, command), *left], text=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        found |= json.loads(lines[-1]) if lines else {}
        left = [name for name in left if name not in found]
        if left:
            said = [line for line in done.stderr.splitlines() if "Error" in line]
            found[left.pop(0)] = 0, "refused: crashed, " + (said[0][-100:] if said else f"{done.returncode}")
    return found


def as_json(name, n):
    """What JAX's side needs to know, which has no PyTorch."""
    graph = GRAPHS[name]
    mesh = mesh_of(graph, n)
    given = [placement(graph.sharded.get(i), mesh) for i in range(len(graph.shapes))]
    return {"graph": name, "mesh": mesh, "shapes": graph.shapes, "given": given, "out": placement(graph.out, mesh), "backward": is_backward(name), "spatial": name in SPATIAL}


def peers(options, names, n):
    found = {}
    if options.dtensor:
        launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", n, "--master-port", "0", "--rdzv-backend", "c10d",
                  "--rdzv-endpoint", "localhost:0", ROOT / "benchmarks/least_bytes_dtensor.py"]
        spatial = [name for name in names if name in SPATIAL]
        found["dtensor"] = survived([*launch, "--halo"], spatial) | survived(launch, [name for name in names if name not in SPATIAL])
    if options.jax:
        found["jax"] = peer([options.jax, ROOT / "benchmarks/least_bytes_jax.py", n], json.dumps([as_json(name, n) for name in names]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--list", choices=LISTS, help="one of the lists of graphs")
    parser.add_argument("--only", default="*", help="a pattern of names")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--dtensor", action="store_true", help="run PyTorch's DTensor as well")
    parser.add_argument("--jax", help="a Python interpreter that has jax")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    shardc_export.hide_warnings()
    torch.set_num_threads(1)
    asked = [name for name in (LISTS[options.list] if options.list else GRAPHS) if fnmatch.fnmatch(name, options.only)]
    if not asked:
        parser.error(f"no graph has a name like {options.only}; the pattern is one of file names, such as '*convolution*'")
    pairs = [(name, n) for name in asked for n in ([4] if GRAPHS[name].mesh else map(int, options.ranks.split(",")))]
    others = {n: peers(options, [name for name, m in pairs if m == n], n) for n in sorted({n for _, n in pairs})}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, n in pairs:
            moved, kinds, problem = ours(name, n, pathlib.Path(folder), options.build)
            row = {"graph": name, "ranks": n, "least": least_of(name, n), "one_exchange": least_of(name, n, of_one_exchange), "moved": moved}
            row |= {"collectives": kinds, "problem": problem}
            row |= {side: figures[name] for side, figures in others[n].items()}
            rows.append(row)
            mark = "WRONG " + problem if problem else "more" if moved > row["least"] + len(kinds) else ""
            beside = "".join(f" {row[side][1] or round(row[side][0], 1)!s:>12.12}" for side in others[n])
            print(f"{name:36} n={n} {row['least']:9.1f} {row['one_exchange']:9.1f} {moved:9.1f}{beside}  {', '.join(kinds):36} {mark}", flush=True)
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if any(row["problem"] for row in rows) else 0


def summarise(rows):
    print(f"\n{len(rows)} rows of {len({row['graph'] for row in rows})} graphs")
    sides = {"shardc": lambda row: (row["moved"], row["problem"])} | {side: lambda row, side=side: row[side] for side in ("dtensor", "jax") if side in rows[0]}
    for side, of in sides.items():
        right = [(row["least"], of(row)[0]) for row in rows if not of(row)[1]]
        wrong = sum("differs" in of(row)[1] for row in rows)
        at_least = sum(moved <= least + 2 for least, moved in right)
        least, moved = sum(least for least, _ in right), sum(max(pair) for pair in right)
        print(f"  {side}: {len(right)} right, {wrong} wrong, {len(rows) - len(right) - wrong} refused; of those that are right {at_least} move the least possible, "
              f"and all of them {moved:.0f} of {least:.0f} bytes ({moved / least if least else 1:.3f})")


if __name__ == "__main__":
    sys.exit(main())
