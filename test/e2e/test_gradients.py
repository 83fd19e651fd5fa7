# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of every floating-point op of the aten dialect, in f64, against PyTorch and against finite differences."""
import re

import pytest
import torch

from conftest import ROOT
from gradients import check
import gradient_cases
from gradient_cases import CONSTANT, FAMILIES, REASONS, UNARY


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(11)


def all_unary():
    return [case for name in UNARY + CONSTANT for case in gradient_cases.unary(name)]


@pytest.mark.parametrize("family", [all_unary, *FAMILIES], ids=lambda f: f.__name__)
def test_family(family, tmp_path):
    problems = check(list(family()), tmp_path)
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)


@pytest.mark.parametrize("number", range(len(FAMILIES) + 1), ids=[f.__name__ for f in (all_unary, *FAMILIES)])
def test_sharded_family(number, tmp_path):
    """The same, with all inputs sharded over three ranks, or over 2 x 2."""
    family = (all_unary, *FAMILIES)[number]
    problems = check(list(family()), tmp_path, ("tp=3", "dp=2,tp=2")[number % 2])
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)


def test_every_op_is_differentiated_or_has_a_reason():
    text = "".join(path.read_text() for path in (ROOT / "dialects/aten").glob("*.td"))
    names = set(re.findall(r'def Aten_\w+Op\b[^"]*"(\w+)"', text))
    assert len(names) > 120, "the definitions of ops were not found"
    tested = {re.match(r"aten\.(\w+)", case.text)[1] for family in (all_unary, *FAMILIES) for case in family()}
    assert tested | REASONS.keys() == names
    assert not tested & REASONS.keys()
