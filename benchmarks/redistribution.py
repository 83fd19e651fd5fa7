# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that redistributions move, and how long they take by the cost model, for every pair of layouts of some meshes: our
planner beside our greedy one, PyTorch's greedy and graph-based planners, and Shardy.

  python benchmarks/redistribution.py                                  ours and PyTorch's (the installed torch plans)
  python benchmarks/redistribution.py --jax /path/to/python            an interpreter that has jax: Shardy partitions too
  python benchmarks/redistribution.py --mesh 2,2,2 --every 7           one pair in seven

Layouts are those of R, S(0), S(1) and P(sum) on each axis, in all orders of axes. Bytes are what a rank sends and receives
at most, by the ring algorithms; an exchange counts the elements that a rank needs and lacks, or gives away. Peers' uneven shards are
not looked at: the tensor divides evenly. PyTorch's all-reduces in a row count as one over all their axes, as it merges them.
Shardy knows no partial values at the ends, so it is compared where there are none; its bytes are those of the collectives in
the compiled program.

Bytes are compared for the plans that are made by bytes alone (latency=0). Times are those of the plans that are made with --latency
(microseconds for each axis of a group) and --bandwidth (10^9 bytes a second), the same for all planners: a collective takes the latency
of every axis of its group and the time of its bytes. A group of Shardy's is taken to be over the fewest axes that have so many ranks.
The exit status is 1 if any of our plans moves more than any other, or takes longer.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
ELEMENT = 4
AXES = "abc"


def ring(kind, size, n):
    """Bytes that a rank sends; `size` is that of the whole over the group."""
    factor = {"all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "reduce_scatter": (n - 1) / n,
              "all_to_all": (n - 1) / n ** 2}
    return factor[kind] * size


class Plan:
    """What a rank sends, and over how many mesh axes each collective is."""

    def __init__(self):
        self.bytes, self.axes = 0, []

    def add(self, size, axes):
        self.bytes += size
        self.axes.append(axes)

    def time(self, latency, bandwidth):
        return latency * sum(self.axes) + self.bytes / (bandwidth * 1e3)


def layouts(mesh):
    """(placements, order) of all canonical layouts."""
    out = []
    for placements in itertools.product(("R", "S0", "S1", "P"), repeat=len(mesh)):
        seen = set()
        for order in itertools.permutations(range(len(mesh))):
            key = tuple(tuple(a for a in order if placements[a] == s) for s in ("S0", "S1"))
            if key in seen:
                continue
            seen.add(key)
            out.append((placements, canonical(placements, order)))
    return out


def canonical(placements, order):
    result = list(range(len(order)))
    for shard in ("S0", "S1"):
        axes = [a for a in order if placements[a] == shard]
        for place, axis in zip(sorted(axes), axes):
            result[place] = axis
    return tuple(result)


def local_size(mesh, shape, placements, without=()):
    shards = math.prod(mesh[a] for a, p in enumerate(placements) if p[0] == "S" and a not in without)
    return math.prod(shape) * ELEMENT // shards


# ---- ours ----

def attribute(mesh, layout):
    placements, order = layout
    text = ", ".join({"R": "R", "S0": "S(0)", "S1": "S(1)", "P": "P(sum)"}[p] for p in placements)
    end = "" if list(order) == sorted(order) else ", order = [" + ", ".join(f'"{AXES[a]}"' for a in order) + "]"
    return f"#dist.layout<#mesh, [{text}]{end}>"


def held(mesh, shape, layout, coordinate):
    placements, order = layout
    ranges = [range(n) for n in shape]
    for axis in order:
        if placements[axis][0] == "S":
            dim = int(placements[axis][1])
            piece = len(ranges[dim]) // mesh[axis]
            ranges[dim] = ranges[dim][coordinate[axis] * piece:(coordinate[axis] + 1) * piece]
    mask = numpy.zeros(shape, bool)
    mask[ranges[0].start:ranges[0].stop, ranges[1].start:ranges[1].stop] = True
    return mask


