# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that Slurm's srun starts, on one host and on two: they find each other by Slurm's variables alone, and give PyTorch's answers."""
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

import slurm
from conftest import BUILD, tool
from plans import DATA_PARALLEL, REPLICATED_OUTPUT, tensor_parallel

pytestmark = pytest.mark.skipif(bool(slurm.reason_not()), reason=slurm.reason_not())
SECRET = "a secret that only these hosts know"
CHOSEN = {1: "local, 4 processes, shared memory, started by srun", 2: "gloo, 4 processes on 2 hosts, Gloo over TCP, started by srun"}


@pytest.mark.parametrize("count", CHOSEN)
@pytest.mark.parametrize("name", ["gpt2_odd", "llama"])
def test_srun(compile_model, tmp_path, name, count):
    if count > 1 and not (BUILD / "lib/shardrt/libshardrt_gloo.so").exists():
        pytest.skip("there is no plugin of Gloo (libgloo-dev of Debian)")
    program = compile_model(name, "dp=2,tp=2", *DATA_PARALLEL, *tensor_parallel(name), *REPLICATED_OUTPUT)
    environment = {**os.environ, "SHARDRT_LOG": "info", **({"SHARDRT_SECRET": SECRET} if count > 1 else {})}
    done = slurm.srun(tmp_path / "slurm", count, ["-N", count, "-n", 4, "--overcommit", tool("shard-run"), program.path, "--weights",
                      program.source.path, "--inputs", program.source.inputs, "--outputs", tmp_path / "out", "--steps", 2], environment)
    assert f"communicator: {CHOSEN[count]}" in done.stderr, done.stderr
    got, want = load_file(tmp_path / "out"), load_file(program.source.outputs)
    assert got.keys() == want.keys()
    for output, value in want.items():
        np.testing.assert_allclose(got[output], value, rtol=1e-4, atol=1e-4 * np.abs(value).max())
