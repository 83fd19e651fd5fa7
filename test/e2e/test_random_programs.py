# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some of the random programs of random_programs.py, which runs any number of them by hand."""
from random_programs import check


def test_random_programs_agree_with_pytorch(tmp_path):
    ran, refused, failures = check(range(80), tmp_path)
    again = "".join(f"\n{program.text(mesh)}# {problem}\n# again, and made smaller: python test/e2e/random_programs.py "
                    f"--seed {program.seed} --count 1" for program, mesh, problem in failures)
    assert not failures, again[:8000]
    assert ran > 60 and not refused, refused