def exchange_bytes(mesh, shape, before, after):
    most, copies = 0, "R" in before[0] or "R" in after[0]
    for coordinate in itertools.product(*map(range, mesh)):
        have, need = held(mesh, shape, before, coordinate), held(mesh, shape, after, coordinate)
        most = max(most, int((need & ~have).sum()), 0 if copies else int((have & ~need).sum()))
    return most * ELEMENT


def parse_layout(text, mesh):
    inside, _, order = text.partition("], order = [")
    names = {"R": "R", "S(0)": "S0", "S(1)": "S1", "P(sum)": "P"}
    placements = tuple(names[p] for p in inside.strip("[]").split(", "))
    order = tuple(int(a) if a.isdigit() else AXES.index(a.strip('"')) for a in order.strip("]").split(", ")) if order else \
        tuple(range(len(mesh)))
    return placements, order


def exchanged_axes(mesh, before, after):
    """Those that change, and those behind them on their dims, unless they split the same number of (even) shards as before."""
    member = {a for a in range(len(mesh)) if before[0][a] != after[0][a]}
    for dim in ("S0", "S1"):
        now, then = ([a for a in order if placements[a] == dim] for placements, order in (before, after))
        same = 0
        while same < min(len(now), len(then)) and now[same] == then[same] and now[same] not in member:
            same += 1
        outside = lambda axes, axis: math.prod(mesh[a] for a in axes[:axes.index(axis)])
        stays = {a for a in {*now} & {*then} if outside(now, a) == outside(then, a)}
        member |= {*now[same:], *then[same:]} - stays
    return member


def add_step(plan, mesh, shape, kind, before, after):
    changed = [a for a in range(len(mesh)) if before[0][a] != after[0][a]]
    n = math.prod(mesh[a] for a in changed)
    if kind == "exchange":
        plan.add(exchange_bytes(mesh, shape, before, after), len(exchanged_axes(mesh, before, after)))
    if kind in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all"):
        plan.add(ring(kind, local_size(mesh, shape, after[0], changed), n), len(changed))


def ours(shard_opt, mesh, shape, pairs, planner, latency=0, bandwidth=1):
    axes = ", ".join(f'"{AXES[i]}" = {n}' for i, n in enumerate(mesh))
    tensor = lambda layout: f"tensor<{shape[0]}x{shape[1]}xf32, {attribute(mesh, layout)}>"
    text = [f"#mesh = #dist.mesh<[{axes}]>"]
    for i, (before, after) in enumerate(pairs):
        text.append(f"func.func @f{i}(%x: {tensor(before)}) -> {tensor(after)} {{\n"
                    f"  %y = dist.redistribute %x : {tensor(before)} to {tensor(after)}\n  return %y : {tensor(after)}\n}}")
    run = subprocess.run([shard_opt, "-", f"--dist-plan-redistributions=planner={planner} latency={latency} bandwidth={bandwidth}"],
                         input="\n".join(text), text=True, capture_output=True)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    names = dict(re.findall(r"^(#\w+) = #dist\.layout<#mesh, (.*)>$", run.stdout, re.M))
    plans = []
    for line in run.stdout.splitlines():
        if "func.func" in line:
            plans.append(Plan())
        found = re.search(r"dist\.redistribute .* by (\w+) : tensor<\w+, (#\w+)> to tensor<\w+, (#\w+)>", line)
        if found:
            before, after = (parse_layout(names[name], mesh) for name in found.group(2, 3))
            add_step(plans[-1], mesh, shape, found.group(1), before, after)
    return plans


# ---- PyTorch ----

