# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Templates for random placed programs (placed_ops.py): rows times the matrices that they name, and the sums that are the
derivative. Some rows name none."""
from placed_ops import i64s, named, template, value
from placed_programs import Factor, Spec, symbol_of


@template
def indexed_mm(p):
    x = value(p, rank=2)
    groups, n = p.dim([2, 3, 5]), p.dims(1)[0]
    w, i = p.arg([groups, x.shape[1], n]), p.arg([x.shape[0]], "i64", groups + 1)
    dims, factors = named(x.shape)
    if dims[1]:
        factors[dims[1][0]].kind = "reduce"
    factors["g"] = Factor(groups, "reduce", plain=True)
    out = [] if n == 1 else ["n"]
    factors.update({"n": Factor(n)} if out else {})
    return Spec("indexed_mm", [(x, dims), (w, [["g"], dims[1], out]), (i, [dims[0]])],
                [([x.shape[0], n], x.dtype, [dims[0], out])], factors, linear=[{0}, {1}])


@template
def indexed_outer(p):
    x = value(p, rank=2)
    groups, n = p.rng.choice([2, 3, 5]), p.dims(1)[0]
    y, i = p.arg([x.shape[0], n]), p.arg([x.shape[0]], "i64", groups + 1)
    dims, factors = named(x.shape)
    if symbol_of(x.shape[1]):
        return None
    if dims[0]:
        factors[dims[0][0]].kind = "reduce"
    factors["g"] = Factor(groups, plain=True)
    out = [] if n == 1 else ["n"]
    factors.update({"n": Factor(n)} if out else {})
    return Spec("indexed_outer", [(x, dims), (y, [dims[0], out]), (i, [dims[0]])],
                [([groups, x.shape[1], n], x.dtype, [["g"], dims[1], out])], factors, f"static_groups = {i64s([groups])}",
                linear=[{0}, {1}])
