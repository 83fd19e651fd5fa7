# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that no list of ours has, small models and gradients on the emulated device, with all its checks, on 1, 2 and 4 ranks, each in
three orders of streams: as tests of the CPU target compare them with PyTorch."""
import pytest

import gradients
import random_gradients
import random_programs
import test_gradients
import test_model_gradients
import test_small_models
from conftest import BUILD
from test_model_gradients import folder, reference  # noqa: F401 (fixtures)
from test_small_models import model  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built"),
              pytest.mark.usefixtures("all_orders")]
MESHES = ("r=1", "tp=2", "dp=2,tp=2")


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")


def seeds_of(mesh, count):
    """So many of the first batch that has this mesh."""
    first = next(n for n in range(0, 100 * random_programs.BATCH, random_programs.BATCH) if random_programs.mesh_of(n) == mesh)
    return range(first, first + count)


def assert_agree(programs, least, folder, **options):  # noqa: F811
    ran, refused, failures = random_programs.check(programs, folder, **options)
    assert not failures, "".join(f"\n{program.text(mesh)}# {problem}" for program, mesh, problem in failures)[:8000]
    assert ran >= least and not refused, refused


@pytest.mark.parametrize("mesh", MESHES)
def test_random_programs(tmp_path, mesh):
    assert_agree(seeds_of(mesh, 40), 25, tmp_path)


@pytest.mark.parametrize("mesh", MESHES)
def test_gradients_of_random_programs(tmp_path, mesh):
    assert_agree(seeds_of(mesh, 40), 20, tmp_path, make=random_gradients.make_differentiated)


@pytest.mark.parametrize("number, mesh", enumerate(MESHES))
def test_models(model, number, mesh):  # noqa: F811
    """On several ranks with all parameters sharded, or another dim of an input for each mesh."""
    plans = list(test_small_models.plans(*model[1:3]))
    test_small_models.check(model, mesh, [plans[-number % len(plans)] if number else []])


# Gradients of whole models on 1, 2 and 4 ranks: those of data-parallel parameters are scattered, those of the last two are of heads and
# positions, or of columns and rows.
@pytest.mark.parametrize("case", ["gpt2-one-rank", "gpt2-sharded", "gpt2-tp4-sequence", "mse-dp2-tp2"])
def test_model_gradients_of(reference, tmp_path, case):  # noqa: F811
    cases = test_model_gradients.SHARDED | {"gpt2-one-rank": ("gpt2", "r=1", [])}
    test_model_gradients.check(reference, tmp_path, *cases[case])


@pytest.mark.parametrize("family", [test_gradients.all_unary, *test_gradients.FAMILIES], ids=lambda f: f.__name__)
def test_gradients_of_ops(tmp_path, family):
    problems = gradients.check(list(family()), tmp_path)
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)
