# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Templates of ops for random placed programs: each takes a Program, finds or makes operands, and gives a
Spec (placed_programs.py), or None where it has nothing to work on."""
from placed_programs import Factor, Spec, product, same_shape, symbol_of

TEMPLATES = []


def template(function):
    TEMPLATES.append(function)
    return function


def value(p, rank=None, minimum=1, **more):
    """A float tensor: one that exists, or a new argument."""
    found = p.pick(rank, minimum, **more) if p.rng.random() < 0.8 else None
    if found is None and "condition" not in more:
        found = p.arg(p.dims(p.rng.randint(minimum, 3) if rank is None else rank))
    return found


def named(shape, prefix="d"):
    """Factors of a tensor whose dims are one factor each (none for size 1): (dims, factors)."""
    dims = [[] if n == 1 else [f"{prefix}{i}"] for i, n in enumerate(shape)]
    return dims, {f"{prefix}{i}": Factor(n) for i, n in enumerate(shape) if n != 1}


def i64s(values):
    return "array<i64" + (": " + ", ".join(map(str, values)) if values else "") + ">"


# -- elementwise ------------------------------------------------------------------------------------

@template
def unary(p):
    x = value(p, minimum=0)
    if x is None:
        return None
    name, linear = p.rng.choice([("relu", False), ("tanh", False), ("silu", False), ("gelu", False),
                                 ("sigmoid", False), ("abs", False), ("neg", True), ("clone", True)])
    dims, factors = named(x.shape)
    return Spec(name, [(x, dims)], [(x.shape, x.dtype, dims)], factors, linear=[{0}] if linear else [])


@template
def binary(p):
    x = value(p, minimum=0)
    name = p.rng.choice(["add", "sub", "mul", "maximum", "minimum"])
    y = p.pick(minimum=0, condition=lambda v: same_shape(v.shape, x.shape)) if p.rng.random() < 0.5 else None
    if y is None:  # a new operand that broadcasts
        shape = [1 if p.rng.random() < 0.3 else n for n in x.shape]
        y = p.arg(shape[p.rng.randint(0, len(shape)):] if shape else [])
    dims, factors = named(x.shape)
    skip = len(x.shape) - len(y.shape)
    other = [[] if n == 1 else dims[i + skip] for i, n in enumerate(y.shape)]
    linear = {"add": [{0, 1}], "sub": [{0, 1}], "mul": [{0}, {1}]}.get(name, [])
    return Spec(name, [(x, dims), (y, other)], [(x.shape, x.dtype, dims)], factors, linear=linear)


@template
def choose(p):
    if p.float != "f64":
        return None  # what is equal but for rounding compares either way
    x = value(p)
    y = p.arg(x.shape)
    dims, factors = named(x.shape)
    mask = p.add(Spec("lt", [(x, dims), (y, dims)], [(x.shape, "i1", dims)], factors))
    if mask is None:
        return None
    dims, factors = named(x.shape)
    return Spec("where", [(mask[0], dims), (x, dims), (y, dims)], [(x.shape, x.dtype, dims)], factors,
                linear=[{1, 2}])


# -- contractions -----------------------------------------------------------------------------------

@template
def linear(p):
    x = value(p)
    n = p.dims(1)[0]
    w = p.arg([n, x.shape[-1]])
    dims, factors = named(x.shape)
    if x.shape[-1] != 1:
        factors[dims[-1][0]].kind = "reduce"
    if n != 1:
        factors["n"] = Factor(n)
    out = [] if n == 1 else ["n"]
    operands, lin = [(x, dims), (w, [out, dims[-1]])], [{0}, {1}]
    if p.rng.random() < 0.6:
        operands.append((p.arg([n]), [out]))
        lin = [{0, 2}, {1, 2}]
    return Spec("linear", operands, [(x.shape[:-1] + [n], x.dtype, dims[:-1] + [out])], factors, linear=lin,
                additive=[2])


@template
def addmm(p):
    x = value(p, rank=2)
    n = p.dims(1, ones=False)[0]
    w, bias = p.arg([x.shape[1], n]), p.arg([n])
    dims, factors = named(x.shape)
    if x.shape[1] != 1:
        factors["d1"].kind = "reduce"
    factors["n"] = Factor(n)
    return Spec("addmm", [(bias, [["n"]]), (x, dims), (w, [dims[1], ["n"]])],
                [([x.shape[0], n], x.dtype, [dims[0], ["n"]])], factors, linear=[{0, 1}, {0, 2}], additive=[0],
                attrs="beta = 0.5 : f64, alpha = 2.0 : f64")


@template
def matmul(p):
    x = value(p, minimum=2)
    n = p.dims(1, ones=False)[0]
    batch = x.shape[:-2] if p.rng.random() < 0.5 else []
    y = p.arg(batch + [x.shape[-1], n])
    dims, factors = named(x.shape)
    if x.shape[-1] != 1:
        factors[dims[-1][0]].kind = "reduce"
    factors["n"] = Factor(n)
    other = (dims[:-2] if batch else []) + [dims[-1], ["n"]]
    return Spec("matmul", [(x, dims), (y, other)], [(x.shape[:-1] + [n], x.dtype, dims[:-1] + [["n"]])],
                factors, linear=[{0}, {1}])


def first_query(p):
    return f"static_first = {p.rng.choice([0, 0, 1, 3, 6])} : i64"


def attention_segments(operands, count):
    """Of `count` operands, a mask where there are more, and no index."""
    return f"operandSegmentSizes = array<i32: {'1, ' * count}{len(operands) - count}, 0>"


@template
def attention(p):
    b, q = p.dim([1, 2, 3]), p.dim([3, 4, 5])
    h, k, e = (p.rng.choice(s) for s in ([2, 3, 4, 6], [4, 5], [2, 4]))
    gqa = p.rng.random() < 0.4 and h % 2 == 0
    group = 2 if gqa else 1
    causal = p.rng.random() < 0.5
    group_kind = "parallel" if len(p.mesh.axes) == 1 else "whole"  # two axes leave some ranks no head at all
    factors = {"b": Factor(b), "h": Factor(h // group), "g": Factor(group, group_kind, plain=True), "q": Factor(q),
               "k": Factor(k, "whole"), "e": Factor(e, "whole")}

    def dims(*names):
        return [[n for n in names_of if factors[n].size > 1] for names_of in names]
    heads = ["h", "g"] if gqa else ["h"]
    operands = [(p.arg([b, h, q, e]), dims("b", heads, "q", "e")),
                (p.arg([b, h // group, k, e]), dims("b", "h", "k", "e")),
                (p.arg([b, h // group, k, e]), dims("b", "h", "k", "e"))]
    if not causal and not gqa and p.rng.random() < 0.5:
        mask = p.arg([b, 1, q, k])
        operands.append((mask, dims("b", [], "q", "k")))
    attrs = ", ".join((["is_causal", first_query(p)] if causal else []) + (["enable_gqa"] if gqa else []) +
                      ["scale = 0.25 : f64", attention_segments(operands, 3)])
    return Spec("scaled_dot_product_attention", operands,
                [([b, h, q, e], p.float, dims("b", heads, "q", "e"))], factors, attrs)


# -- views ------------------------------------------------------------------------------------------

@template
def view(p):
    x = value(p)
    parts, factors = [], {}  # the dims of x, cut into factors at random
    dims = []
    for n in x.shape:
        names = []
        if symbol_of(n):
            names, n = [f"f{len(factors)}"], 1
            factors[names[0]] = Factor(x.shape[len(dims)])
        while n > 1:
            divisors = [d for d in range(2, n + 1) if n % d == 0]
            size = p.rng.choice(divisors)
            names.append(f"f{len(factors)}")
            factors[names[-1]] = Factor(size)
            n //= size
        dims.append(names)
        parts += names
    result, at = [], 0
    while at < len(parts):
        take = 1 if any(symbol_of(factors[n].size) for n in parts[at:at + 2]) else p.rng.randint(1, 2)
        result.append(parts[at:at + take])
        at += take
    if p.rng.random() < 0.3:
        result.insert(p.rng.randint(0, len(result)), [])
    shape = [product(factors[n].size for n in names) for names in result]
    if len(shape) > 4:
        return None
    sizes, indices = p.sizes(shape, result, dims)
    return Spec("view", [(x, dims)], [(shape, x.dtype, result)], factors, f"static_size = {sizes}",
                linear=[{0}], indices=indices)


@template
def expand(p):
    x = value(p)
    dims, factors = named(x.shape)
    shape = list(x.shape)
    result = list(dims)
    for d, n in enumerate(shape):
        if n == 1 and p.rng.random() < 0.7:
            shape[d] = p.rng.choice([2, 3, 5, 8])
            factors[f"e{d}"] = Factor(shape[d])
            result[d] = [f"e{d}"]
    if len(shape) < 4 and p.rng.random() < 0.5:
        n = p.rng.choice([2, 3, 5, 8])
        factors["front"] = Factor(n)
        shape, result = [n] + shape, [["front"]] + result
    sizes, indices = p.sizes(shape, result, dims)
    return Spec("expand", [(x, dims)], [(shape, x.dtype, result)], factors, f"static_size = {sizes}",
                linear=[{0}], indices=indices)


@template
def permute(p):
    x = value(p, minimum=2)
    dims, factors = named(x.shape)
    order = list(range(len(dims)))
    p.rng.shuffle(order)
    return Spec("permute", [(x, dims)], [([x.shape[i] for i in order], x.dtype, [dims[i] for i in order])],
                factors, f"dims = {i64s(order)}", linear=[{0}])


@template
def unsqueeze(p):
    x = value(p)
    dims, factors = named(x.shape)
    at = p.rng.randint(0, len(dims))
    shape = x.shape[:at] + [1] + x.shape[at:]
    return Spec("unsqueeze", [(x, dims)], [(shape, x.dtype, dims[:at] + [[]] + dims[at:])], factors,
                f"dim = {at} : i64", linear=[{0}])


@template
def squeeze(p):
    x = value(p, condition=lambda v: 1 in v.shape)
    if x is None:
        return None
    dims, factors = named(x.shape)
    at = x.shape.index(1)
    return Spec("squeeze", [(x, dims)], [(x.shape[:at] + x.shape[at + 1:], x.dtype, dims[:at] + dims[at + 1:])],
                factors, f"dim = {i64s([at])}", linear=[{0}])


# -- parts ------------------------------------------------------------------------------------------

@template
def piece_of_blocks(p):
    """One of the equal blocks of a dim, or all of them."""
    def fits(n):
        return not symbol_of(n) and (n % 2 == 0 or n % 3 == 0)
    x = value(p, condition=lambda v: any(map(fits, v.shape))) or p.arg([12, 5])
    d = p.rng.choice([i for i, n in enumerate(x.shape) if fits(n)])
    blocks = p.rng.choice([b for b in (2, 3) if x.shape[d] % b == 0])
    inner = x.shape[d] // blocks
    dims, factors = named(x.shape)
    del factors[dims[d][0]]
    factors["blocks"], factors["inner"] = Factor(blocks, "whole"), Factor(inner)
    small = ["inner"] if inner > 1 else []
    shape = x.shape[:d] + [inner] + x.shape[d + 1:]
    result = (shape, x.dtype, dims[:d] + [small] + dims[d + 1:])
    operand = (x, dims[:d] + [["blocks"] + small] + dims[d + 1:])
    if p.rng.random() < 0.5:
        return Spec("split_with_sizes", [operand], [result] * blocks, factors,
                    f"static_split_sizes = {i64s([inner] * blocks)}, dim = {d} : i64", linear=[{0}])
    start = p.rng.randrange(blocks) * inner
    return Spec("slice", [operand], [result], factors, linear=[{0}], attrs=f"dim = {d} : i64, static_start = {start}"
                f" : i64, static_end = {start + inner} : i64, operandSegmentSizes = array<i32: 1, 0, 0>")


@template
def slice_elsewhere(p):
    """A slice of a dim that is whole, by any step; other dims are sharded freely."""
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    start = p.rng.randrange(x.shape[d])
    end = p.rng.randint(start + 1, x.shape[d])
    step = p.rng.choice([1, 1, 2, 3])
    n = -(-(end - start) // step)
    dims, factors = named(x.shape)
    for name in dims[d]:
        factors[name].kind = "whole"
    result = dims[:d] + [[]] + dims[d + 1:]
    return Spec("slice", [(x, dims)], [(x.shape[:d] + [n] + x.shape[d + 1:], x.dtype, result)], factors,
                f"dim = {d} : i64, static_start = {start} : i64, static_end = {end} : i64, step = {step} : i64, "
                "operandSegmentSizes = array<i32: 1, 0, 0>", linear=[{0}])


@template
def select(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    index = p.rng.randrange(-x.shape[d], x.shape[d])
    dims, factors = named(x.shape)
    for name in dims[d]:
        factors[name].kind = "reduce"
        factors[name].plain = symbol_of(x.shape[d]) is not None
    return Spec("select", [(x, dims)], [(x.shape[:d] + x.shape[d + 1:], x.dtype, dims[:d] + dims[d + 1:])],
                factors, f"dim = {d} : i64, static_index = {index} : i64", linear=[{0}])


@template
def cat(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    if symbol_of(x.shape[d]):
        return None
    count = p.rng.choice([2, 3])
    dims, factors = named(x.shape)
    factors["blocks"] = Factor(count, "whole")
    operands = [(x, dims)] + [(p.arg(x.shape), dims) for _ in range(count - 1)]
    shape = x.shape[:d] + [count * x.shape[d]] + x.shape[d + 1:]
    return Spec("cat", operands, [(shape, x.dtype, dims[:d] + [["blocks"] + dims[d]] + dims[d + 1:])], factors,
                f"dim = {d} : i64", linear=[set(range(count))])


@template
def pad(p):
    x = value(p)
    if symbol_of(x.shape[-1]):
        return None
    before, after = p.rng.randint(0, 2), p.rng.randint(0, 2)
    dims, factors = named(x.shape)
    for name in dims[-1]:
        factors[name].kind = "whole"
    return Spec("constant_pad_nd", [(x, dims)],
                [(x.shape[:-1] + [x.shape[-1] + before + after], x.dtype, dims[:-1] + [[]])], factors,
                f"pad = {i64s([before, after])}, value = 1.5 : f64")


@template
def triangle(p):
    x = value(p, minimum=2)
    dims, factors = named(x.shape)
    return Spec(p.rng.choice(["tril", "triu"]), [(x, dims)], [(x.shape, x.dtype, dims)], factors,
                f"diagonal = {p.rng.randint(-2, 2)} : i64", linear=[{0}])
