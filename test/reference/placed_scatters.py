# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Templates for random placed programs (placed_ops.py): what adds at positions, sorts, and products over several dims."""
from placed_ops import i64s, named, template, value
from placed_programs import Factor, Spec, symbol_of
from placed_reductions import indices


@template
def tensordot(p):
    """Over the leading dims of two tensors, as the gradient of a weight."""
    x = value(p, minimum=2)
    count = p.rng.randint(1, len(x.shape) - 1)
    n = p.dims(1)[0]
    y = p.arg(x.shape[:count] + [n])
    dims, factors = named(x.shape)
    for names in dims[:count]:
        for name in names:
            factors[name].kind = "reduce"
    out = [] if n == 1 else ["n"]
    factors.update({"n": Factor(n)} if out else {})
    over = list(range(count))
    return Spec("tensordot", [(x, dims), (y, dims[:count] + [out])],
                [(x.shape[count:] + [n], x.dtype, dims[count:] + [out])], factors,
                f"dims_self = {i64s(over)}, dims_other = {i64s(over)}", linear=[{0}, {1}])


@template
def scatter_add(p):
    x = value(p)
    if any(symbol_of(n) for n in x.shape):
        return None
    d = p.rng.randrange(len(x.shape))
    shape = list(x.shape)
    shape[d] = p.dims(1)[0]
    i, src = indices(p, shape, x.shape[d]), p.arg(shape)
    dims, factors = named(x.shape)
    for name in dims[d]:
        factors[name].plain = True  # chunks: one piece on each rank
    at = list(dims)
    at[d] = [] if shape[d] == 1 else ["at"]
    factors.update({"at": Factor(shape[d], "whole" if symbol_of(shape[d]) else "reduce")} if at[d] else {})
    return Spec("scatter_add", [(x, dims), (i, at), (src, at)], [(x.shape, x.dtype, dims)], factors, f"dim = {d} : i64",
                linear=[{0, 2}], additive=[0])


@template
def sort(p):
    """Of the only dim of a size other than 1: what each rank has is sorted into what it is to have."""
    n = p.rng.choice([2, 3, 5, 7, 12, 40])
    shape = p.rng.choice([[n], [1, n], [n, 1]])
    # Numbers of few values: many are equal.
    x = p.arg(shape, "i64", high=p.rng.choice([1, 3, 100])) if p.float != "f64" or p.rng.random() < 0.7 else p.arg(shape)
    dims, factors = named(shape)
    d = shape.index(n)
    if p.rng.random() < 0.2:
        factors[f"d{d}"].kind = "whole"
    return Spec("sort", [(x, dims)], [(shape, x.dtype, dims), (shape, "i64", dims)], factors,
                f"dim = {d} : i64" + (", descending" if p.rng.random() < 0.5 else ""))


@template
def index_put(p):
    x = value(p, minimum=2)
    if any(symbol_of(n) for n in x.shape):
        return None
    count = p.rng.choice([1, 2])
    at = sorted(p.rng.sample(range(len(x.shape)), count))
    m, n = p.dims(2, ones=False)
    shapes = [[m, 1], [1, n]] if count == 2 else [[m, n]]
    dims, factors = named(x.shape)
    for d in at:
        for name in dims[d]:
            factors[name].plain = True  # chunks: one piece on each rank
    factors["m"], factors["n"] = Factor(m, "reduce"), Factor(n, "reduce")
    operands = [(x, dims)]
    for shape, d in zip(shapes, at):
        operands.append((indices(p, shape, x.shape[d]), [[] if s == 1 else [f] for s, f in zip(shape, "mn")]))
    kept = [d for d in range(len(x.shape)) if d not in at]
    front = at[0] if at[-1] - at[0] == count - 1 else 0
    shape, read = [x.shape[d] for d in kept], [dims[d] for d in kept]
    shape[front:front], read[front:front] = [m, n], [["m"], ["n"]]
    operands.append((p.arg(shape), read))
    return Spec("index_put", operands, [(x.shape, x.dtype, dims)], factors, f"indices_at = {i64s(at)}, accumulate",
                linear=[{0, len(operands) - 1}], additive=[0])
