# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixtures of experts whose tokens and experts are shared out over one axis of more ranks than a token has experts: each row goes to the rank
that owns its expert, through all products there, and back. Outputs and gradients are PyTorch's, with rows that can be cut evenly and not, ranks
without any, several blocks of rows, biases, and experts that nobody chose."""
import json

import pytest

from conftest import run, tool
from plans import places
from test_experts import ranks_of, references

# By name: experts, and how many tokens the batch has in rows and columns.
SIZES = {"even": (6, (3, 4)), "batches": (6, (6, 3)), "uneven": (6, (7, 1)), "few": (6, (2, 3))}
PLAN = ["module:*.experts=grouped_gemm"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    with references(tmp_path_factory.mktemp("dispatched"), "dispatched_models", SIZES) as make:
        yield make


def collectives(model, mesh, *plan):
    how = ("--mesh", mesh, *places(*plan), "--format", "json")
    return json.loads(run(tool("shardc"), "explain", model.source, *how).stdout)["collectives"]


@pytest.mark.parametrize("kind, form, size, mesh", [
    ("plain", "batched_mm", "even", "ep=3"), ("biases", "grouped_mm", "even", "ep=3"), ("groups", "grouped_mm", "even", "ep=3"),
    ("plain", "grouped_mm", "uneven", "ep=3"), ("biases", "batched_mm", "uneven", "ep=3"), ("groups", "batched_mm", "few", "ep=3"),
    ("plain", "batched_mm", "uneven", "ep=6"), ("groups", "batched_mm", "batches", "dp=2,ep=3"), ("biases", "batched_mm", "batches", "ep=3,dp=2"),
    ("plain", "grouped_mm", "batches", "ep=3,tp=2")])
def test_gradients(reference, tmp_path, kind, form, size, mesh):
    model, program = reference(kind, form, size), tmp_path / "m.so"
    layout = "dp:S(0),ep:S(0)" if "dp" in mesh else "ep:S(0)"
    plan = [f"input:x={layout}", *PLAN, f"output:1={layout}"]
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "-o", program)
    if mesh != "ep=3,dp=2":  # where blocks of rows lie inside of the parts, they are gathered
        assert "all_to_all" in [c["kind"] for c in collectives(model, mesh, *plan)]
    model.check(model.outputs(program, "gradients", ranks_of(mesh)))
