# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for devices, run by shard-run on the emulated one: threads and processes, orders of streams, failures. The first program is written
by hand (test/unit/runtime/artifact/device.c), so that nothing depends on what the compiler makes; then come models."""
import ctypes.util
import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BUILD, run, tool
from launchers import launch
from plans import DATA_PARALLEL, REPLICATED_OUTPUT, tensor_parallel

ARTIFACTS = BUILD / "test/artifacts"
pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists() or not (ARTIFACTS / "device_artifact_1.so").exists(),
                                reason="the emulated device was not built")
X = np.arange(100, dtype=np.float32)


@pytest.fixture
def files(tmp_path):
    save_file({"w": np.arange(8, dtype=np.float32), "calls": np.array(41)}, tmp_path / "w")
    save_file({"x": X}, tmp_path / "in")
    return tmp_path


def expected(world):
    return 2 * X * world + world * (world - 1) / 2 + 28


def device_run(files, world, *options, check=True, x=None, **environment):
    if x is not None:
        save_file({"x": np.asarray(x, dtype=np.float32)}, files / "in")
    return run(tool("shard-run"), ARTIFACTS / f"device_artifact_{world}.so", "--device", "emulated", "--weights", files / "w",
               "--inputs", files / "in", "--outputs", files / "out", *options, check=check,
               env={**os.environ, **environment})


@pytest.mark.parametrize("order", ["eager", "lazy", "random:1", "random:2"])
@pytest.mark.parametrize("options", [(), ("--no-overlap",), ("--processes",)], ids=["threads", "no-overlap", "processes"])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_answers(files, world, options, order):
    device_run(files, world, *options, "--steps", 5, CUDA_EMULATED_ORDER=order)
    outputs = load_file(files / "out")
    np.testing.assert_array_equal(outputs["y"], expected(world))
    assert outputs["total"] == 28


@pytest.mark.parametrize("collectives", ["device", "host"])
def test_collectives_of_processes(files, collectives):
    done = device_run(files, 2, "--processes", "--steps", 4, SHARDRT_DEVICE_COLLECTIVES=collectives, SHARDRT_LOG="info")
    np.testing.assert_array_equal(load_file(files / "out")["y"], expected(2))
    assert ("collectives go through the host" in done.stderr) == (collectives == "host")


@pytest.mark.parametrize("environment, way", [
    ({}, "between devices by kernels over peer access"), ({"SHARDRT_DEVICE_COLLECTIVES": "peers"}, "between devices by kernels over peer access"),
    ({"CUDA_EMULATED_DEVICES": "1", "CUDA_EMULATED_PEERS": "off"}, "between devices by kernels over peer access"),
    ({"CUDA_EMULATED_PEERS": "off"}, "through the host: rank 0: there is no peer access from device 0 to device 1"),
    ({"SHARDRT_DEVICE_COLLECTIVES": "host"}, "through the host: rank 0: SHARDRT_DEVICE_COLLECTIVES asks for it")])
def test_collectives_of_threads(files, environment, way):
    for order in ["eager", "lazy", "random:5"]:
        done = device_run(files, 2, "--steps", 4, SHARDRT_LOG="info", CUDA_EMULATED_ORDER=order, **environment)
        np.testing.assert_array_equal(load_file(files / "out")["y"], expected(2))
        assert f"collectives go {way}" in done.stderr, done.stderr


@pytest.mark.parametrize("options", [(), ("--processes",)], ids=["threads", "processes"])
@pytest.mark.parametrize("world", [1, 2])
def test_kernels_that_fail(files, world, options):
    done = device_run(files, world, *options, "--steps", 3, "--flight-record", files / "flight", check=False, x=[1, -2, 3])
    assert done.returncode != 0
    assert "embed (model.py:3): index is out of range" in done.stderr
    records = [json.loads((files / f"flight/rank-{rank}.json").read_text()) for rank in range(world)]
    # The first rank that sees its failure ends the others.
    assert any(record["status"] == "program error" and record["op"] == "twice" for record in records), records


def test_traces(files):
    device_run(files, 2, "--steps", 3, "--trace", files / "t.json")
    events = json.loads((files / "t.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = [e["name"] for e in events if e.get("ph") == "X"]
    for name in ["twice", "sum", "all_reduce.0", "all_reduce.1"]:
        assert names.count(name) >= 4, name  # two steps of two ranks


def test_what_is_refused(files):
    program = ARTIFACTS / "device_artifact_1.so"
    done = run(tool("shard-run"), program, "--weights", files / "w", "--inputs", files / "in", check=False)
    assert done.returncode != 0 and "compiled for the emulated device" in done.stderr
    done = run(tool("shard-run"), program, "--device", "7x", "--weights", files / "w", "--inputs", files / "in", check=False)
    assert done.returncode != 0 and "expected a number or 'emulated'" in done.stderr
    done = run(tool("shard-run"), ARTIFACTS / "hand_artifact.so", "--device", "0", check=False)
    assert done.returncode != 0 and "the program computes on the host" in done.stderr
    done = device_run(files, 1, check=False, x=np.zeros(10000), CUDA_EMULATED_MEMORY="65536")
    assert done.returncode != 0 and "the arena: " in done.stderr and "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr, done.stderr


# A driver that says of itself which version it is, and can do nothing.
DRIVER = """
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { return INIT; }
int cuGetErrorName(int error, const char **name) { *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR"; return 0; }
int cuGetErrorString(int error, const char **text) { *text = "as asked for"; return 0; }
"""


@pytest.mark.parametrize("version, says", [(None, "the driver of CUDA cannot be loaded:"),
                                           (11080, "is a driver for CUDA 11.8, and programs need one for 12.0 at least"),
                                           (12040, "lacks cuDeviceGetCount, cuDeviceGet, ")])
def test_drivers_that_do_not_do(files, version, says):
    if version is None and ctypes.util.find_library("cuda"):
        pytest.skip("this machine has a driver")
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if version:
        (files / "driver.c").write_text(DRIVER)
        run(compiler, "-shared", "-fPIC", f"-DVERSION={version}", "-DINIT=100", files / "driver.c", "-o", files / "libcuda.so.1")
    done = run(tool("shard-run"), ARTIFACTS / "device_artifact_chip.so", "--weights", files / "w", "--inputs", files / "in", check=False,
               env={**os.environ, "LD_LIBRARY_PATH": str(files)})
    assert done.returncode != 0 and says in done.stderr, done.stderr


SHARDED = ("dp=2,tp=2", "--target=cuda:emulated", *DATA_PARALLEL, *tensor_parallel("gpt2_odd"), *REPLICATED_OUTPUT)


def test_models(compile_model, tmp_path):
    """Eager, captured and from graphs; on one rank, on threads and on processes."""
    one = compile_model("gpt2_odd", "tp=1", "--target=cuda:emulated")
    one.run(tmp_path, options=("--device", "emulated", "--steps", 3))
    program = compile_model("gpt2_odd", *SHARDED)
    threads = program.run(tmp_path, options=("--device", "emulated", "--steps", 3))
    program.run(tmp_path, options=("--device", "emulated", "--processes", "--steps", 3))
    # Through the host the bits are those of threads.
    staged = tmp_path / "staged"
    run(tool("shard-run"), program.path, "--device", "emulated", "--processes", "--weights", program.source.path, "--inputs",
        program.source.inputs, "--outputs", staged, env={**os.environ, "SHARDRT_DEVICE_COLLECTIVES": "host"})
    for name, value in load_file(staged).items():
        assert value.tobytes() == threads[name].tobytes(), name


@pytest.mark.parametrize("mesh", [("tp=2", *tensor_parallel("gpt2_odd")), ("tp=3", *tensor_parallel("gpt2_odd"), *REPLICATED_OUTPUT), SHARDED],
                         ids=["tp2", "tp3", "dp2xtp2"])
def test_ranks_that_are_threads(compile_model, tmp_path, mesh):
    """Over peer access, on several devices and on one, they have the bits of the way through the host, and nothing goes that way."""
    program = compile_model("gpt2_odd", *(mesh if mesh is SHARDED else (mesh[0], "--target=cuda:emulated", *mesh[1:])))
    answers = []
    for environment in [{"SHARDRT_DEVICE_COLLECTIVES": "host"}, {}, {"CUDA_EMULATED_DEVICES": "1"}, {"CUDA_EMULATED_ORDER": "random:6"}]:
        out = tmp_path / "out"
        done = run(tool("shard-run"), program.path, "--device", "emulated", "--steps", 2, "--weights", program.source.path, "--inputs",
                   program.source.inputs, "--outputs", out, env={**os.environ, "SHARDRT_LOG": "info", **environment})
        assert ("collectives go between devices by kernels over peer access" in done.stderr) == ("SHARDRT_DEVICE_COLLECTIVES" not in environment)
        assert ("through the host" in done.stderr) == ("SHARDRT_DEVICE_COLLECTIVES" in environment)
        answers.append({name: value.tobytes() for name, value in load_file(out).items()})
        assert answers[-1] == answers[0], environment


def test_models_under_launchers(compile_model, tmp_path):
    """The device of a rank is that of its number on its host, as the launcher says."""
    program = compile_model("gpt2_odd", *SHARDED)
    wanted = load_file(program.source.outputs)
    for kind in ["torchrun", "processes gloo", "mpirun mpi"]:
        launch(kind, program.path, "--device", "emulated", "--weights", program.source.path, "--inputs", program.source.inputs,
               "--outputs", tmp_path / "out", "--steps", 2)
        for name, value in load_file(tmp_path / "out").items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-4 * np.abs(wanted[name]).max())


def test_dynamic_sizes(compile_model, tmp_path):
    """One graph for each tuple of sizes."""
    program = compile_model("gpt2_dynamic", "tp=2", "--target=cuda:emulated", *tensor_parallel("gpt2"), *REPLICATED_OUTPUT)
    program.run(tmp_path, options=("--device", "emulated", "--steps", 3))
