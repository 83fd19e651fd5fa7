# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fails unless shard-opt reads a file within a number of seconds of CPU time, best of 20 runs."""

import resource
import subprocess
import sys

path, limit = sys.argv[1], float(sys.argv[2])


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


best = float("inf")
for _ in range(20):
    before = children_seconds()
    subprocess.run(["shard-opt", path, "-o", "/dev/null"], check=True)
    best = min(best, children_seconds() - before)
print(f"{best * 1000:.1f} ms")
sys.exit(best > limit)
