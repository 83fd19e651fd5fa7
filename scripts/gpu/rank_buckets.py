# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One rank of the comparison of buckets: runs the program and PyTorch's collectives in turns, and writes seconds of every round:
rank_buckets.py FOLDER PROGRAM cuda|emulated RENDEZVOUS OUT"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import programs  # noqa: E402
import shardrt  # noqa: E402

EMULATED_DEVICES = 2
WARM, ROUNDS = 3, 20


def operand(kind, count, rank, world, place):
    """What this rank has: small whole numbers, whose sums are exact. And what it gets."""
    whole = torch.arange(count, device=place) % 101

    def part(tensor):
        return tensor.chunk(world)[rank].contiguous()
    if kind == "all_gather":
        return part(whole.float()), whole.float()
    want = (world * whole + world * (world - 1) // 2).float()
    return (whole + rank).float(), want if kind == "all_reduce" else part(want)


def torchs(kind, own, result):
    """A function that does the same by PyTorch, into its own memory."""
    if kind == "all_reduce":
        own = own.clone()
        return lambda: dist.all_reduce(own)
    if kind == "all_gather":
        return lambda: dist.all_gather_into_tensor(result, own)
    return lambda: dist.reduce_scatter_tensor(result, own)


def meet(on_gpu):
    """All ranks, with nothing left to do on their devices: the program has a stream of its own."""
    dist.barrier()
    if on_gpu:
        torch.cuda.synchronize()


def timed(functions):
    """Seconds of each on the device, one after the other without the host between them."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(functions) + 1)]
    torch.cuda._sleep(1_000_000)
    marks[0].record()
    for function, mark in zip(functions, marks[1:], strict=True):
        function()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:])]


class Ours:
    """The program on this rank."""

    def __init__(self, folder, name, device, operands, results):
        library = shardrt.Library(folder / "lib/libshardrt.so")
        self.communicator = library.communicator()
        self.program = shardrt.Program(library, folder / "programs" / f"{name}.so", device, record=True,
                                       communicator=self.communicator)
        self.rank = self.program.ranks[0]
        views = [[shardrt.view(t, shardrt.LOCAL) for t in tensors] for tensors in (operands, results)]
        self.inputs, self.outputs = ((shardrt.Tensor * len(v))(*v) for v in views)
        self.kept = views

    def run(self):
        """Seconds of each collective, by the name in its location."""
        self.rank.clear_events()
        self.rank.run(self.program.entry()["name"].encode(), self.inputs, self.outputs)
        return {e[2].split()[0]: e[4] - e[3] for e in self.rank.events() if e[0] == shardrt.COMM}

    def close(self):
        self.program.close()
        self.program.library.lib.shardrt_communicator_destroy(self.communicator)


def main(folder, name, device, rendezvous, out):
    folder = pathlib.Path(folder)
    rank, world, local = (int(os.environ[key]) for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    on_gpu = device == "cuda"
    place = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if on_gpu else "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    facts = json.loads((folder / "pack.json").read_text())
    program = next(p for p in programs.everything(facts["small"]) if p.name == name)
    cases = program.cases()
    pairs = [operand(kind, count, rank, world, place) for _, kind, count in cases]
    operands = [own for own, _ in pairs]
    results = [torch.empty_like(want) for _, want in pairs]
    theirs = [torchs(kind, own, torch.empty_like(want)) for (_, kind, _), (own, want) in zip(cases, pairs)]
    ours = Ours(folder, name, str(local) if on_gpu else "emulated", operands, results)
    found = {"ours": {case[0]: [] for case in cases}, "torch": {case[0]: [] for case in cases}, "problems": {}}
    for number in range(WARM + ROUNDS):
        meet(on_gpu)
        took = ours.run()
        meet(on_gpu)
        reference = timed(theirs) if on_gpu else [1.0] * len(cases)
        for (case, _, _), seconds in zip(cases, reference, strict=True):
            if number >= WARM:
                found["ours"][case].append(took[case])
                found["torch"][case].append(seconds)
    for (case, _, _), got, (_, want) in zip(cases, results, pairs, strict=True):
        if not torch.equal(got, want):
            found["problems"][case] = f"{int((got != want).sum())} of {want.numel()} elements are wrong"
    ours.close()
    pathlib.Path(out).write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
