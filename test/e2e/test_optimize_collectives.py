# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with fully sharded weights, whose gathers are bucketed and overlapped: PyTorch's answers with the
optimiser and without, and what `explain` says of it."""
import pytest

from plans import DATA_PARALLEL, REPLICATED_OUTPUT, places, tensor_parallel

FULLY_SHARDED = places("param:*=dp:S(0)") + DATA_PARALLEL
KEEP = ["--keep-collectives"]


@pytest.mark.parametrize("collectives", [[], KEEP], ids=["optimised", "kept"])
@pytest.mark.parametrize("name", ["mlp", "mlp_odd", "gpt2", "gpt2_odd", "llama_odd"])
def test_fully_sharded(compile_model, tmp_path, name, collectives):
    compile_model(name, "dp=4", *FULLY_SHARDED, *REPLICATED_OUTPUT, *collectives).run(tmp_path)


@pytest.mark.parametrize("collectives", [[], KEEP], ids=["optimised", "kept"])
def test_sharded_over_both_axes(compile_model, tmp_path, collectives):
    plan = tensor_parallel("gpt2") + DATA_PARALLEL + places("param:*wte.weight=dp:S(0)", "param:*ln_*=dp:S(0)")
    compile_model("gpt2", "dp=2,tp=2", *plan, *REPLICATED_OUTPUT, *collectives).run(tmp_path)


def test_buckets_are_explained(explain):
    as_placed = explain("gpt2", "dp=4", *FULLY_SHARDED, *KEEP)
    kept = as_placed["totals"]["all_gather"]
    report = explain("gpt2", "dp=4", *FULLY_SHARDED)
    total = report["totals"]["all_gather"]
    assert total["count"] < kept["count"]
    assert total["tensors"] <= kept["tensors"] and total["bytes_per_rank"] <= kept["bytes_per_rank"]
    buckets = [c["bucket"] for c in report["collectives"] if "bucket" in c]
    assert buckets
    for entry in report["collectives"]:
        assert ("bucket" in entry) != ("alone" in entry)
    for bucket in buckets:
        assert len(bucket["members"]) >= 2 and bucket["bytes"] > 0
        assert bucket["closed"] in ("complete", "cap", "dependence", "cycle", "memory", "cost")
    alone = [c for c in report["collectives"] if "alone" in c]
    assert len([r for r in report["remarks"] if "is in no bucket: " in r["message"]]) == len(alone)
    predicted = report["predicted"]
    assert predicted["step_us"] <= predicted["step_before_us"]
    # Each rank sends three quarters of what a gather delivers. Two of them may be held beside the program.
    largest = max(c["bytes_per_rank"] * 4 / 3 for c in as_placed["collectives"])
    assert predicted["peak_bytes"] <= predicted["peak_before_bytes"] * 1.02 + 2 * largest


def test_the_order_is_the_same_every_time(explain):
    assert explain("gpt2", "dp=4", *FULLY_SHARDED) == explain("gpt2", "dp=4", *FULLY_SHARDED)

