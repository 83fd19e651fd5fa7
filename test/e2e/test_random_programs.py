# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some of the random programs of random_programs.py, which runs any number of them by hand."""
import re

import torch

from random_gradients import make_differentiated
from random_programs import check, make, make_broad, make_wider, mesh_of
from random_sizes import make_dynamic


def assert_agree(result, least, more=""):
    ran, refused, failures = result
    again = "".join(f"\n{program.text(mesh_of(program.seed, variant))}# {problem}\n# again, and made smaller: python test/e2e/random_programs.py "
                    f"--seed {program.seed} --count 1 --variant {variant}{more}" for program, variant, problem in failures)
    assert not failures, again[:8000]
    assert ran >= least and not refused, refused


def test_random_programs_agree_with_pytorch(tmp_path):
    assert_agree(check(range(80), tmp_path), 60)


def test_programs_with_more_kinds_of_lines_and_layouts(tmp_path):
    """From 100800 on: 100805 is a pad of truths with a number between 0 and 1."""
    ran, refused, failures = check([*range(160, 200), *range(100800, 100840)], tmp_path, make=make_wider)
    assert_agree((ran, [], failures), 60, " --wider")
    assert all("not supported" in problem for _, problem in refused), refused


def test_programs_with_all_kinds_of_lines(tmp_path):
    ran, refused, failures = check(range(80), tmp_path, make=make_broad)
    assert_agree((ran, [], failures), 70, " --broad")
    # PyTorch exports no check of a value, as that of gaussian_nll_loss is.
    assert all(problem.startswith("export:") or "not supported" in problem for _, problem in refused), refused


def test_sizes_that_the_program_learns_when_it_runs(tmp_path):
    ran, refused, failures = check(range(24), tmp_path, make=make_dynamic)
    assert_agree((ran, [], failures), 12, " --dynamic")
    # PyTorch does not export some; others cut or name what only a known size tells.
    assert all(re.search("^export:|not supported|is supported of|is symbolic|has no kernel", problem) for _, problem in refused), refused


def test_a_wrong_answer_is_found(tmp_path):
    """Of the last of three programs PyTorch's answer is changed by one number, or by one truth."""
    def changed_last(seed, mesh):
        program = make(seed, mesh)
        if seed == 2:
            last = program.wants[-1].view(-1)
            last[-1] = ~last[-1] if last.dtype == torch.bool else last[-1] + 1
        return program

    ran, refused, failures = check(range(3), tmp_path, make=changed_last)
    assert ran == 3 and not refused and [program.seed for program, *_ in failures] == [2]


def test_gradients_of_random_programs_agree_with_pytorch(tmp_path):
    assert_agree(check(range(300), tmp_path, make=make_differentiated), 190, " --gradients")


def test_gradients_of_programs_that_were_wrong(tmp_path):
    """1144: the deviation of one element, which is 0."""
    assert_agree(check(range(1144, 1145), tmp_path, make=make_differentiated), 1, " --gradients")
