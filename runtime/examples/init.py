# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the parameters of a program from Python, with ctypes alone, and writes them into a file that PyTorch reads: the same values as init.cpp.

    SHARDRT=build/lib/libshardrt.so python init.py step.so weights.safetensors [seed]

The program is one that `shardc compile` has made for a plan whose section `train` has a list `init`; no weights are loaded. The values are the
same for every number of ranks. With --resume weights.safetensors, shard-run trains from there."""
import ctypes as C
import sys

import numpy as np

from run import GLOBAL, check, lib, tensor
from train import World


def initialise(world, seed):
    """Runs the entry `init`. The seed is what the numbers are a function of: all ranks get the same, before."""
    value = tensor(np.array(seed, np.int64), GLOBAL)
    world.each(lambda rank: check(lib.shardrt_set_state, rank.model, b"random.seed", C.byref(value)))
    world.run("init")


def main(program, file, seed="0"):
    world = World(program, weights=None)
    initialise(world, int(seed))
    world.save(file)
    world.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
