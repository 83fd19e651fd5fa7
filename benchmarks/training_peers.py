# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's side of training_bytes.py: torchrun --nproc-per-node 4 benchmarks/training_peers.py ROW ... Rank 0 prints {row: bytes}.

Each row is the program that PyTorch's documentation recommends for it: DTensor with parallelize_module (and its loss over a sharded
vocabulary), DDP, fully_shard with the last parameters kept after the forward. Collectives are counted as they reach the dispatcher."""
import contextlib
import json
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import models


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def size_of(value):
    return sum(t.numel() * t.element_size() for t in tensors(value))


class Counter(TorchDispatchMode):
    """Ring volumes of what this rank calls. DTensor's functional collectives and those of process groups have other names and
    arguments, but both say what they make."""
    RINGS = {"allreduce": ("all_reduce", 0), "all_reduce": ("all_reduce", 0), "_allgather_base": ("gather", 0),
             "allgather": ("gather", 0), "all_gather_into_tensor": ("gather", None), "_reduce_scatter_base": ("scatter", 1),
             "reduce_scatter": ("scatter", 1), "reduce_scatter_tensor": ("scatter", 0), "alltoall": ("all_to_all", 1),
             "all_to_all_single": ("all_to_all", 0)}

    def __init__(self):
        super().__init__()
        self.bytes, self.calls = 0.0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        # DTensors become the ops on their parts, which come here again.
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        result = function(*args, **(kwargs or {}))
        namespace, _, name = function._schema.name.partition("::")
        name = name.rstrip("_").removesuffix("_coalesced")
        if namespace in ("c10d", "_c10d_functional") and name in self.RINGS:
            kind, position = self.RINGS[name]
            size = size_of(result if position is None else args[position])
            group = next(a for a in args if isinstance(a, (str, torch.ScriptObject)) and not isinstance(a, torch.Tensor)
                         and (not isinstance(a, str) or a.isdigit() or a not in ("sum", "avg", "max", "min")))
            n = self.group_size(group)
            self.bytes += {"all_reduce": 2, "gather": 1, "scatter": 1, "all_to_all": 1}[kind] * (n - 1) / n * size
            self.calls[kind] = self.calls.get(kind, 0) + 1
        elif namespace in ("c10d", "_c10d_functional") and name not in (
                "wait_tensor", "_wrap_tensor_autograd", "barrier", "broadcast", "monitored_barrier"):
            sys.exit(f"{function} is not counted")
        return result

    @staticmethod
    def group_size(group):
        if isinstance(group, str):
            return dist.distributed_c10d._resolve_process_group(group).size()
        return dist.ProcessGroup.unbox(group).size()


def tensor_parallel(kind, model, mesh, sequence):
    rows = dict(output_layouts=Shard(1)) if sequence else {}
    table, blocks, norm = ("wte", model.h, "ln_f") if kind == "gpt" else ("embed", model.layers, "norm")
    parallelize_module(model, mesh, {
        table: RowwiseParallel(input_layouts=Replicate(), **rows),
        "head": ColwiseParallel(input_layouts=Shard(1) if sequence else Replicate(), output_layouts=Shard(-1), use_local_output=False)})
    if sequence:
        parallelize_module(model, mesh, {norm: SequenceParallel()})
    for block in blocks:
        plan = {f"attn.{name}": ColwiseParallel() for name in "qkv"} | {name: ColwiseParallel() for name in ("gate", "up") if hasattr(block, name)}
        plan |= {"attn.o": RowwiseParallel(**rows), "down": RowwiseParallel(**rows)}
        if sequence:
            plan |= {"norm_1": SequenceParallel(),
                     "attn": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
                     # Gathered once for gate and up, which alone use it.
                     "norm_2": GatheredNorm()}
        parallelize_module(block, mesh, plan)


class GatheredNorm(SequenceParallel):
    """Computes on parts of the sequence, and hands on the whole as a DTensor, whose partial gradients are summed before they are
    scattered."""

    @staticmethod
    def _prepare_output_fn(use_local_output, module, outputs, mesh):
        return outputs.redistribute(mesh, (Replicate(),))


@contextlib.contextmanager
def placed(case, size="middle"):
    """(the module whose parameters a rank trains, the loss of its part of the batch, what to do after the backward)"""
    kind, rest = case.split("-", 1)
    training, _, inputs = models.training(kind, size=size)
    model, ids, labels = training.model, inputs["ids"], inputs["labels"]
    axes = {"dp2-tp2": (2, 2), "dp2-tp2-sequence": (2, 2)}.get(rest)
    rank = dist.get_rank()

    def plain(model):
        return lambda ids, labels: F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())

    if rest in ("dp4", "fully-sharded", "alone"):
        ids, labels = ids[rank:rank + 1], labels[rank:rank + 1]
        if rest == "dp4":
            model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1000)
        elif rest == "fully-sharded":
            for block in model.h if kind == "gpt" else model.layers:
                fully_shard(block)
            fully_shard(model, reshard_after_forward=False)
        yield model, lambda: plain(model)(ids, labels), lambda: None
        return
    mesh = init_device_mesh("cpu", axes or (4,), mesh_dim_names=("dp", "tp") if axes else ("tp",))
    tensor_parallel(kind, model, mesh["tp"], rest.endswith("sequence"))
    if axes:
        part = mesh["dp"].get_local_rank()
        ids, labels = ids[2 * part:2 * part + 2], labels[2 * part:2 * part + 2]

    def reduce():
        """Gradients in the layouts of their parameters; then data parallelism by hand, as one bucket."""
        grads = [p.grad.redistribute(placements=p.placements).to_local() if isinstance(p.grad, DTensor) else p.grad
                 for p in model.parameters()]
        if axes:
            dist.all_reduce(torch.cat([g.flatten() for g in grads]), group=mesh["dp"].get_group())

    with loss_parallel():
        yield model, lambda: plain(model)(ids, labels), reduce


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    sizes = {}
    for case in sys.argv[1:]:
        with placed(case) as (_, loss, after):
            loss().backward()  # DDP and FSDP set themselves up in the first step
            after()
            counter = Counter()
            with counter:
                loss().backward()
                after()
            sizes[case] = counter.bytes
            if dist.get_rank() == 0:
                print(case, counter.calls, counter.bytes, file=sys.stderr)
    if dist.get_rank() == 0:
        print(json.dumps(sizes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
