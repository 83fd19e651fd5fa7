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


def row_moves(p, name):
    """Rows that go to the parts that own them, or come back: each rank has a part of both, or all."""
    batches, parts, granule = p.rng.choice([1, 1, 2]), p.rng.choice([2, 3, 4, 6]), p.rng.choice([1, 1, 2])
    size = p.rng.choice([1, 2, 3, 5, 6, 8, 12] if batches == 1 else [1, 2, 6]) * granule
    rows, width = batches * size, p.dims(1)[0]
    x, owner = p.arg([rows * (parts if name == "collect_rows" else 1), width]), p.arg([rows], "i64", parts + 1)
    dims, factors = named([rows, width])
    if symbol_of(width):
        return None
    dims[0] = []
    factors.pop("d0", None)
    of_rows, of_parts = [], []
    # With as many ranks as parts, and rows that can be cut so, one part a rank; else whole blocks.
    if size % (parts * granule) == 0:
        factors["p"], factors["in"], factors["of"] = Factor(batches * parts), Factor(size // parts, "whole"), Factor(size, "whole")
        of_rows += ["p"] + ["in"] * (size > parts)
        of_parts += ["p"] + ["of"] * (size > 1)
    else:
        factors["b"], factors["in"], factors["of"] = Factor(batches), Factor(size, "whole"), Factor(size * parts, "whole")
        of_rows += ["b"] * (batches > 1) + ["in"] * (size != 1)
        of_parts += ["b"] * (batches > 1) + ["of"] * (size * parts != 1)
    source, target = (of_rows, of_parts) if name == "dispatch_rows" else (of_parts, of_rows)
    count = rows * parts if name == "dispatch_rows" else rows
    return Spec(name, [(x, [source, dims[1]]), (owner, [of_rows])], [([count, width], x.dtype, [target, dims[1]])], factors,
                f"batches = {batches} : i64, parts = {parts} : i64, granule = {granule} : i64", linear=[{0}])


@template
def dispatch_rows(p):
    return row_moves(p, "dispatch_rows")


@template
def collect_rows(p):
    return row_moves(p, "collect_rows")
