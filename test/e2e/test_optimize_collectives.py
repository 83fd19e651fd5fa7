# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with fully sharded weights, whose gathers are bucketed and overlapped: PyTorch's answers with the
optimiser and without, and what `explain` says of it."""
import re

import pytest

from conftest import run, tool
from plans import DATA_PARALLEL, REPLICATED_OUTPUT, places, sequence_parallel, tensor_parallel

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
        assert bucket["bytes"] == sum(member["bytes"] for member in bucket["members"])
        for member in bucket["members"]:
            assert member["module"] and member["location"].startswith(member["module"])
            assert member["tensor"].startswith("transformer.") and member["tensor"].endswith(("weight", "bias"))
    names = [member["tensor"] for bucket in buckets for member in bucket["members"]]
    assert len(set(names)) == len(names)
    alone = [c for c in report["collectives"] if "alone" in c]
    assert len([r for r in report["remarks"] if "is in no bucket: " in r["message"]]) == len(alone)
    predicted = report["predicted"]
    assert predicted["step_us"] <= predicted["step_before_us"]
    # Each rank sends three quarters of what a gather delivers. Two of them may be held beside the program.
    largest = max(c["bytes_per_rank"] * 4 / 3 for c in as_placed["collectives"])
    assert predicted["peak_bytes"] <= predicted["peak_before_bytes"] * 1.02 + 2 * largest


def test_caps_and_what_does_not_fit_are_explained(explain):
    report = explain("gpt2", "dp=4", *FULLY_SHARDED, "--bucket-caps", "0.05", "--topology", "h100-8")
    cap = 0.05 * 2**20
    for entry in report["collectives"]:
        if "bucket" in entry:
            assert entry["bucket"]["cap_bytes"] == pytest.approx(cap, abs=1) and entry["bucket"]["bytes"] <= cap
    # The table of tokens has 256 x 64 elements.
    (table,) = [e for e in report["collectives"] if e["why"].startswith("shards of dim 0 of 'transformer.wte.weight'")]
    assert table["alone"]["reason"] == "it is larger than the bucket cap"
    assert any("is in no bucket: it is larger than the bucket cap" in r["message"] and r["module"] == "transformer.wte"
               for r in report["remarks"])


def explained(model, *options):
    return run(tool("shardc"), "explain", model("gpt2").path, *options).stdout


def test_text_of_buckets(model, explain):
    options = [*FULLY_SHARDED, "--topology", "h100-8"]
    text = explained(model, "--mesh", "dp=4", *options)
    buckets = [c["bucket"] for c in explain("gpt2", "dp=4", *options)["collectives"] if "bucket" in c]
    head = r"a bucket of (\d+), \S+ \S+ \(cap auto\); exposed (\S+) -> (\S+) us\n +closed \((\w+)\): \w+.*\n"
    assert [(int(n), float(before), float(after), closed) for n, before, after, closed in re.findall(head, text)] == \
        [(len(b["members"]), pytest.approx(b["exposed_before_us"], abs=0.06), pytest.approx(b["exposed_after_us"], abs=0.06),
          b["closed"]) for b in buckets]
    first = buckets[0]["members"][0]
    assert re.search(rf"1 of +\S+ \S+  {re.escape(first['tensor'])}  \[{re.escape(first['location'])}\]", text), text
    assert re.search(r"predicted for forward on h100-8: \S+ us a step, \S+ us of it waiting for collectives", text)
    assert re.search(r"  as placed: \S+ us, \S+ us of it waiting", text)


def test_text_of_collectives_left_alone(model, explain):
    options = [*tensor_parallel("gpt2"), *sequence_parallel("gpt2")]
    text = explained(model, "--mesh", "tp=4", *options)
    # Two layers that differ in nothing else are one line, and so are their remarks.
    rows = [line.split()[:4] for line in text.splitlines() if line.split()[1:2] == ["reduce_scatter"]]
    assert rows == [["2", "reduce_scatter", "sum", "tp=4"]] * 2
    assert "transformer.h.{0-1}.mlp.c_proj" in text
    report = explain("gpt2", "tp=4", *options)
    reasons = {c["alone"]["reason"] for c in report["collectives"]}
    for reason in reasons:
        assert re.search(rf"2 times: all_gather over tp is in no bucket: {reason}  \[transformer.h.{{0-1}}.ln_\d", text), text
    assert len([r for r in report["remarks"] if "is in no bucket: " in r["message"]]) == len(report["collectives"])


def test_the_order_is_the_same_every_time(explain):
    assert explain("gpt2", "dp=4", *FULLY_SHARDED) == explain("gpt2", "dp=4", *FULLY_SHARDED)

