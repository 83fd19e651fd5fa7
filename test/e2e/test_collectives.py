# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is communicated: counts and bytes are part of the contract, not an accident."""
import pytest

from conftest import run, tool
from plans import DATA_PARALLEL, LM_HEAD_TP, VOCABULARY_TP, places, sequence_parallel, tensor_parallel

LAYERS = 2


@pytest.mark.parametrize("name", ["gpt2", "gpt2_odd", "llama", "llama_odd"])
def test_tensor_parallel_has_two_all_reduces_a_layer(totals, name):
    assert totals(name, "tp=4", *tensor_parallel(name)) == {"all_reduce": 2 * LAYERS}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_vocabulary_sharded_embedding_adds_one_all_reduce(totals, name):
    # The logits may stay sharded: nobody asked for them whole.
    assert totals(name, "tp=4", *tensor_parallel(name), *VOCABULARY_TP, *LM_HEAD_TP) == {"all_reduce": 2 * LAYERS + 1}


@pytest.mark.parametrize("name", ["gpt2", "gpt2_odd"])
def test_a_tied_table_is_sharded_as_either_of_its_modules_asks(explain, name):
    """The vocabulary is what the embedding looks up and what the head gives: one word for either is enough."""
    for vocabulary in (VOCABULARY_TP, places("module:transformer.wte=embedding_rowwise"), LM_HEAD_TP):
        report = explain(name, "tp=4", *tensor_parallel(name), *vocabulary)
        assert report["totals"]["all_reduce"]["count"] == 2 * LAYERS + 1
        assert sum(entry["count"] for entry in report["totals"].values()) == 2 * LAYERS + 1
    # Alone it says nothing of the layers: they stay whole, and the embedding is the one sum.
    report = explain(name, "tp=4", *places("module:transformer.wte=embedding_rowwise"))
    assert {k: e["count"] for k, e in report["totals"].items() if e["count"]} == {"all_reduce": 1}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_sequence_parallel(totals, name):
    # The logits stay sharded over the sequence, as nobody asked for them whole.
    counts = totals(name, "tp=4", *tensor_parallel(name), *sequence_parallel(name))
    assert counts == {"reduce_scatter": 2 * LAYERS, "all_gather": 2 * LAYERS}


def test_columns_of_the_text_are_apart(model):
    done = run(tool("shardc"), "explain", model("gpt2").path, "--mesh", "tp=4", *tensor_parallel("gpt2"), *sequence_parallel("gpt2"))
    rows = [line.split()[1:4] for line in done.stdout.splitlines() if line.split()[1:2] == ["reduce_scatter"]]
    assert rows == [["reduce_scatter", "sum", "tp"]] * (2 * LAYERS)


@pytest.mark.parametrize("name", ["mlp", "mlp_odd", "gpt2", "llama", "minilm"])
def test_data_parallel_inference_communicates_nothing(totals, name):
    assert totals(name, "dp=4", *DATA_PARALLEL) == {}


def test_weights_of_attention_and_mlp_inputs_suffice(totals):
    # Nothing is said of the row-parallel weights: propagation makes them so.
    assert totals("mlp", "tp=4", *places("module:up=colwise")) == {"all_reduce": 1}
    assert totals("gpt2", "tp=4", *places("module:*.c_attn=colwise", "module:*.c_fc=colwise")) == {"all_reduce": 2 * LAYERS}


def test_bytes_are_ring_volumes(explain):
    # mlp: one all-reduce of 8 x 64 f32 over 4 ranks: 2 (n-1)/n of the tensor.
    report = explain("mlp", "tp=4", *tensor_parallel("mlp"))
    assert report["totals"]["all_reduce"] == {"count": 1, "tensors": 1, "bytes_per_rank": 8 * 64 * 4 * 2 * 3 // 4}
    (entry,) = report["collectives"]
    assert (entry["group"], entry["group_size"], entry["reduction"], entry["module"]) == ("tp", 4, "sum", "down")


def test_fused_qkv_ends_in_blocks_of_heads_with_a_remark(explain):
    remarks = [r["message"] for r in explain("gpt2", "tp=4", *tensor_parallel("gpt2"))["remarks"]]
    assert any("transformer.h.0.attn.c_attn.weight" in r and "blocks = 3" in r for r in remarks), remarks
