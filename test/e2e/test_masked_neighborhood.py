# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighborhood attention in plain PyTorch, as attention with a mask: against PyTorch, over sharded positions, forward and backward; and that only the
keys and values beside a border move."""
import json

import pytest
import torch

import masked_attention as m
from conftest import run, tool
from exported import F64, Exported
from plans import places

MODELS = {
    "line": lambda: (m.Transformer(1, [(lambda: m.cut((32,), 2), m.one_op), (lambda: m.sliding(32, 5), m.filled)]), (2, 3, 32)),
    "image": lambda: (m.Transformer(2, [(lambda: m.cut((12, 8), 1), m.one_op), (lambda: m.natten((12, 8), (3, 5)), m.summed)]), (2, 3, 12, 8)),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    made = {}

    def export(name):
        if name not in made:
            torch.manual_seed(1)
            module, shape = MODELS[name]()
            made[name] = Exported(tmp_path_factory.mktemp(name), module.double(), {"x": torch.randn(*shape, dtype=F64)})
        return made[name]
    return export


def explained(model, mesh, *plan):
    return json.loads(run(tool("shardc"), "explain", model.folder / "m.pt2", "--mesh", mesh, *plan, "--format", "json").stdout)


@pytest.mark.parametrize("name, mesh, plan", [("line", "sp=1", "input:x=sp:S(2)"), ("line", "sp=2", "input:x=sp:S(2)"), ("image", "sp=2", "input:x=sp:S(2)"),
                                              ("image", "sp=4", "input:x=sp:S(2)")])
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(plan))


@pytest.mark.parametrize("name, mesh, plan", [("line", "sp=4", "input:x=sp:S(2)"), ("image", "sp=4", "input:x=sp:S(2)")])
def test_keys_and_values_are_not_gathered(exported, name, mesh, plan):
    assert exported(name).moved(mesh, *places(plan)) <= {"all_reduce", "all_to_all"}
