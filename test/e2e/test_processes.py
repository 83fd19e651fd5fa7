# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose ranks are processes, of shard-run and of launchers: the bits of threads, and PyTorch's answers. Inputs are on rank 0 only."""
import json
import shutil
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from conftest import BUILD, ROOT, run, tool
import test_meshes
from launchers import TORCHRUN, launch, torchrun
from plans import DATA_PARALLEL, MLP_TP, REPLICATED_OUTPUT, places, tensor_parallel

KINDS = ["processes", "mpirun", "torchrun", "processes gloo", "mpirun mpi"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gpt2_odd", "llama"])
def test_processes_answer_as_threads(compile_model, tmp_path, name, kind):
    program = compile_model(name, "dp=2,tp=2", *DATA_PARALLEL, *tensor_parallel(name), *REPLICATED_OUTPUT)
    threads = program.run(tmp_path)  # within 1e-4 of PyTorch's
    launch(kind, program.path, "--weights", program.source.path, "--inputs", program.source.inputs, "--outputs", tmp_path / "out", "--steps", 2)
    processes = load_file(tmp_path / "out")
    assert processes.keys() == threads.keys()
    # Over MPI the engine adds in an order of its own.
    for output, value in threads.items():
        if kind == "mpirun mpi":
            np.testing.assert_allclose(processes[output], value, rtol=1e-4, atol=1e-4 * np.abs(value).max())
        else:
            assert processes[output].tobytes() == value.tobytes(), output


def test_inputs_of_a_dynamic_model_are_on_rank_0_only(compile_model, tmp_path):
    program = compile_model("gpt2_dynamic", "dp=2,tp=2", *DATA_PARALLEL, *tensor_parallel("gpt2"))
    program.run(tmp_path)
    wanted = load_file(tmp_path / "outputs.safetensors")
    launch("processes", program.path, "--weights", program.source.path, "--inputs", program.source.inputs, "--outputs", tmp_path / "out")
    for output, value in load_file(tmp_path / "out").items():
        assert value.tobytes() == wanted[output].tobytes(), output


@pytest.mark.parametrize("layout", test_meshes.LAYOUTS)
def test_ranks_outside_of_the_meshes_of_inputs_and_outputs(tmp_path, layout):
    mesh, others, plan, world = test_meshes.LAYOUTS[layout]
    artifact, tensors = test_meshes.compiled(tmp_path, mesh, others, plan)
    common = ("-n", world, artifact, "--weights", tmp_path / "weights.safetensors", "--inputs", tmp_path / "in.safetensors")
    run(tool("shard-run"), *common, "--outputs", tmp_path / "threads")
    run(tool("shard-run"), "--processes", *common, "--outputs", tmp_path / "processes", "--steps", 2)
    wanted, got = load_file(tmp_path / "threads"), load_file(tmp_path / "processes")
    assert wanted.keys() == got.keys()
    for name, value in wanted.items():
        assert got[name].tobytes() == value.tobytes(), name
    y = test_meshes.expected(tensors)[0]["y"].numpy()
    np.testing.assert_allclose(got["y"], y, rtol=1e-4, atol=1e-4 * np.abs(y).max())


@pytest.mark.parametrize("spec, says", [("input:0=tp:P(sum)", "pass each rank's part"), ("output:0=tp:P(sum)", "ask for each rank's part")])
def test_partial_tensors_are_refused_once(compile_model, tmp_path, spec, says):
    program = compile_model("mlp", "tp=2", *MLP_TP, *places(spec))
    done = run(tool("shard-run"), "--processes", program.path, "--weights", program.source.path, "--inputs", program.source.inputs,
               "--outputs", tmp_path / "out", check=False)
    assert done.returncode == 1 and says in done.stderr, done.stderr
    assert done.stderr.count("error:") == 1, done.stderr


def test_c_example_under_a_launcher(compile_model, tmp_path):
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if not compiler or not TORCHRUN.exists():
        pytest.skip("needs a C compiler and torchrun")
    program = compile_model("mlp", "tp=4", *MLP_TP)
    example = tmp_path / "example"
    run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", ROOT / "runtime/examples/processes.c", "-I", ROOT / "runtime/include",
        "-L", BUILD / "lib", f"-Wl,-rpath,{BUILD / 'lib'}", "-lshardrt", "-o", example)
    done = run(*torchrun(), example, program.path, program.source.path, "8", "64")
    assert done.stdout.startswith("512 elements of f32:")
    import torch
    expected = torch.export.load(program.source.path).module()(x=torch.ones(8, 64)).detach().numpy().ravel()[:8]
    got = np.array([float(word) for word in done.stdout.split(":")[1].split()])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_each_process_touches_its_own_slice_of_the_weights(compile_model, tmp_path):
    program = compile_model("gpt2", "tp=4", *tensor_parallel("gpt2"))
    reports = []
    for mode in ((), ("--processes",)):
        done = run(tool("shard-run"), *mode, program.path, "--weights", program.source.path, "--inputs", program.source.inputs,
                   "--steps", 2, "--format", "json")
        reports.append(json.loads(done.stdout)["peak_memory_of_a_rank"])
    for key in ("parameter_bytes", "arena_bytes"):
        assert reports[0][key] == reports[1][key]


def test_sixty_four_processes(compile_model, tmp_path):
    """They start, find each other and run a small model, of whose rows each has a part, which may be empty."""
    program = compile_model("mlp", "r=64", *places("param:*=r:S(0)"))
    begin = time.monotonic()
    done = run(tool("shard-run"), "--processes", "--threads", 1, program.path, "--weights", program.source.path, "--inputs",
               program.source.inputs, "--outputs", tmp_path / "out", "--steps", 3)
    print(f"64 processes: {time.monotonic() - begin:.2f} s from the start to the end; {done.stdout}")
    got, want = load_file(tmp_path / "out"), load_file(program.source.outputs)
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max())
