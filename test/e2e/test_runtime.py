# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime with a compiled artifact: the examples, faults of ranks, memory, traces."""
import json
import os
import shutil
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from conftest import BUILD, ROOT, Model, Program, run, tool
from plans import MLP_TP

WORLD = 4
EXAMPLES = ROOT / "runtime/examples"
LIBRARY = BUILD / "lib/libshardrt.so"


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    """The MLP over tp=4: one all-reduce, behind `down`."""
    source = Model("mlp")
    path = tmp_path_factory.mktemp("mlp") / "mlp.so"
    run(tool("shardc"), "compile", source.path, "--mesh", f"tp={WORLD}", *MLP_TP, "-o", path)
    return Program(source, path, WORLD, ())


def test_c_example(mlp, tmp_path):
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if not compiler:
        pytest.skip("needs a C compiler")
    program = tmp_path / "run"
    run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", EXAMPLES / "run.c", "-I", ROOT / "runtime/include",
        "-L", BUILD / "lib", f"-Wl,-rpath,{BUILD / 'lib'}", "-lshardrt", "-lpthread", "-o", program)
    done = run(program, mlp.path, mlp.source.path, env={**os.environ, "WORLD": str(WORLD), "ROWS": "8", "COLUMNS": "64"})
    assert done.stdout.startswith("output 0: 512 elements of f32:")
    # The example's inputs are ones.
    import torch
    expected = torch.export.load(mlp.source.path).module()(x=torch.ones(8, 64)).detach().numpy().ravel()[:8]
    got = np.array([float(word) for word in done.stdout.split(":")[2].split()])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    done = run(program, mlp.path, env={**os.environ, "WORLD": "4", "ROWS": "8", "COLUMNS": "64"}, check=False)
    assert done.returncode == 1 and "6 parameters have not been loaded, the first is norm.weight" in done.stderr


def test_ctypes_example(mlp, tmp_path):
    np.save(tmp_path / "x.npy", load_file(mlp.source.inputs)["x"])
    script = f"""
import sys, numpy
sys.path.insert(0, {str(EXAMPLES)!r})
import run
numpy.savez({str(tmp_path / "out.npz")!r}, **run.main(*sys.argv[1:]))"""
    run(sys.executable, "-c", script, mlp.path, mlp.source.path, f"x={tmp_path / 'x.npy'}",
        env={**os.environ, "SHARDRT": str(LIBRARY)})
    got, want = np.load(tmp_path / "out.npz"), load_file(mlp.source.outputs)
    assert set(got) == set(want)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max())


def fault(mlp, kind):
    done = run(sys.executable, ROOT / "test/e2e/faulty_ranks.py", kind, EXAMPLES / "run.py", mlp.path, mlp.source.path,
               mlp.source.inputs, env={**os.environ, "SHARDRT": str(LIBRARY)})
    return json.loads(done.stdout), done.stderr


def test_a_stuck_rank_is_named_with_collective_and_place(mlp):
    results, log = fault(mlp, "stuck")
    assert results[3] is None
    for result in results[:3]:
        assert result["message"].startswith("all_reduce"), result
        assert "down (builders.py:" in result["message"]
        assert "missing rank 3, arrived ranks 0, 1 and 2" in result["message"], result
        assert "rank 3 is not running" in result["message"]
        assert 1 < result["seconds"] < 30
    assert "last collectives of rank" in log


def test_a_rank_that_dies_ends_the_others_at_once(mlp):
    results, log = fault(mlp, "dies")
    for result in results[:3]:
        assert "rank 3 has left and cannot take part" in result["message"], result
        assert "down (builders.py:" in result["message"]
        assert result["seconds"] < 30


def test_bad_input_of_one_rank_is_what_the_others_report(mlp):
    results, log = fault(mlp, "bad_input")
    for result in results:
        assert "dim 0 of input x is 3, expected 8" in result["message"], result
        assert result["seconds"] < 30


def test_an_abort_from_outside(mlp):
    results, log = fault(mlp, "abort")
    for result in results[:3]:
        assert "the operator's request" in result["message"], result


def test_every_rank_holds_its_slices_only(mlp, tmp_path):
    done = run(tool("shard-run"), mlp.path, "--weights", mlp.source.path, "--inputs", mlp.source.inputs, "--outputs",
               tmp_path / "out", "--steps", 5, "--format", "json")
    report = json.loads(done.stdout)
    # A quarter of up (256 x 64, 256) and of down's rows; norm and down's bias on every rank.
    slices = 4 * (64 + 64 + 64 * 64 + 64 + 64 * 64 + 64)
    memory = report["peak_memory_of_a_rank"]
    assert memory["parameter_bytes"] == slices
    # Only down is split along its inner dim; all else is used where the file has it.
    assert memory["copied_bytes"] == 4 * 64 * 64
    assert memory["arena_bytes"] > 0
    assert report["ranks"] == 4 and report["steps"] == 5
    assert 0 < report["step_ms"]["min"] <= report["step_ms"]["median"] <= report["step_ms"]["max"]


def test_trace_profile_and_progress(mlp, tmp_path):
    trace = tmp_path / "trace.json"
    done = run(tool("shard-run"), mlp.path, "--weights", mlp.source.path, "--inputs", mlp.source.inputs, "--outputs",
               tmp_path / "out", "--steps", 3, "--trace", trace, "--profile", "--progress")
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in spans} == set(range(WORLD))
    for rank in range(WORLD):
        def lane(kind):
            return [e["name"] for e in spans if e["pid"] == rank and e["cat"] == kind]
        # Two steps: the first is left out.
        assert [name.split(".")[0] for name in lane("communication")] == ["all_reduce"] * 2
        assert [name.split(".")[0] for name in lane("waiting")] == ["all_reduce"] * 2
        assert sum(name == "linear" for name in lane("compute")) == 4
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    assert any("down" in json.dumps(e) for e in spans)
    assert "all_reduce" in done.stdout and "builders.py" in done.stdout and "ms computing" in done.stdout
    assert "loading mlp on 4 ranks" in done.stderr and "step 3 of 3" in done.stderr
