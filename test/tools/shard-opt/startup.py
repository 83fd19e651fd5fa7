# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails unless shard-opt reads a file within a multiple of the CPU time that mlir-opt needs to start, best of 20 runs each, in turn.

Both spend it on loading LLVM's shared library, so the ratio holds on any machine, and under load."""

import resource
import subprocess
import sys

path, mlir_opt, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
COMMANDS = (["shard-opt", path, "-o", "/dev/null"], [mlir_opt, "/dev/null", "-o", "/dev/null"])


def seconds(command):
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run(command, check=True)
    return spent() - before


runs = [[seconds(command) for command in COMMANDS] for _ in range(20)]
ours, theirs = (min(times) for times in zip(*runs))
print(f"{ours * 1000:.1f} ms, mlir-opt {theirs * 1000:.1f} ms")
sys.exit(ours > limit * theirs)
