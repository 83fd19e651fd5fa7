# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models on several meshes: every output within 1e-4 of the output's scale of PyTorch's."""
import pytest

from plans import DATA_PARALLEL, LM_HEAD_TP, REPLICATED_OUTPUT, VOCABULARY_TP, sequence_parallel, tensor_parallel

MESHES = {
    "one": ("tp=1", lambda name: []),
    "tp4": ("tp=4", tensor_parallel),
    "dp4": ("dp=4", lambda name: DATA_PARALLEL),
    "dp2xtp2": ("dp=2,tp=2", lambda name: DATA_PARALLEL + tensor_parallel(name)),
}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ["mlp", "mlp_odd", "gpt2", "gpt2_odd", "llama", "llama_odd", "minilm"])
def test_forward(compile_model, tmp_path, name, mesh):
    axes, plan = MESHES[mesh]
    compile_model(name, axes, *plan(name), *REPLICATED_OUTPUT).run(tmp_path)


@pytest.mark.parametrize("name", ["gpt2", "gpt2_odd", "llama", "llama_odd"])
def test_vocabulary_sharded_embedding_and_head(compile_model, tmp_path, name):
    compile_model(name, "tp=4", *tensor_parallel(name), *VOCABULARY_TP, *LM_HEAD_TP).run(tmp_path)


@pytest.mark.parametrize("name", ["gpt2", "gpt2_odd", "llama", "llama_odd"])
def test_sequence_parallel(compile_model, tmp_path, name):
    compile_model(name, "tp=4", *tensor_parallel(name), *sequence_parallel(name)).run(tmp_path)


@pytest.mark.parametrize("mesh", ["tp4", "dp2xtp2"])
def test_gpt2_124m(compile_model, tmp_path, mesh):
    axes, plan = MESHES[mesh]
    compile_model("gpt2_124m", axes, *plan("gpt2")).run(tmp_path)
