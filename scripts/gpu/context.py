# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a group of measurements works with: the packed folder, the device, and the time that is left."""
import json
import os
import time
import traceback

import torch

import commands
import measure
import programs
import shardrt


class OutOfTime(Exception):
    pass


class Context:
    def __init__(self, folder, out, device, end, report):
        self.folder, self.out, self.end, self.report = folder, out, end, report
        self.emulated = device == "emulated"
        self.number = 0 if self.emulated else int(device)
        self.facts = json.loads((folder / "pack.json").read_text())
        self.for_device = self.facts["target"].startswith("cuda")
        self.packed = set(self.facts["programs"])
        self.clocks = None
        self.place, self.device_name = self.where()
        if not self.emulated:
            torch.cuda.set_device(self.place)
        os.environ.update(self.environment())
        self.library = shardrt.Library(folder / "lib/libshardrt.so")

    def where(self):
        """PyTorch's device, and what the runtime calls it."""
        if self.emulated:
            return torch.device("cpu"), "emulated"
        return torch.device("cuda", self.number), str(self.number)

    def environment(self):
        library = os.environ.get("LD_LIBRARY_PATH")
        paths = [str(self.folder / "lib"), *([library] if library else []), *([] if self.emulated else commands.cuda_folders())]
        return {"LD_LIBRARY_PATH": ":".join(dict.fromkeys(":".join(paths).split(":")))}

    @property
    def left(self):
        return self.end - time.monotonic()

    def chosen(self, group):
        return [p for p in programs.everything(self.facts["small"]) if p.group == group and p.name in self.packed]

    def stream(self):
        """PyTorch's; its default one has a number of its own."""
        return None if self.emulated else torch.cuda.current_stream().cuda_stream or 1

    def open(self, name, weights=None, **options):
        return shardrt.Program(self.library, self.folder / "programs" / f"{name}.so",
                               self.device_name if self.for_device else None, self.stream(), weights, **options)

    def synchronise(self):
        if not self.emulated:
            torch.cuda.synchronize()

    @property
    def gpu(self):
        """Clocks; the first use warms the device up."""
        if self.clocks is None:
            self.clocks = measure.Gpu(torch, self.place, self.facts.get("flushed", measure.Gpu.FLUSHED))
            self.clocks.warm_up()
        return self.clocks

    def kernels(self, call, *functions, seconds=1.0):
        """The device's time for a recorded program's call and for functions of PyTorch, in turns."""
        return measure.interleaved([self.gpu.of_call(call), *map(self.gpu.of_function, functions)], seconds)

    def steps(self, *functions, seconds=1.0):
        """The host's time for whole steps, in turns."""
        self.gpu
        return measure.interleaved(list(map(self.gpu.of_step, functions)), seconds)

    def each(self, items, work):
        """Runs `work` for each item that there is time for. One that fails is a miss, and the next goes on; so are those
        that there is no time for."""
        for item in items:
            name = getattr(item, "name", None) or str(item)
            if self.left < 3:
                self.report.check(name, "not run: the group's time was used up")
                continue
            try:
                work(item)
            except Exception as error:  # any: it must not cost the rest
                traceback.print_exc()
                self.report.check(name, f"{type(error).__name__}: {error}")
            if not self.emulated:
                torch.cuda.empty_cache()

    def run(self, *command, seconds=None, env=None):
        """Exit status and output of a program of the folder, which gets at most the time that is left."""
        limit = max(min(seconds or self.left, self.left), 1)
        status, output = commands.bounded(command, limit, env=os.environ | self.environment() | (env or {}))
        print(output)
        return status, output
