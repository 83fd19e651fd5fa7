# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that communicate by emulated NCCL, and what happens when it or one of them fails. The program is that of test_cuda_runtime.py."""
import glob
import os
import signal
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BUILD, run, tool
from plans import DATA_PARALLEL, REPLICATED_OUTPUT, tensor_parallel

GUARD = 300  # seconds, for what takes one or two unless it hangs
ARTIFACTS = BUILD / "test/artifacts"
pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists() or not (ARTIFACTS / "device_artifact_2.so").exists(),
                                reason="the emulated device was not built")


@pytest.fixture
def files(tmp_path):
    save_file({"w": np.arange(8, dtype=np.float32), "calls": np.array(41)}, tmp_path / "w")
    save_file({"x": np.arange(100, dtype=np.float32)}, tmp_path / "in")
    (tmp_path / "nccl").mkdir()
    return tmp_path


def start(files, world, *options, **environment):
    return subprocess.Popen([str(c) for c in (tool("shard-run"), ARTIFACTS / f"device_artifact_{world}.so", "--device", "emulated", "--processes",
                                              "--weights", files / "w", "--inputs", files / "in", "--outputs", files / "out", *options)],
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "SHARDRT_DEVICE_COLLECTIVES": "device", "CUDA_EMULATED_NCCL_FOLDER": str(files / "nccl"),
                                 **environment})


def finish(process):
    try:
        out, err = process.communicate(timeout=GUARD)
    finally:
        process.kill()
    return process.returncode, err


def left(files):
    """What the ranks have left where they communicated."""
    return os.listdir(files / "nccl")


# Sums of whole numbers, which are exact in any order: whoever reduces, the answer is this one.
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("reduce", ["auto", "nccl", "runtime"])
def test_answers_do_not_depend_on_who_reduces(files, world, reduce):
    status, err = finish(start(files, world, "--steps", 4, SHARDRT_NCCL_REDUCE=reduce))
    assert status == 0, err
    np.testing.assert_array_equal(load_file(files / "out")["y"], 2 * np.arange(100) * world + world * (world - 1) / 2 + 28)
    assert not left(files)


# The first is the one that hands out inputs. Operation 5 is not the first of its kind: members do not compare it on the host any more, and it may be part of a graph.
@pytest.mark.parametrize("number", ["1:1", "5:0", "6:1"])
def test_asynchronous_errors(files, number):
    status, err = finish(start(files, 2, "--steps", 20, CUDA_EMULATED_NCCL_ERROR=number))
    assert status != 0
    assert ("the broadcast of an input" if number == "1:1" else "all_reduce.") in err, err # which that operation is
    assert "CUDA_EMULATED_NCCL_ERROR" in err and "remote process exited" in err, err
    assert not left(files)


@pytest.mark.parametrize("victim", [0, 1, 3])
def test_a_rank_that_is_killed(files, victim):
    # Nobody reaches that deadline: when one is killed, the others end without it.
    process = start(files, 4, "--steps", 1000000, "--timeout", 10 * GUARD, "--progress")
    said = ""
    while "step 3 of" not in said:  # at the latest when the process ends
        line = process.stderr.readline()
        assert line, said
        said += line
    # Each is in the folder by which they communicate.
    ranks = [int(name.rsplit(".", 1)[1]) for name in sorted(glob.glob(f"{files}/nccl/*/here.*"))]
    assert len(ranks) == 4
    os.kill(ranks[victim], signal.SIGKILL)
    status, err = finish(process)
    assert status != 0
    assert f"rank {victim}" in err and f"pid {ranks[victim]}" in err and "SIGKILL" in err, err


SHARDED = ("dp=2,tp=2", "--target=cuda:emulated", *DATA_PARALLEL, *tensor_parallel("gpt2_odd"), *REPLICATED_OUTPUT)


def test_sums_in_order_have_the_bits_of_threads(compile_model, tmp_path):
    """NCCL moves, and kernels add in the order of positions; in every order of streams."""
    program = compile_model("gpt2_odd", *SHARDED)
    threads = program.run(tmp_path, options=("--device", "emulated", "--steps", 3))
    for order in ["eager", "lazy", "random:4"]:
        out, reports = tmp_path / f"out.{order}", tmp_path / f"reports.{order}"
        run(tool("shard-run"), program.path, "--device", "emulated", "--processes", "--steps", 3, "--weights", program.source.path,
            "--inputs", program.source.inputs, "--outputs", out,
            env={**os.environ, "SHARDRT_DEVICE_COLLECTIVES": "device", "SHARDRT_NCCL_REDUCE": "runtime", "CUDA_EMULATED_ORDER": order,
                 "CUDA_EMULATED_REPORTS": str(reports), "SHARDRT_GEMM_TUNE": "0"})
        assert not reports.exists(), reports.read_text()
        for name, value in load_file(out).items():
            assert value.tobytes() == threads[name].tobytes(), (order, name)
