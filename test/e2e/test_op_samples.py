# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples of the ops that the importer takes (op_samples.py, which runs all of them by hand): whole; some of them with tensors
sharded at random; and composites as plain exports keep them."""
import re

import pytest

from op_samples import main_check, report

# Of the composites that PyTorch's default decompositions take apart, some of every kind.
COMPOSITES = """einsum tensordot inner outer kron cross linalg.cross linalg.multi_dot linalg.vecdot
nn.functional.bilinear hstack vstack dstack column_stack atleast_3d meshgrid.list_of_tensors cartesian_prod diag diagflat fliplr flipud
take_along_dim repeat_interleave sum_to_size linalg.vander tile absolute arccos clip concat divide fix greater less_equal
true_divide multiply negative special.expm1 special.log_softmax aminmax nansum nanmean nanquantile quantile cov corrcoef trapezoid
cumulative_trapezoid linalg.norm linalg.matrix_norm histc nn.functional.celu nn.functional.selu nn.functional.prelu
nn.functional.relu6 nn.functional.logsigmoid nn.functional.softshrink nn.functional.hardshrink nn.functional.threshold
nn.functional.cosine_similarity nn.functional.pairwise_distance nn.functional.cosine_embedding_loss
nn.functional.hinge_embedding_loss nn.functional.margin_ranking_loss nn.functional.poisson_nll_loss nn.functional.soft_margin_loss
nn.functional.triplet_margin_loss acosh asinh atanh square logit special.ndtr xlogy special.xlog1py hypot copysign signbit frac ldexp
diagonal trace addmv addr movedim adjoint logaddexp logaddexp2 float_power nan_to_num isclose isfinite isposinf heaviside fmax fmin deg2rad sinc""".split()
SCANS = "cumprod cummax cummin logcumsumexp cumsum mode nanmedian nn.functional.grid_sample nn.functional.max_unpool2d histc".split()


def any_of(names):
    return f"^({'|'.join(map(re.escape, names))})$"


def test_samples_of_pytorch(tmp_path):
    result = main_check(tmp_path, most=1)
    lines = []
    report(result, lines.append)
    print("\n".join(lines))
    count, ops, passed, _, unexplained, _ = result
    assert not unexplained, "\n".join(lines)
    assert ops > 450 and passed > 0.9 * count, lines[-1]


@pytest.mark.parametrize("names, mesh, form", [(COMPOSITES, "r=1", "training"), (SCANS, "dp=2,tp=2", "composite"),
                                               (COMPOSITES[::4], "tp=3", "training")], ids=["plain", "sharded", "plain-sharded"])
def test_some_samples(tmp_path, names, mesh, form):
    result = main_check(tmp_path, any_of(names), 1, mesh, form)
    lines = []
    report(result, lines.append)
    _, ops, passed, _, unexplained, _ = result
    assert not unexplained, "\n".join(lines)
    assert ops >= 0.9 * len(names) and passed >= 0.9 * ops, lines[-1]
