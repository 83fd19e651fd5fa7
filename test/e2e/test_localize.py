# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models, placed and localised, run by the reference interpreter for all ranks: what the compiler
decides, without what it generates. Outputs within 1e-4 of the output's scale of PyTorch's."""
import functools
import sys

import pytest

from conftest import ROOT, tool
from plans import DATA_PARALLEL, LM_HEAD_TP, VOCABULARY_TP, tensor_parallel

sys.path.insert(0, str(ROOT / "test" / "reference"))


@pytest.fixture(scope="session")
def check(model):
    import check_model
    load = functools.cache(lambda name: check_model.Model(model(name).path))

    def run(name, mesh, options):
        text = " ".join([f"mesh={mesh}"] + [f"place={spec}" for spec in options if spec != "--place"])
        imported, local, kinds = check_model.check(str(tool("shard-opt")), load(name), text)
        assert imported < 1e-5
        assert local < 1e-4
        return kinds
    return run


NAMES = ["mlp_odd", "minilm", "gpt2", "gpt2_odd", "llama", "llama_odd", "gpt2_dynamic", "llama_dynamic"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mesh", ["tp=2", "tp=3", "tp=4"])
def test_tensor_parallel(check, name, mesh):
    check(name, mesh, tensor_parallel(name))


@pytest.mark.parametrize("name", NAMES)
def test_data_parallel(check, name):
    check(name, "dp=3", DATA_PARALLEL)
    check(name, "dp=2,tp=2", DATA_PARALLEL + tensor_parallel(name))


@pytest.mark.parametrize("name", ["gpt2", "gpt2_odd", "llama", "llama_odd"])
def test_vocabulary_over_three_and_four_ranks(check, name):
    for mesh in ("tp=3", "tp=4"):
        check(name, mesh, tensor_parallel(name) + VOCABULARY_TP + LM_HEAD_TP)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_two_reductions_a_layer(check, name):
    assert check(name, "tp=4", tensor_parallel(name)) == {"dist.all_reduce": 4}