def pytorch(mesh, shape, pairs, graph):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, _redistribute
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
    from torch.testing._internal.distributed.fake_pg import FakeStore
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=math.prod(mesh))
    devices = init_device_mesh("cpu", tuple(mesh))
    meta = TensorMeta(torch.Size(shape), (shape[1], 1), torch.float32)
    kinds = {"R": Replicate(), "S0": Shard(0), "S1": Shard(1), "P": Partial()}

    def spec(layout):
        placements, order = layout
        entries = tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=tuple(a for a in order if placements[a] == f"S{d}"))
                        for d in (0, 1) if f"S{d}" in placements)
        return DTensorSpec(devices, tuple(kinds[p] for p in placements), tensor_meta=meta, shard_order=entries)

    plans = []
    for before, after in pairs:
        orders_default = all(list(o) == sorted(o) for _, o in (before, after))
        if not graph and not orders_default:
            plans.append(None)  # the greedy planner takes the default order only
            continue
        plan, reduced, reduced_size = Plan(), 1, 0
        for info in _redistribute._gen_transform_infos_non_cached(spec(before), spec(after), graph):
            n, size = mesh[info.mesh_dim], math.prod(info.logical_shape) * ELEMENT
            kind = info._comm_type_key()
            if kind == "all_reduce" and reduced > 1 and size == reduced_size:
                plan.bytes += ring(kind, size, reduced * n) - ring(kind, size, reduced)
                plan.axes[-1] += 1
                reduced *= n
                continue
            reduced, reduced_size = (n, size) if kind == "all_reduce" else (1, 0)
            if kind:
                plan.add(ring(kind, size, n), 1)
        plans.append(plan)
    return plans


# ---- Shardy ----

def group_size(line):
    """Ranks in a group, in any of HLO's three ways to write groups."""
    lists = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    if lists:
        return len(lists.group(1).split(","))
    counted = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if counted:
        return int(counted.group(2))
    named = re.search(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}", line)
    if not named:
        sys.exit("no groups in: " + line)
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", named.group(1)))
    # A part of an axis is written 'axis':(before)size.
    return math.prod(int(part or sizes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named.group(2)))


def fewest_axes(mesh, ranks):
    return next(count for count in range(len(mesh) + 1)
                if any(math.prod(axes) >= ranks for axes in itertools.combinations(mesh, count)))


def collectives(hlo, mesh):
    """Bytes and axes of each."""
    found_all = []
    sizes = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "f64": 8, "c64": 8}
    for line in hlo.splitlines():
        found = re.search(r"= (.*?) (all-gather|all-to-all|collective-permute|all-reduce|reduce-scatter)(?:-start)?\(", line)
        if not found:
            continue
        result = sum(sizes[t] * math.prod(int(d) for d in dims.split(",") if d)
                     for t, dims in re.findall(r"(\w+)\[([\d,]*)\]", found.group(1)))
        kind = found.group(2)
        if kind == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", line).group(1)
            moves = [[numpy.unravel_index(int(rank), mesh) for rank in pair] for pair in re.findall(r"(\d+),(\d+)", pairs)]
            axes = sum(any(a[axis] != b[axis] for a, b in moves) for axis in range(len(mesh)))
            if axes:
                found_all.append((result, axes))
            continue
        n = group_size(line)
        factor = {"all-gather": (n - 1) / n, "all-to-all": (n - 1) / n, "all-reduce": 2 * (n - 1) / n, "reduce-scatter": n - 1}[kind]
        found_all.append((factor * result, fewest_axes(mesh, n)))
    return found_all


def shardy_worker():
    """Reads [mesh, shape, pairs], writes the collectives of each; runs where jax is."""
    mesh, shape, pairs = json.load(sys.stdin)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={math.prod(mesh)}"
    import jax
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_use_shardy_partitioner", True)
    devices = jax.make_mesh(tuple(mesh), tuple(AXES[:len(mesh)]),
                            axis_types=(jax.sharding.AxisType.Auto,) * len(mesh))

    def sharding(layout):
        placements, order = layout
        dims = [tuple(AXES[a] for a in order if placements[a] == f"S{d}") or None for d in (0, 1)]
        return jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec(*dims))

    x, totals = jax.ShapeDtypeStruct(tuple(shape), "float32"), []
    for before, after in pairs:
        program = jax.jit(lambda x: x, in_shardings=sharding(before), out_shardings=sharding(after))
        totals.append(collectives(program.lower(x).compile().as_text(), mesh))
    json.dump([jax.__version__, totals], sys.stdout)


