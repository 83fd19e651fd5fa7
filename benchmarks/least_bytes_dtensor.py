# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DTensor's side of least_bytes.py: torchrun --nproc-per-node N benchmarks/least_bytes_dtensor.py GRAPH ... Rank 0 prints {graph: [bytes, what is wrong]},
after each graph.

Inputs are DTensors of the placements that the list gives, the function is called on them, and its outputs are redistributed to theirs. Collectives are
counted as they reach the dispatcher; the figure is that of the rank that has most.

With --halo before the graphs convolutions get the rules back that PyTorch 2.12 had for them, which shard the last dim of an image and exchange its borders.
2.13 has them still, but its newer rule, which knows batches only, comes first and gives results the wrong placement."""
import datetime
import json
import sys

import torch
import torch.distributed as dist
from least_bytes import GRAPHS, Loss, is_backward, mesh_of, of_results, outputs, placement
from spatial_graphs import SPATIAL
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication
from training_peers import Counter, size_of


class Exact(Counter):
    """As Counter; an all-to-all says what it sends to whom, and of what goes from rank to rank the larger of what is sent and what comes counts."""

    def __init__(self):
        super().__init__()
        self.between = {"send": 0, "recv": 0}

    def most(self):
        return self.bytes + max(self.between.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name in ("c10d::send", "c10d::recv_"):
            self.between[function._schema.name[6:10]] += size_of(args[0])
            return function(*args, **(kwargs or {}))
        before = self.bytes
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if result is not NotImplemented and "all_to_all_single" in function._schema.name and len(args) == 4:
            group = dist.distributed_c10d._resolve_process_group(args[3])
            row = args[0].numel() // max(args[0].shape[0], 1) * args[0].element_size()
            here = group.rank()
            self.bytes = before + row * max(sum(counts) - counts[here] for counts in args[1:3])
        return result


def placed(value, given, devices, mesh):
    return distribute_tensor(value, devices, [Replicate() if dim is None else Shard(dim) for dim in placement(given, mesh)], src_data_rank=None)


def measure(name):
    graph = GRAPHS[name]
    mesh = mesh_of(graph, dist.get_world_size())
    devices = init_device_mesh("cpu", mesh)
    torch.manual_seed(0)
    values = [torch.randn(shape) for shape in graph.shapes]
    tensors = [placed(value, graph.sharded.get(i), devices, mesh) for i, value in enumerate(values)]
    wants = outputs(graph.function(*values))
    counter = Exact()
    targets = [Replicate() if dim is None else Shard(dim) for dim in placement(graph.out, mesh)]
    if is_backward(name):
        spatial = name in SPATIAL
        weights = [torch.randn(want.shape) for want in wants]
        whole = Loss(graph.function, values, spatial)
        outputs(whole(*weights))[0].backward()
        parts = [t.requires_grad_() for t in tensors]
        parts_of_weights = [placed(w, graph.out, devices, mesh) for w in weights]
        with counter:
            results = outputs(graph.function(*parts))
            results = [y.redistribute(placements=targets) for y in results] if spatial else results
            loss = outputs(of_results(results, parts_of_weights, spatial))[0]
            loss.redistribute(placements=[Replicate()] * len(mesh)).to_local().backward()
            got = (results if spatial else []) + [t.grad.redistribute(placements=t.placements) for t in parts]
        wants = (wants if spatial else []) + [x.grad for x in whole.x]
    else:
        with counter:
            got = [y.redistribute(placements=targets) for y in outputs(graph.function(*tensors))]
            for y in got:
                y.to_local()
    right = all(isinstance(g, DTensor) and torch.allclose(g.full_tensor(), w, 1e-4, 1e-5) for g, w in zip(got, wants, strict=True))
    return counter.most(), "" if right else "differs"


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    torch.set_num_threads(1)
    names, found = sys.argv[1:], {}
    if names[0] == "--halo":
        names = names[1:]
        for op in (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default):
            DTensor._op_dispatcher.sharding_propagator.op_single_dim_strategy_funcs.pop(op)
    for name in names:
        try:
            with implicit_replication():  # of constants
                mine = measure(name)
        except Exception as error:  # what it refuses, it refuses on all ranks
            mine = 0, f"refused: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"[:120]
        everybody = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, mine)
        found[name] = [max(moved for moved, _ in everybody), next((problem for _, problem in everybody if problem), "")]
        if dist.get_rank() == 0:
            print(json.dumps(found), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
