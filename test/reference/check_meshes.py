# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Redistributions between meshes (R3), by brute force: every pair of small layouts on pairs of meshes, data in, data out.

    check_meshes.py SHARD_OPT [--passes PASS...]

Each pair is a placed function of one redistribution, which is planned and localised, and runs for the ranks of both meshes.
A rank must have what its layout says; a rank outside of the mesh has nothing. Where nothing is partial and the meshes have
other ranks, or another order of them, the elements that go from rank to rank are counted: exactly those that a rank needs and
lacks, once each."""
import argparse
import itertools
import sys

import torch

import dist_ops
import program
from interpreter import Absent, InterpretationError, run_local, world_of
from layout import Layout, Mesh, Placement, difference

SQUARE, LINE = Mesh([("a", 2), ("b", 2)]), Mesh([("x", 4)])
PAIRS = [
    (SQUARE, LINE),
    (SQUARE, Mesh([("x", 2)], [1, 3])),
    (Mesh([("a", 2)]), Mesh([("x", 2)], [2, 3])),
    (Mesh([("a", 2)]), Mesh([("x", 2)], [1, 4])),  # two ranks are in neither
    (LINE, Mesh([("x", 4)], [3, 2, 1, 0])),
    (SQUARE, Mesh([("a", 2), ("b", 2)], [3, 1, 0, 2])),
    (Mesh([("a", 2), ("b", 4)]), SQUARE),
    (Mesh([("a", 3)]), Mesh([("x", 2), ("y", 2)], [0, 2, 3, 4])),
]
SHAPES = [(5, 3), (4, 4), (1, 2), (0, 3), ()]
CHOICES = [Placement("R"), Placement("S", 0), Placement("S", 1), Placement("P")]


def layouts_of(mesh, rank):
    for placements in itertools.product(CHOICES, repeat=len(mesh.axes)):
        if all(p.kind != "S" or p.dim < rank for p in placements):
            yield Layout(mesh, placements)
    if rank and len(mesh.axes) == 2:
        yield Layout(mesh, [Placement("S", 0), Placement("S", 0)], [1, 0])


def needed(layout, shape, rank):
    """The elements that a rank has, as a set of indices; empty outside of the mesh."""
    at = layout.mesh.coordinate_of(rank)
    if at is None:
        return set()
    return set(itertools.product(*(layout.held(d, n, at) for d, n in enumerate(shape))))


def least(source, target, shape, world):
    return sum(len(needed(target, shape, r) - needed(source, shape, r)) for r in world.devices)


def function_text(name, source, target, shape):
    sizes = "x".join([*map(str, shape), "f32"])
    before, after = f"tensor<{sizes}, {source.text()}>", f"tensor<{sizes}, {target.text()}>"
    return (f"func.func @{name}(%x: {before}) -> {after} {{\n  %y = dist.redistribute %x : {before} to {after}\n"
            f"  return %y : {after}\n}}\n")


class Traffic:
    """Counts the elements that go from one rank to another."""

    def __init__(self):
        self.elements = 0
        for kind in ("all_to_all", "all_gather", "permute"):
            dist_ops.OPS["dist." + kind] = self.counted(kind, dist_ops.OPS["dist." + kind])

    def counted(self, kind, run):
        def count(op, operands, mesh, symbols):
            results = run(op, operands, mesh, symbols)
            groups = dist_ops.groups_of(op, mesh)
            if kind == "permute":
                pairs = list(zip(op.attrs["pairs"][::2], op.attrs["pairs"][1::2]))
                self.elements += sum(operands[0][group[a]].numel() for group in groups for a, b in pairs if a != b)
                return results
            if kind == "all_gather":
                self.elements += sum(results[0][p].numel() - operands[0][p].numel() for group in groups for p in group)
                return results
            _, lists = dist_ops._lists(op, operands, "split_extents", "concat_extents")
            for group in groups:
                for at, p in enumerate(group):
                    extents = lists[0]["split_extents"]
                    whole = operands[0][p].numel()
                    dim = op.attrs["split_dims"][0]
                    n = operands[0][p].shape[dim]
                    extents = dist_ops._at(extents, p) if extents else dist_ops._chunks(n, len(group))
                    self.elements += (n - extents[at]) * (whole // n if n else 0)
            return results
        return count


def check(function, source, target, shape, traffic):
    """Why it is wrong, or None."""
    generator = torch.Generator().manual_seed(3)
    whole = torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    world = world_of(function)
    traffic.elements = 0
    try:
        inputs = [source.spread(source.scatter(whole, generator), world)]
        (got,) = run_local(function, world, inputs, several=True)
    except InterpretationError as error:
        return str(error)
    held = target.collect(got, world)
    if absent := next((v for v in held if isinstance(v, Absent)), None):
        return f"a rank does not have it: {absent.why}"
    value, spread = target.gather(held, list(shape))
    if max(difference(value, whole), spread) > 1e-5:
        return f"got {value.tolist()}, replicas differ by {spread}"
    # Where only the axes differ, the cheapest way is that of (R2), which weighs the most that a rank sends or gets.
    same_ranks = source.mesh.devices == target.mesh.devices
    if not source.partial_axes() and not target.partial_axes() and not same_ranks:
        due = least(source, target, shape, world)
        if traffic.elements != due:
            return f"{traffic.elements} elements move where {due} are needed"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt")
    parser.add_argument("--passes", nargs="*", default=["--dist-plan-redistributions=latency=0", "--dist-localize",
                                                        "--canonicalize", "--cse"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    traffic = Traffic()
    count = failures = 0
    for one, other in PAIRS:
        for a, b in ((one, other), (other, one)):
            for shape in SHAPES:
                cases = list(itertools.product(layouts_of(a, len(shape)), layouts_of(b, len(shape))))
                texts = [function_text(f"f{i}", *case, shape) for i, case in enumerate(cases)]
                functions, why = program.load(args.shard_opt, "\n".join(texts), *args.passes)
                if functions is None:
                    print(why)
                    return 1
                for i, (source, target) in enumerate(cases):
                    count += 1
                    if problem := check(functions[f"f{i}"], source, target, shape, traffic):
                        failures += 1
                        if failures <= 20:
                            print(f"{shape} {source.text()} -> {target.text()}: {problem}")
    print(f"{count} redistributions between meshes, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
