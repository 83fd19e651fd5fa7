# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some of the random programs of random_programs.py, which runs any number of them by hand."""
from random_gradients import make_differentiated
from random_programs import check


def assert_agree(result, least, more=""):
    ran, refused, failures = result
    again = "".join(f"\n{program.text(mesh)}# {problem}\n# again, and made smaller: python test/e2e/random_programs.py "
                    f"--seed {program.seed} --count 1{more}" for program, mesh, problem in failures)
    assert not failures, again[:8000]
    assert ran >= least and not refused, refused


def test_random_programs_agree_with_pytorch(tmp_path):
    assert_agree(check(range(80), tmp_path), 60)


def test_gradients_of_random_programs_agree_with_pytorch(tmp_path):
    assert_agree(check(range(480), tmp_path, make=make_differentiated), 300, " --gradients")


def test_gradients_of_programs_that_were_wrong(tmp_path):
    """1144: the deviation of one element, which is 0."""
    assert_agree(check(range(1144, 1145), tmp_path, make=make_differentiated), 1, " --gradients")
