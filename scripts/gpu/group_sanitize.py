# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs (`programs.checked`) under compute-sanitizer, where it is installed: no bad access, no race, nothing
uninitialised, and no divergent barrier."""
import os
import re
import shutil

import tensors

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# What these find is asked of our own kernels; a product is a library's.
OURS = ("initcheck", "synccheck")


def errors(output):
    """How many errors the tool counted; None where it says nothing of them."""
    counts = [int(n) for n in re.findall(r"ERROR SUMMARY: (\d+) error", output)]
    counts += [int(n) for n in re.findall(r"RACECHECK SUMMARY: (\d+) hazard", output)]
    return sum(counts) if counts else None


def run(it):
    sanitizer = shutil.which("compute-sanitizer", path=":".join([os.environ.get("PATH", ""), "/usr/local/cuda/bin",
                                                                 "/usr/local/cuda/compute-sanitizer"]))
    if not sanitizer:
        for tool in TOOLS:
            it.report.skip(tool, "compute-sanitizer is not installed")
        return
    for tool in TOOLS:
        if tool in OURS and it.left < 60:
            it.report.skip(tool, "the group's time was used up by memcheck and racecheck")
            continue
        it.each([op for op in it.chosen("sanitize") if tool not in OURS or op.name != "checked_linear"], lambda op, tool=tool: sanitize(it, sanitizer, tool, op))


def sanitize(it, sanitizer, tool, op):
    inputs = it.out / f"{op.name}.safetensors"
    if not inputs.exists():
        tensors.save({f"x{i}": t for i, t in enumerate(op.operands())}, inputs)
    status, output = it.run(sanitizer, "--tool", tool, "--error-exitcode", "9", it.folder / "bin/shard-run",
                            it.folder / "programs" / f"{op.name}.so", "--device", it.device_name, "--inputs", inputs,
                            seconds=90)
    if "Device not supported" in output:
        it.report.skip(f"{op.name}: {tool}", "compute-sanitizer does not support this device")
        return
    found = errors(output)
    problem = None if status == 0 and found == 0 else f"ended with {status}, {found} errors: {output[-400:]}"
    it.report.check(f"{op.name}: {tool}", problem)
