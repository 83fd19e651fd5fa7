# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the shards of random tensors begin in mode `dtensor`, against PyTorch's own tracker: several ops in a row, on
random meshes and placements (uneven, empty, replicated, dims sharded by several axes, also in another order).

    compare_random_offsets.py SHARD_OPT COUNT"""
import math
import random
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._random import OffsetBasedRNGTracker, _PhiloxState
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

import aten_ops
import program
from interpreter import run_local
from layout import Layout, Mesh, Placement

MESHES = [[2], [3], [4], [2, 2], [2, 3], [3, 2], [2, 2, 2]]
SIZES = [0, 1, 2, 3, 5, 7, 8, 12]
SEED, START = 7, 16


def tracker():
    """The tracker of a rank, whose constructor wants a GPU."""
    return object.__new__(OffsetBasedRNGTracker)


def drawn_by_pytorch(mesh, ops):
    """Offsets from which this rank draws, op by op, and where it ends."""
    state = _PhiloxState(torch.zeros(16, dtype=torch.uint8))
    state.seed, state.offset = torch.tensor([SEED], dtype=torch.uint64), torch.tensor([START])
    starts = []
    for shape, placements in ops:
        strides = torch.empty(shape, device="meta").stride()
        spec = DTensorSpec(mesh, tuple(placements), TensorMeta(torch.Size(shape), strides, torch.float32))
        old = state.offset.clone()
        tracker()._set_pre_op_offset(state, spec)
        starts.append(int(state.offset))
        tracker()._set_post_op_offset(state, spec, old)
    return starts, int(state.offset)


def random_op(mesh):
    """Sizes, PyTorch's placements, and ours with an order or None."""
    shape = [random.choice(SIZES) for _ in range(random.randint(0, 3))]
    dims = [random.randrange(len(shape)) if shape and random.random() < 0.8 else None for _ in mesh]
    ours = [Placement("R") if d is None else Placement("S", d) for d in dims]
    shared = [d for d in dims if d is not None and dims.count(d) > 1]
    if not shared or random.random() < 0.5:
        return shape, [Replicate() if d is None else Shard(d) for d in dims], ours, None
    # Inner axes of the mesh first: PyTorch's strided shards.
    theirs = []
    for axis, d in enumerate(dims):
        inside = math.prod(n for n, other in list(zip(mesh, dims))[axis + 1:] if other == d)
        theirs.append(Replicate() if d is None else Shard(d) if inside == 1 else _StridedShard(d, split_factor=inside))
    return shape, theirs, ours, list(reversed(range(len(mesh))))


def function_text(name, mesh, ops):
    whole = Layout(mesh, [Placement("R") for _ in mesh.axes], None).text()
    state = f"tensor<i64, {whole}>"
    lines, values, types, advance = [], [], [], 0
    for i, (shape, _, placements, order) in enumerate(ops):
        type_ = f"tensor<{''.join(f'{n}x' for n in shape)}f32, {Layout(mesh, placements, order).text()}>"
        lines.append(f"%c{i} = aten.constant dense<{advance}> : tensor<i64> -> {state}\n"
                     f"%o{i} = aten.add %offset, %c{i} : ({state}, {state}) -> {state}\n"
                     f'%r{i} = aten.random "uniform" [{", ".join(map(str, shape))}] f32 seed(%seed) offset(%o{i}) : '
                     f"({state}, {state}) -> {type_}")
        values.append(f"%r{i}")
        types.append(type_)
        advance += (math.prod(shape) + 3) // 4 * 4
    body = "\n".join(lines)
    return (f"func.func @{name}(%seed: {state}, %offset: {state}) -> ({', '.join(types)}) {{\n{body}\n"
            f"return {', '.join(values)} : {', '.join(types)}\n}}\n"), advance


def drawn_by_us(function, mesh):
    """Likewise, of all ranks: the offsets that the generator is called with."""
    seen, real = [], aten_ops.OPS["aten.philox"]

    def spy(operands, attrs, types):
        seen.append(int(operands["offset"]))
        return real(operands, attrs, types)
    aten_ops.OPS["aten.philox"] = spy
    try:
        ranks = math.prod(n for _, n in mesh.axes)
        run_local(function, mesh, [[torch.tensor(SEED)] * ranks, [torch.tensor(START)] * ranks], {})
    finally:
        aten_ops.OPS["aten.philox"] = real
    return [seen[rank::ranks] for rank in range(ranks)]


def main(shard_opt, count):
    random.seed(5)
    torch.set_num_threads(1)
    cases, text = [], []
    for number in range(count):
        sizes = random.choice(MESHES)
        mesh = Mesh([("abc"[i], n) for i, n in enumerate(sizes)])
        ops = [random_op(sizes) for _ in range(random.randint(1, 3))]
        cases.append((f"f{number}", sizes, mesh, ops))
        text.append(function_text(f"f{number}", mesh, ops))
    source = 'module attributes {dist.random = "dtensor"} {\n' + "".join(t for t, _ in text) + "}\n"
    local, why = program.load(shard_opt, source, "--dist-localize")
    if local is None:
        print(why)
        return 1
    bad = starts = 0
    expected = {}
    for sizes in MESHES:
        for rank in range(math.prod(sizes)):
            dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=math.prod(sizes))
            mesh = DeviceMesh("cpu", torch.arange(math.prod(sizes)).reshape(sizes), _init_backend=False)
            for name, of, _, ops in cases:
                if of == sizes:
                    expected[name, rank] = drawn_by_pytorch(mesh, [op[:2] for op in ops])
            dist.destroy_process_group()
    for (name, sizes, mesh, ops), (_, advance) in zip(cases, text):
        for rank, ours in enumerate(drawn_by_us(local[name], mesh)):
            theirs, end = expected[name, rank]
            starts += len(theirs)
            if ours != theirs or START + advance != end:
                bad += 1
                print(f"{sizes} {[op[:2] for op in ops]} rank {rank}: from {ours} to {START + advance}, PyTorch's from {theirs} to {end}")
    print(f"{starts} starts, {bad} differ")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
