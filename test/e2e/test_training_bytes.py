# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training of the models that other systems are compared on: gradients against PyTorch's, and bytes on each rank against the
least possible, for each of the usual ways to place them."""
import functools
import math
import sys

import pytest

from conftest import ROOT, run, tool
from model_gradients import Reference

sys.path.insert(0, str(ROOT / "benchmarks"))
import models  # noqa: E402
import training_bytes as table  # noqa: E402


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")

    def make(kind):
        module, _, inputs = models.training(kind)
        return Reference(folder, kind, f"{ROOT}/benchmarks/models.py:training_{kind}", module, inputs)

    return functools.cache(make)


@pytest.mark.parametrize("case", table.CASES)
def test_gradients(reference, tmp_path, case):
    kind, mesh, _, _, _ = table.CASES[case]
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, *table.options(case), "-o", program)
    model.check(model.outputs(program, "gradients", math.prod(table.axes_of(mesh).values())))


@pytest.mark.parametrize("case", table.CASES)
def test_bytes(reference, case):
    collectives = table.ours(tool("shardc"), reference(table.CASES[case][0]).source, case)
    # Each collective's bytes are rounded.
    assert table.moved(collectives) <= sum(table.least(case).values()) + len(collectives)
    assert table.moved(collectives) >= 0.9 * sum(table.least(case).values())


@pytest.mark.parametrize("case, zero, micro_batches", [
    ("gpt-tp4", 0, 1), ("gpt-dp4", 0, 1), ("gpt-dp4", 1, 1), ("gpt-dp4", 3, 1), ("gpt-dp4", 0, 2), ("gpt-dp4", 2, 2), ("gpt-dp4", 3, 2),
    ("gpt-dp2-tp2", 0, 2), ("gpt-dp2-tp2", 2, 1), ("llama-dp2-tp2-sequence", 1, 2), ("llama-dp2-tp2-sequence", 3, 1)])
def test_bytes_of_a_step(reference, case, zero, micro_batches):
    """No level of ZeRO moves more than plain data parallelism, and micro-batches before the last reduce nothing that is not kept sharded."""
    options = table.step_options(case, "loss=0", "optimizer=adamw", f"zero={zero}", f"micro_batches={micro_batches}")
    collectives = table.explained(tool("shardc"), reference(table.CASES[case][0]).source, case, options)
    for entry in ("train_step", "accumulate")[:min(micro_batches, 2)]:
        mine = [c for c in collectives if c["entry"] == entry]
        least = table.least_of_step(case, zero, entry)
        assert table.moved(mine) <= sum(least.values()) + len(mine), (entry, least)
        assert table.moved(mine) >= 0.9 * sum(least.values()) - len(mine), (entry, least)


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_parameters(kind):
    """The least possible is derived from the models that are measured."""
    parameters = models.training(kind)[0].parameters()
    assert sum(table.parameter_bytes(kind)) == sum(p.numel() * p.element_size() for p in parameters)


def test_norms_are_differentiated_behind_the_reduction(reference):
    """Under tensor parallelism no gradient is reduced on its own: that of each activation is, once."""
    collectives = table.ours(tool("shardc"), reference("llama").source, "llama-tp4", ["--keep-collectives"])
    assert {c["kind"] for c in collectives} == {"all_reduce"}
    activation = table.all_reduce(table.BATCH * table.SEQUENCE * table.WIDTH * table.ELEMENT, 4)
    sizes = [c["bytes_per_rank"] for c in collectives]
    assert sizes.count(activation) == 2 * (2 * table.LAYERS + 1)
    # The loss: the largest logit and the sum of exponentials of each token, and the sum over tokens.
    each = table.all_reduce(table.BATCH * table.SEQUENCE * table.ELEMENT, 4)
    assert sorted(s for s in sizes if s != activation) == [6, each, each]
