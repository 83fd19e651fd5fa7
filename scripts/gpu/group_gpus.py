# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several GPUs, where there are: the bus bandwidth of our collectives over NCCL, over that of nccl-tests where it is installed, else
over PyTorch's calls of the same NCCL (rank_buckets.py), measured in turns."""
import concurrent.futures
import json
import os
import re
import secrets
import shutil
import statistics
import sys

import torch

import commands
import group_ranks
import rank_buckets

LIMIT = 0.9
# The programs of https://github.com/NVIDIA/nccl-tests.
TOOLS = {"all_reduce": "all_reduce_perf", "all_gather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf"}


def bus_bandwidth(kind, world, size, seconds):
    """GB/s as nccl-tests counts (its doc/PERFORMANCE.md): what crosses each link at least. `size`: bytes of the whole bucket,
    which all ranks have together before a reduce-scatter and after an all-gather."""
    share = (world - 1) / world
    return size / seconds * 1e-9 * (2 * share if kind == "all_reduce" else share)


def of_nccl_tests(output):
    """{bytes: GB/s}, the better of out of place and in place, of a table that an nccl-tests program prints."""
    found = {}
    for line in output.splitlines():
        words = line.split()
        # size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong
        if len(words) >= 13 and words[0].isdigit() and words[1].isdigit():
            found[int(words[0])] = max(float(words[7]), float(words[11]))
    return found


def run(it):
    count = rank_buckets.EMULATED_DEVICES if it.emulated else torch.cuda.device_count()
    programs = [p for p in it.chosen("gpus") if p.world <= count]
    if not programs:
        it.report.skip("bus bandwidth", f"there is {count} GPU" if count == 1 else f"there are {count} GPUs")
        return
    it.each(programs[-1:], lambda program: buckets(it, program))


def buckets(it, program):
    """Seconds of each rank's each round, from one process for each GPU."""
    world, folder = program.world, it.out / "gpus"
    folder.mkdir(exist_ok=True)
    port, secret = group_ranks.free_port(), secrets.token_hex(16)
    rendezvous = folder / f"rendezvous.{port}"

    def rank(number):
        own = {"RANK": str(number), "WORLD_SIZE": str(world), "LOCAL_RANK": str(number), "LOCAL_WORLD_SIZE": str(world),
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "SHARDRT_SECRET": secret,
               "SHARDRT_DEVICE_COLLECTIVES": "device"}
        command = [sys.executable, rank_buckets.__file__, it.folder, program.name, "emulated" if it.emulated else "cuda",
                   rendezvous, folder / f"{number}.json"]
        return commands.bounded(command, min(180, it.left - 2), env=os.environ | it.environment() | own)
    with concurrent.futures.ThreadPoolExecutor(world) as pool:
        results = list(pool.map(rank, range(world)))
    print("\n".join(text for _, text in results))
    if any(status for status, _ in results):
        raise RuntimeError(" | ".join(f"rank {n} ended with {s}: {t[-300:]}" for n, (s, t) in enumerate(results) if s))
    found = [json.loads((folder / f"{number}.json").read_text()) for number in range(world)]
    installed = {kind: reference(it, kind, program) for kind in program.KINDS}
    for name, kind, count in program.cases():
        compare(it, program, name, kind, 4 * count, found, installed[kind])


def seconds(found, side, name):
    """A round takes as long as the rank that came last was in it; the median of rounds."""
    return statistics.median(min(times) for times in zip(*(rank[side][name] for rank in found), strict=True))


def compare(it, program, name, kind, size, found, installed):
    ours, torchs = (bus_bandwidth(kind, program.world, size, seconds(found, side, name)) for side in ("ours", "torch"))
    against, which = (installed[size], "nccl-tests") if size in installed else (torchs, "PyTorch's NCCL")
    label = f"{kind} of {size / 2**20:g} MiB, {program.world} GPUs"
    it.report.add(f"{label}: bus bandwidth", ours, unit="GB/s", note=f"PyTorch {torchs:.4g}")
    it.report.add(f"{label}: over {which}", ours / against, LIMIT, note=f"{against:.4g} GB/s")
    for rank, own in enumerate(found):
        if own["problems"].get(name):
            it.report.check(f"{label}: rank {rank}", own["problems"][name])


def reference(it, kind, program):
    """Of nccl-tests, where it is installed: {bytes: GB/s}."""
    tool = shutil.which(TOOLS[kind])
    if not tool or it.emulated:
        return {}
    low, high = min(program.sizes), max(program.sizes)
    status, output = it.run(tool, "-b", low, "-e", high, "-f", 4, "-g", program.world, "-n", 20, "-w", 5, seconds=60)
    return {} if status or not re.search(r"^\s*\d", output, re.M) else of_nccl_tests(output)
