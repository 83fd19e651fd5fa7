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


@pytest.mark.parametrize("name", ["mlp", "gpt2", "llama", "minilm"])
@pytest.mark.parametrize("mesh", ["tp=4", "dp=4", "dp=2,tp=2"])
def test_dynamic_sizes_communicate_as_static_ones(totals, name, mesh):
    options = (DATA_PARALLEL if "dp" in mesh else []) + (tensor_parallel(name) if "tp" in mesh else [])
    assert totals(f"{name}_dynamic", mesh, *options) == totals(name, mesh, *options)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_dynamic_sizes_communicate_as_static_ones_with_sequence_parallelism(totals, name):
    options = [*tensor_parallel(name), *sequence_parallel(name)]
    assert totals(f"{name}_dynamic", "tp=4", *options) == totals(name, "tp=4", *options)


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


def test_prediction_of_one_all_reduce(explain, tmp_path):
    # By hand, for a machine of round figures: 1 GB/s of memory, no limit on flops, 10 us and 1 GB/s for a collective.
    machine = tmp_path / "machine"
    machine.write_text("name = by-hand\nranks_per_node = 4\nmemory_gb_per_s = 1\nlaunch_us = 0\n"
                       "[all_gather intra algbw]\n4 10 1\n")
    report = explain("mlp", "tp=4", *tensor_parallel("mlp"), "--topology", machine)
    x, hidden = 8 * 64 * 4, 8 * 64 * 4          # bytes of the input and of a rank's quarter of 256 hidden values
    norm = 2 * x + 2 * 64 * 4
    up = x + hidden + (64 * 64 + 64) * 4
    down = 2 * x + (64 * 64 + 64) * 4           # the bias is counted on one rank, but all read it
    rest = [2 * hidden, 3 * x]                  # gelu; the residual
    reduce = 10 + x / 1000
    (entry,) = report["collectives"]
    assert entry["predicted_us"] == pytest.approx(reduce)
    assert entry["exposed_us"] == pytest.approx(reduce)
    predicted = report["predicted"]
    assert predicted["topology"] == "by-hand"
    assert predicted["exposed_us"] == pytest.approx(reduce)
    assert predicted["step_us"] == pytest.approx(reduce + (norm + up + down + sum(rest)) / 1000, rel=0.05)
    assert [rank["rank"] for rank in predicted["ranks"]] == [0, 1, 2, 3]
    weights = (2 * 64 + 64 * 64 + 64 + 64 * 64 + 64) * 4
    assert weights + 3 * x <= predicted["peak_bytes"] <= weights + 5 * x


def test_reasons_name_maker_and_user(explain):
    (entry,) = explain("mlp", "tp=4", *tensor_parallel("mlp"))["collectives"]
    assert entry["why"] == "partial sums of aten.linear in down; aten.add needs the total"


def test_dynamic_sizes_are_assumed_and_can_be_given(explain):
    typical = explain("mlp_dynamic", "tp=4", *tensor_parallel("mlp"))
    assert list(typical["sizes"].values()) == [64]      # the end of its range that is nearest to 128
    (symbol,) = typical["sizes"]
    given = explain("mlp_dynamic", "tp=4", *tensor_parallel("mlp"), "--size", f"{symbol}=8")
    assert given["sizes"] == {symbol: 8}
    assert given["collectives"][0]["bytes_per_rank"] == 8 * 64 * 4 * 2 * 3 // 4
    assert typical["collectives"][0]["bytes_per_rank"] == 8 * given["collectives"][0]["bytes_per_rank"]
    static = explain("mlp", "tp=4", *tensor_parallel("mlp"))
    assert given["predicted"] == static["predicted"]


@pytest.mark.parametrize("sizes, message", [(["bath=3"], "no symbol is named 'bath'"), (["5"], "expected NAME=NUMBER")])
def test_sizes_that_make_no_sense_are_errors(model, sizes, message):
    options = [option for size in sizes for option in ("--size", size)]
    done = run(tool("shardc"), "explain", model("mlp_dynamic").path, "--mesh", "tp=4", *options, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["gpt2", "llama", "minilm", "llama_odd"])
def test_remarks_say_what_became_of_what_was_asked_for(explain, name):
    """None says that something becomes what it is."""
    import re
    for remark in explain(name, "tp=4", *tensor_parallel(name))["remarks"]:
        changed = re.search(r"(S\(.*?\)) over \w+.* becomes (S\(.*?\)): ", remark["message"])
        assert not changed or changed[1] != changed[2], remark["message"]


def test_fused_qkv_ends_in_blocks_of_heads_with_a_remark(explain):
    remarks = [r["message"] for r in explain("gpt2", "tp=4", *tensor_parallel("gpt2"))["remarks"]]
    assert any("transformer.h.0.attn.c_attn.weight" in r and "blocks = 3" in r for r in remarks), remarks
