# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a group of scripts/gpu as on a machine with a GPU, where there is none: programs run on the emulated device, PyTorch on the
CPU, and this stands for what torch.cuda does. Figures mean nothing; that there are some, and that answers are right, does.

    gpu_standin.py FOLDER [arguments of run.py]"""
import pathlib
import sys
import time
import types

import torch

FOLDER = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(FOLDER / "gpu"))

import context  # noqa: E402
import measure  # noqa: E402
import run  # noqa: E402


class Event:
    def __init__(self, enable_timing=False):
        assert enable_timing
        self.time = None

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        assert self.time is not None, "it was not recorded"

    def elapsed_time(self, other):
        return 1e3 * (other.time - self.time)  # milliseconds, as torch.cuda's


def compiled(module, *, mode, fullgraph, dynamic, compile=torch.compile):
    """Traced as by torch.compile, but not compiled."""
    assert mode == "default" or mode in torch._inductor.list_mode_options()
    return compile(module, backend="eager", fullgraph=fullgraph, dynamic=dynamic)


def install():
    cuda = torch.cuda
    cuda.Event, cuda.synchronize = Event, lambda: None
    cuda._sleep = lambda cycles: time.sleep(cycles * 1e-9)
    cuda.set_device = cuda.empty_cache = lambda *_: None
    cuda.device_count = lambda: 2
    cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=0)
    cuda.get_device_properties = lambda _: types.SimpleNamespace(multi_processor_count=1, name="none")
    cuda.nccl.version = lambda: (2, 27, 3)
    torch.compile = compiled
    context.Context.where = lambda _: (torch.device("cpu"), "emulated")
    context.Context.gpu = property(clocks)


def clocks(it):
    """Without seconds of warming up, and few rounds."""
    return measure.Gpu(torch, it.place, flushed=64)


if __name__ == "__main__":
    install()
    measure.interleaved.__defaults__ = (0.0, 2, 2, 1)
    sys.exit(run.main(sys.argv[2:]))
