# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partial inputs and outputs: each rank's own part, which no file holds as a whole."""
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool
from plans import MLP_TP, places
from test_bad_input import refused


@pytest.fixture
def partial(compile_model):
    return lambda *specs: compile_model("mlp", "tp=2", *MLP_TP, *places(*specs))


@pytest.mark.parametrize("spec, says", [
    ("input:0=tp:P(sum)", "it is partial ([P(sum)]): pass each rank's part, a local tensor (shard-run --local)"),
    ("output:0=tp:P(sum)", "it is partial ([P(sum)]): ask for each rank's part, a local tensor (shard-run --local)"),
])
def test_whole_files_are_refused(partial, tmp_path, spec, says):
    program = partial(spec)
    refused(tool("shard-run"), program.path, "--weights", program.source.path, "--inputs", program.source.inputs,
            "--outputs", tmp_path / "out.safetensors", says=says)


def test_parts_add_up(partial, tmp_path):
    program = partial("input:0=tp:P(sum)", "output:0=tp:P(sum)")
    inputs, wanted = load_file(program.source.inputs), load_file(program.source.outputs)
    share = {name: np.random.default_rng(0).standard_normal(x.shape, dtype=x.dtype) for name, x in inputs.items()}
    save_file(share, tmp_path / "in.0.safetensors")
    save_file({name: x - share[name] for name, x in inputs.items()}, tmp_path / "in.1.safetensors")
    run(tool("shard-run"), program.path, "--weights", program.source.path, "--local",
        "--inputs", tmp_path / "in.%r.safetensors", "--outputs", tmp_path / "out.%r.safetensors")
    parts = [load_file(tmp_path / f"out.{rank}.safetensors") for rank in range(2)]
    for name, value in wanted.items():
        np.testing.assert_allclose(parts[0][name] + parts[1][name], value, rtol=1e-4, atol=1e-5)
