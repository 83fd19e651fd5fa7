# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process of the DTensor side: torchrun --nproc-per-node 4 benchmarks/dtensor_step.py STEPS [gradients]. Rank 0 prints JSON.
With `gradients`, a step is the forward with a loss, and its backward."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import models
import sides


def main():
    steps, with_gradients = int(sys.argv[1]), "gradients" in sys.argv[2:]
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model, _, inputs = models.gpt()
    for block in model.h:
        parallelize_module(block, mesh, {
            "attn.q": ColwiseParallel(), "attn.k": ColwiseParallel(), "attn.v": ColwiseParallel(),
            "attn.o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})
    times = []
    loss = models.Loss(model)

    def step():
        if not with_gradients:
            return model(**inputs)
        model.zero_grad(set_to_none=True)
        return loss(**inputs).backward()
    with torch.inference_mode(not with_gradients):
        for _ in range(3):
            step()
        for _ in range(steps):
            dist.barrier()
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
    if dist.get_rank() == 0:
        print(json.dumps({"step_ms": sorted(times), "peak_bytes": sides.peak_bytes(os.getpid())}), flush=True)
    # All is measured. The process group's threads may abort a process in which they are torn down.
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
