# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's side of the section `training` of run.py, on four ranks: torchrun --nproc-per-node 4 benchmarks/training_step_peers.py CASE STEPS SIZE.

A step is the forward, the backward and AdamW (its fused form) of a row of training_peers.py that moves data through autograd alone: gpt-tp4
(DTensor), gpt-dp4 (DDP), gpt-fully-sharded (FSDP2); in gpt-alone each rank trains on its part of the batch and no rank talks to another, which is
what PyTorch computes at the least. Rank 0 prints the losses of the whole batch, the sorted times and the CPU time of all ranks in ms, as JSON."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

import training_peers
from run_training import OPTIMIZER


def main():
    case, steps, size = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    times, cpu, losses = [], [], []
    with training_peers.placed(case, size) as (model, loss_of, after):
        # Plain tensors and DTensors do not go into one fused update.
        kinds = [[p for p in model.parameters() if isinstance(p, DTensor) == is_sharded] for is_sharded in (False, True)]
        optimizer = torch.optim.AdamW([{"params": kind} for kind in kinds if kind], **OPTIMIZER, fused=True)
        for _ in range(steps):
            dist.barrier()
            begin, used = time.perf_counter(), time.process_time()
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of()
            loss.backward()
            after()
            optimizer.step()
            times.append((time.perf_counter() - begin) * 1e3)
            cpu.append((time.process_time() - used) * 1e3)
            whole = loss.detach()
            whole = whole.full_tensor() if hasattr(whole, "full_tensor") else whole.clone()
            dist.all_reduce(whole)
            losses.append(float(whole) / dist.get_world_size())
    used = torch.tensor(sum(cpu[3:]) / len(cpu[3:]))
    dist.all_reduce(used)
    if dist.get_rank() == 0:
        print(json.dumps({"step_ms": sorted(times[3:]), "cpu_ms": float(used), "losses": losses}), flush=True)
    # All is measured. The process group's threads may abort a process in which they are torn down.
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
