# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything a user may get wrong is an error that names the offender, with exit status 1: never a crash, never a hang."""
import platform
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import Model, Program, run, tool
from plans import MLP_TP, places

WORLD = 2


def refused(*command, says, **kwargs):
    """Runs a command that must fail in the ordinary way and say all of `says` on standard error."""
    done = run(*command, check=False, **kwargs)
    assert done.returncode == 1, f"{done.returncode}: {done.stderr[-3000:]}"
    for part in [says] if isinstance(says, str) else says:
        assert part in done.stderr, f"no '{part}' in: {done.stderr[-3000:]}"
    assert "error:" in done.stderr and "Stack dump" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    """The MLP over tp=2, its weights as a safetensors file beside it."""
    source = Model("mlp")
    path = tmp_path_factory.mktemp("mlp") / "mlp.so"
    run(tool("shardc"), "compile", source.path, "--mesh", f"tp={WORLD}", *MLP_TP, "-o", path)
    program = Program(source, path, WORLD, ())
    # The archive names its weights, and PyTorch reads them.
    import torch
    state = torch.export.load(source.path).state_dict
    program.weights = {name: value.detach().numpy().copy() for name, value in state.items()}
    return program


@pytest.fixture
def run_with(mlp, tmp_path):
    """The command that runs the MLP, with some weights or inputs in place of its own."""
    def command(weights=None, inputs=None, options=(), artifact=None):
        files = []
        for name, tensors, own in (("w", weights, mlp.source.path), ("x", inputs, mlp.source.inputs)):
            files.append(own if tensors is None else tmp_path / f"{name}.safetensors")
            if tensors is not None:
                save_file(tensors, files[-1])
        return (tool("shard-run"), *options, artifact or mlp.path, "--weights", files[0], "--inputs", files[1],
                "--outputs", tmp_path / "out.safetensors")

    return command


def test_weights_as_safetensors_and_as_archive(mlp, run_with, tmp_path):
    outputs = []
    for weights in (None, mlp.weights):
        run(*run_with(weights=weights))
        outputs.append(load_file(tmp_path / "out.safetensors"))
    for name, value in load_file(mlp.source.outputs).items():
        assert np.array_equal(outputs[0][name], outputs[1][name])
        np.testing.assert_allclose(outputs[0][name], value, atol=1e-4 * np.abs(value).max())


def test_all_mistakes_of_a_weights_file_at_once(mlp, run_with):
    weights = dict(mlp.weights)
    weights["up.wieght"] = weights.pop("up.weight")
    weights["down.weight"] = weights["down.weight"].T.copy()
    weights["norm.bias"] = weights["norm.bias"].astype(np.float64)
    weights["head.scale"] = np.ones(3, np.float32)
    refused(*run_with(weights=weights), says=[
        "up.weight: missing, expected f32[256, 64]; the file has up.wieght",
        "up.wieght: the program has no such parameter (f32[256, 64]); it lacks up.weight",
        "down.weight: it is f32[256, 64], expected f32[64, 256]",
        "norm.bias: it is f64[64], expected f32[64]",
        "head.scale: the program has no such parameter"])


def test_inputs_that_do_not_fit(mlp, run_with):
    x = load_file(mlp.source.inputs)["x"]
    for inputs, says in ((x[:7], "dim 0 of input x is 7, expected 8"),
                         (x[:, :63].copy(), "dim 1 of input x is 63, expected 64"),
                         (x.astype(np.float64), "it is f64[8, 64], expected element type f32"),
                         (x.reshape(8, 8, 8), "it is f32[8, 8, 8], expected 2 dims")):
        refused(*run_with(inputs={"x": inputs}), says=says)
    refused(*run_with(inputs={"y": x}), says="forward has no input y; its inputs are x")
    refused(*run_with(inputs={}), says="no file for these inputs of forward: x")


def test_options_that_do_not_fit(run_with):
    refused(*run_with(options=("-n", "4")), says=["compiled for a world of 2 ranks", "not 4"])
    refused(*run_with(options=("--entry", "backward")), says="no entry backward; its entries are forward")
    refused(*run_with(options=("--steps", "0")), says="--steps needs a whole number of at least 1")


@pytest.mark.parametrize("which", ["weights", "inputs", "artifact"])
def test_files_that_cannot_be_read(mlp, run_with, tmp_path, which):
    good = {"weights": mlp.source.path, "inputs": mlp.source.inputs, "artifact": mlp.path}[which].read_bytes()
    bad = tmp_path / "bad"
    command = [bad if word == {"weights": mlp.source.path, "inputs": mlp.source.inputs, "artifact": mlp.path}[which]
               else word for word in run_with()]
    refused(*command, says=[str(bad), "No such file"])
    bad.mkdir()
    refused(*command, says=[str(bad), "it is no folder with a checkpoint" if which == "weights" else "not a regular file"])
    bad.rmdir()
    for contents in (b"", b"\0" * 4096, b"PK\x03\x04junk", b"\x7fELFjunk", b"\xff" * 64, *(
            good[:len(good) * cut // 8] for cut in range(1, 8)), good[:-1]):
        bad.write_bytes(contents)
        refused(*command, says=str(bad))


def test_a_changed_artifact(mlp, run_with, tmp_path):
    good = mlp.path.read_bytes()
    bad = tmp_path / "bad.so"
    # Behind the ELF header and the table of segments (56 bytes each), whose offsets are looked at first.
    for at in range(64 + 56 * good[56], len(good) - 32, len(good) // 24):
        bad.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
        refused(*run_with(artifact=bad), says="checksum does not fit")


def test_artifact_for_another_processor(mlp, run_with, tmp_path):
    # A manifest that asks for what no processor has, without the seal that would tell.
    other = tmp_path / "other.so"
    contents = mlp.path.read_bytes()[:-24]
    assert b'"popcnt"' in contents
    other.write_bytes(contents.replace(b'"popcnt"', b'"pupcnt"'))
    refused(*run_with(artifact=other), says=["it was compiled for", "this CPU lacks pupcnt"])


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "bdver4"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86 processors")
def test_artifact_for_an_older_processor(mlp, run_with, tmp_path, cpu):
    """Code uses only what the manifest asks for: bdver4 has FMA4 and XOP, which no later processor has."""
    other = tmp_path / "other.so"
    run(tool("shardc"), "compile", mlp.source.path, "--mesh", "tp=2", "--target", f"cpu:{cpu}", "-o", other)
    done = run(*run_with(artifact=other), check=False)
    assert done.returncode == 0 or "this CPU lacks" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_artifact_of_another_runtime(run_with, tmp_path):
    other, source = tmp_path / "other.so", tmp_path / "other.c"
    source.write_text("""
        struct { unsigned abi, bytes; const char *json; unsigned long n; const void *program; } m = {77, 32, "{}", 2, "x"};
        const void *shardrt_query(void) { return &m; }""")
    run("cc", "-shared", "-fPIC", source, "-o", other)
    refused(*run_with(artifact=other), says=["program ABI 77", "compile the model again"])
    source.write_text("int nothing;")
    run("cc", "-shared", "-fPIC", source, "-o", other)
    refused(*run_with(artifact=other), says="does not export shardrt_query")
