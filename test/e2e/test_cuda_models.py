# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that no list of ours has, small models and gradients on the emulated device, with all its checks, on one rank and on
several, in three orders of streams: as tests of the CPU target compare them with PyTorch."""
import pytest

import gradients
import random_gradients
import random_programs
import test_gradients
import test_small_models
from conftest import BUILD
from test_small_models import MESHES, model  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
ORDERS = ("eager", "lazy", "random:3")


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")


def assert_agree(programs, least, folder, **options):
    ran, refused, failures = random_programs.check(programs, folder, **options)
    assert not failures, "".join(f"\n{program.text(mesh)}# {problem}" for program, mesh, problem in failures)[:8000]
    assert ran >= least and not refused, refused


@pytest.mark.parametrize("number, order", enumerate(ORDERS))
def test_random_programs(monkeypatch, tmp_path, number, order):
    monkeypatch.setenv("CUDA_EMULATED_ORDER", order)
    assert_agree(range(40 * number, 40 * number + 40), 25, tmp_path)


@pytest.mark.parametrize("number, order", enumerate(ORDERS))
def test_gradients_of_random_programs(monkeypatch, tmp_path, number, order):
    monkeypatch.setenv("CUDA_EMULATED_ORDER", order)
    assert_agree(range(40 * number, 40 * number + 40), 20, tmp_path, make=random_gradients.make_differentiated)


@pytest.mark.parametrize("mesh, order", zip(MESHES, ORDERS, strict=True))
def test_models(monkeypatch, model, mesh, order):  # noqa: F811
    monkeypatch.setenv("CUDA_EMULATED_ORDER", order)
    monkeypatch.setattr(test_small_models, "plans", lambda *tensors, plans=test_small_models.plans: [list(plans(*tensors))[-1]])
    test_small_models.test_every_sharding_of_inputs_and_parameters(model, mesh)


@pytest.mark.parametrize("family", [test_gradients.all_unary, *test_gradients.FAMILIES], ids=lambda f: f.__name__)
def test_gradients_of_ops(tmp_path, family):
    problems = gradients.check(list(family()), tmp_path)
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)