def shardy(python, mesh, shape, pairs):
    whole = [not any("P" in placements for placements, _ in pair) for pair in pairs]
    asked = [pair for pair, w in zip(pairs, whole) if w]
    run = subprocess.run([python, __file__, "--shardy-worker"], input=json.dumps([mesh, shape, asked]), text=True,
                         capture_output=True)
    if run.returncode:
        sys.exit("jax: " + run.stderr[-2000:])
    version, programs = json.loads(run.stdout)
    plans = []
    for program in programs:
        plans.append(Plan())
        for size, axes in program:
            plans[-1].add(size, axes)
    plans = iter(plans)
    return version, [next(plans) if w else None for w in whole]


def compare(mesh, name, pairs, what, mine, others):
    """Prints a row for each peer; `mine` and `others` are numbers. How often ours is more."""
    more = 0
    for peer, theirs in others.items():
        both = [(m, t, p) for m, t, p in zip(mine, theirs, pairs) if t is not None]
        ratio = sum(m for m, _, _ in both) / max(1e-9, sum(t for _, t, _ in both))
        worst = max((m / t if t else float(m > 0)) for m, t, _ in both)
        fewer = sum(m < t - 1e-6 for m, t, _ in both)
        worse = [(m, t, p) for m, t, p in both if m > t + 1e-6]
        more += len(worse)
        print(f"{name:7} | {what:5} | {peer:16} | {len(both):5} | {ratio:13.3f} | {worst:10.3f} | {fewer:10} | {len(worse)}")
        for m, t, (before, after) in worse[:5]:
            print(f"    {attribute(mesh, before)} -> {attribute(mesh, after)}: {m:.3f}, not {t:.3f}")
    return more


def main():
    if "--shardy-worker" in sys.argv:
        return shardy_worker()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard-opt", default=str(ROOT / "build/bin/shard-opt"))
    parser.add_argument("--mesh", action="append", help="axis sizes, e.g. 2,4 (default: 2,2 2,4 and 2,2,2)")
    parser.add_argument("--every", type=int, default=1, help="take one pair in so many")
    parser.add_argument("--jax", help="a Python interpreter that has jax")
    parser.add_argument("--latency", type=float, default=10, help="microseconds of each axis (default: 10)")
    parser.add_argument("--bandwidth", type=float, default=1, help="10^9 bytes a second (default: 1)")
    args = parser.parse_args()
    more = 0
    print("mesh    | what  | planner          | pairs | ours / theirs | worst pair | ours fewer | ours more")
    for text in args.mesh or ["2,2", "2,4", "2,2,2"]:
        mesh, shape = [int(n) for n in text.split(",")], (64, 64)
        pairs = [(a, b) for a in layouts(mesh) for b in layouts(mesh) if a != b][::args.every]
        plan = lambda planner, *costs: ours(args.shard_opt, mesh, shape, pairs, planner, *costs)
        costs = args.latency, args.bandwidth
        others = {"greedy": plan("greedy"), "pytorch greedy": pytorch(mesh, shape, pairs, False),
                  "pytorch graph": pytorch(mesh, shape, pairs, True)}
        if args.jax:
            version, others["shardy"] = shardy(args.jax, mesh, shape, pairs)
        name = "x".join(map(str, mesh))
        number = lambda plans, of: [p and of(p) for p in plans]
        size, time = (lambda p: p.bytes), (lambda p: p.time(*costs))
        more += compare(mesh, name, pairs, "bytes", number(plan("cheapest"), size), {n: number(p, size) for n, p in others.items()})
        more += compare(mesh, name, pairs, "time", number(plan("cheapest", *costs), time), {n: number(p, time) for n, p in others.items()})
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
