# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a group of measurements works with: the packed folder, the device, and the time that is left."""
import json
import os
import subprocess
import time
import traceback

import torch

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
        self.place = torch.device("cpu") if self.emulated else torch.device("cuda", self.number)
        if not self.emulated:
            torch.cuda.set_device(self.place)
        self.device_name = "emulated" if self.emulated else str(self.number)
        os.environ.update(self.environment())
        self.library = shardrt.Library(folder / "lib/libshardrt.so")

    def environment(self):
        library = os.environ.get("LD_LIBRARY_PATH")
        paths = [str(self.folder / "lib")] + ([library] if library else [])
        return {"LD_LIBRARY_PATH": ":".join(paths)}

    @property
    def left(self):
        return self.end - time.monotonic()

    def chosen(self, group):
        return [p for p in programs.everything() if p.group == group and p.name in self.packed]

    def stream(self):
        """PyTorch's; its default one has a number of its own."""
        return None if self.emulated else torch.cuda.current_stream().cuda_stream or 1

    def open(self, name, weights=None):
        return shardrt.Program(self.library, self.folder / "programs" / f"{name}.so",
                               self.device_name if self.for_device else None, self.stream(), weights)

    def synchronise(self):
        if not self.emulated:
            torch.cuda.synchronize()

    def measure(self, *functions, seconds=1.0):
        return measure.on_gpu(torch, *functions, seconds=seconds)

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

    def run(self, *command, seconds=None, **kwargs):
        """Exit status and output of a program of the folder, which gets at most the time that is left."""
        limit = min(seconds or self.left, self.left)
        try:
            done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=max(limit, 1), env=os.environ | self.environment() | kwargs.pop("env", {}), **kwargs)
        except subprocess.TimeoutExpired as error:
            return 124, (error.stdout or b"").decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        print(done.stdout)
        return done.returncode, done.stdout
