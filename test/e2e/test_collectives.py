# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is communicated: counts and bytes are part of the contract, not an accident."""
import pytest

from plans import DATA_PARALLEL, LM_HEAD_TP, VOCABULARY_TP, places, tensor_parallel

LAYERS = 2
SEQUENCE = {
    "gpt2": places("module:*.ln_1=sequence", "module:*.ln_2=sequence", "module:*.ln_f=sequence"),
    "llama": places("module:*.input_layernorm=sequence", "module:*.post_attention_layernorm=sequence",
                    "module:*.norm=sequence"),
}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_tensor_parallel_has_two_all_reduces_a_layer(compile_model, name):
    assert compile_model(name, "tp=4", *tensor_parallel(name)).totals() == {"all_reduce": 2 * LAYERS}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_vocabulary_sharded_embedding_adds_one_all_reduce(compile_model, name):
    # The logits may stay sharded: nobody asked for them whole.
    program = compile_model(name, "tp=4", *tensor_parallel(name), *VOCABULARY_TP, *LM_HEAD_TP)
    assert program.totals() == {"all_reduce": 2 * LAYERS + 1}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_sequence_parallel(compile_model, tmp_path, name):
    program = compile_model(name, "tp=4", *tensor_parallel(name), *SEQUENCE[name])
    program.run(tmp_path)
    totals = program.totals()
    # Two of each a layer; the logits stay sharded over the sequence, as nobody asked for them whole.
    assert totals == {"reduce_scatter": 2 * LAYERS, "all_gather": 2 * LAYERS}


@pytest.mark.parametrize("name", ["mlp", "gpt2", "llama", "minilm"])
def test_data_parallel_inference_communicates_nothing(compile_model, name):
    assert compile_model(name, "dp=4", *DATA_PARALLEL).totals() == {}


def test_bytes_are_ring_volumes(compile_model):
    # mlp: one all-reduce of 8 x 64 f32 over 4 ranks: 2 (n-1)/n of the tensor.
    program = compile_model("mlp", "tp=4", *tensor_parallel("mlp"))
    totals = program.explain()["totals"]
    assert totals["all_reduce"]["count"] == 1
    assert totals["all_reduce"]["bytes_per_rank"] == 8 * 64 * 4 * 2 * 3 // 4
