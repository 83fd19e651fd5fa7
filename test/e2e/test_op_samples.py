# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples of the ops that the importer takes (op_samples.py, which runs all of them by hand)."""
from op_samples import main_check, report


def test_samples_of_pytorch(tmp_path):
    result = main_check(tmp_path)
    lines = []
    report(result, lines.append)
    print("\n".join(lines))
    count, ops, passed, _, unexplained, stale = result
    assert not unexplained, "\n".join(lines)
    assert not stale, f"these exclusions explain nothing any more: {stale}"
    assert ops > 140 and passed > 0.9 * count, lines[-1]
