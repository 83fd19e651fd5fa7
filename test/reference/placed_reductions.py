# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More templates (see placed_ops.py): reductions, norms, scans, lookups, creation."""
from placed_ops import i64s, named, template, value
from placed_programs import Factor, Spec, symbol_of


def reduced(p, x, kind, reduction="sum", some=True):
    """(list of reduced dims, keepdim, dims and factors of x, shape and dims of the result)."""
    count = p.rng.randint(1, len(x.shape)) if some else 1
    at = sorted(p.rng.sample(range(len(x.shape)), count))
    keep = p.rng.random() < 0.5
    dims, factors = named(x.shape)
    for d in at:
        for name in dims[d]:
            factors[name].kind, factors[name].reduction = kind, reduction
    shape = [1 if d in at else n for d, n in enumerate(x.shape)]
    result = [[] if d in at else names for d, names in enumerate(dims)]
    if not keep:
        shape = [n for d, n in enumerate(shape) if d not in at]
        result = [n for d, n in enumerate(result) if d not in at]
    return at, keep, dims, factors, shape, result


def attrs_of(at, keep, more=""):
    return f"dim = {i64s(at)}" + (", keepdim" if keep else "") + more


@template
def reduction(p):
    x = value(p)
    name, how = p.rng.choice([("sum", "sum"), ("mean", "sum"), ("amax", "max"), ("amin", "min"), ("prod", "prod")])
    at, keep, dims, factors, shape, result = reduced(p, x, "reduce", how)
    linear = [{0}] if name in ("sum", "mean") else []
    return Spec(name, [(x, dims)], [(shape, x.dtype, result)], factors, attrs_of(at, keep), linear=linear)


@template
def reduction_together(p):
    x = value(p)
    name, more = p.rng.choice([("var", ", correction = 1.0 : f64"), ("var", ", correction = 0.0 : f64"),
                               ("logsumexp", ""), ("linalg_vector_norm", ", ord = 2.0 : f64"),
                               ("linalg_vector_norm", ", ord = 1.0 : f64"), ("linalg_vector_norm", ", ord = 3.0 : f64"),
                               ("linalg_vector_norm", ", ord = 0x7FF0000000000000 : f64"),
                               ("linalg_vector_norm", ", ord = 0.0 : f64")])
    at, keep, dims, factors, shape, result = reduced(p, x, "together")
    return Spec(name, [(x, dims)], [(shape, x.dtype, result)], factors, attrs_of(at, keep, more))


@template
def arg_extreme(p):
    if p.float != "f64":
        return None  # a tie in one rounding is none in another
    x = value(p)
    at, keep, dims, factors, shape, result = reduced(p, x, "together", some=False)
    attrs = f"dim = {at[0]} : i64" + (", keepdim" if keep else "")
    if p.rng.random() < 0.3 and not any(map(symbol_of, x.shape)):  # the position in the flattened tensor
        for names in dims:
            for name in names:
                factors[name].kind = "together"
        attrs, shape, result = "", [], []
    return Spec(p.rng.choice(["argmax", "argmin"]), [(x, dims)], [(shape, "i64", result)], factors, attrs)


@template
def softmax(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    dims, factors = named(x.shape)
    return Spec(p.rng.choice(["softmax", "log_softmax"]), [(x, dims)], [(x.shape, x.dtype, dims)], factors,
                f"dim = {d} : i64")


@template
def norm(p):
    x = value(p)
    count = p.rng.randint(1, len(x.shape))
    dims, factors = named(x.shape)
    name = p.rng.choice(["layer_norm", "rms_norm"])
    operands, segments = [(x, dims)], [1, 0, 0]
    if p.rng.random() < 0.7:
        operands.append((p.arg(x.shape[-count:]), dims[-count:]))
        segments[1] = 1
        if name == "layer_norm" and p.rng.random() < 0.7:
            operands.append((p.arg(x.shape[-count:]), dims[-count:]))
            segments[2] = 1
    attrs = f"normalized_shape = {i64s(x.shape[-count:])}, eps = 0.01 : f64"
    if name == "layer_norm":
        attrs += f", operandSegmentSizes = array<i32: {', '.join(map(str, segments))}>"
    return Spec(name, operands, [(x.shape, x.dtype, dims)], factors, attrs)


@template
def group_norm(p):
    groups, each = p.rng.choice([1, 2, 3, 4, 6]), p.rng.choice([1, 2, 3, 5])
    shape = [p.dims(1)[0], groups * each] + p.dims(p.rng.randint(0, 2))
    if groups * each == 1 or (each == 1 and all(n == 1 for n in shape[2:])):
        return None  # of one element each, what is left is rounding, and may come out on either side of zero
    x = p.arg(shape)
    dims, factors = named(x.shape)
    channels = [name for name, size in (("g", groups), ("c", each)) if size > 1]
    del factors[dims[1][0]]
    dims[1] = channels
    factors.update({"g": Factor(groups), "c": Factor(each, "together")})
    for names in dims[2:]:
        for name in names:
            factors[name].kind = "together"
    factors = {name: factors[name] for names in dims for name in names}
    operands = [(x, dims)] + [(p.arg([groups * each]), [channels]) for _ in range(p.rng.randint(0, 2))]
    segments = ", ".join("1" if i < len(operands) else "0" for i in range(3))
    return Spec("group_norm", operands, [(shape, x.dtype, dims)], factors,
                f"num_groups = {groups} : i64, eps = 0.01 : f64, operandSegmentSizes = array<i32: {segments}>")


@template
def cumsum(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    dims, factors = named(x.shape)
    return Spec("cumsum", [(x, dims)], [(x.shape, x.dtype, dims)], factors, f"dim = {d} : i64", linear=[{0}]
                if p.rng.random() < 0.5 else [])


@template
def scan(p):
    x, name = value(p), p.rng.choice(["cumprod", "cummax", "cummin", "logcumsumexp"])
    d = p.rng.randrange(len(x.shape))
    dims, factors = named(x.shape)
    for factor in dims[d]:
        factors[factor].kind = "together"
    return Spec(name, [(x, dims)], [(x.shape, x.dtype, dims)], factors, f"dim = {d} : i64")


# -- lookups ----------------------------------------------------------------------------------------

def indices(p, shape, high):
    return p.arg(shape, "i64", high)


@template
def embedding(p):
    rows, width = p.dim([2, 3, 5, 7, 12]), p.dims(1)[0]
    w, i = p.arg([rows, width]), indices(p, p.dims(p.rng.randint(1, 2)), rows)
    dims, factors = named(i.shape)
    factors["rows"] = Factor(rows, "reduce")
    last = [] if width == 1 else ["w"]
    factors.update({"w": Factor(width)} if last else {})
    return Spec("embedding", [(w, [["rows"], last]), (i, dims)], [(i.shape + [width], p.float, dims + [last])],
                factors, linear=[{0}])


@template
def gather(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    shape = list(x.shape)
    shape[d] = p.dims(1)[0]
    i = indices(p, shape, x.shape[d])
    dims, factors = named(x.shape)
    for name in dims[d]:
        factors[name].kind = "reduce"
    for e, names in enumerate(dims):
        if names and e != d and symbol_of(x.shape[e]):  # self may have more there than index asks for
            factors[names[0]].kind = "whole"
    at = list(dims)
    at[d] = [] if shape[d] == 1 else ["at"]
    factors.update({"at": Factor(shape[d])} if at[d] else {})
    return Spec("gather", [(x, dims), (i, at)], [(shape, x.dtype, at)], factors, f"dim = {d} : i64", linear=[{0}])


@template
def index_select(p):
    x = value(p)
    d = p.rng.randrange(len(x.shape))
    n = p.dims(1)[0]
    i = indices(p, [n], x.shape[d])
    dims, factors = named(x.shape)
    for name in dims[d]:
        factors[name].kind = "reduce"
    at = [] if n == 1 else ["at"]
    factors.update({"at": Factor(n)} if at else {})
    return Spec("index_select", [(x, dims), (i, [at])],
                [(x.shape[:d] + [n] + x.shape[d + 1:], x.dtype, dims[:d] + [at] + dims[d + 1:])], factors,
                f"dim = {d} : i64", linear=[{0}])


@template
def index(p):
    """One or two dims indexed by tensors that broadcast together."""
    x = value(p, minimum=2)
    count = p.rng.choice([1, 2])
    at = sorted(p.rng.sample(range(len(x.shape)), count))
    m, n = p.dims(2, ones=False)
    shapes = [[m, 1], [1, n]] if count == 2 else [[m, n]]
    dims, factors = named(x.shape)
    for d in at:
        for name in dims[d]:
            factors[name].kind = "reduce"
    factors["m"], factors["n"] = Factor(m), Factor(n)
    operands = [(x, dims)]
    for shape, d in zip(shapes, at):
        operands.append((indices(p, shape, x.shape[d]), [[] if s == 1 else [f] for s, f in zip(shape, "mn")]))
    kept = [d for d in range(len(x.shape)) if d not in at]
    front = at[0] if at[-1] - at[0] == count - 1 else 0
    shape, result = [x.shape[d] for d in kept], [dims[d] for d in kept]
    shape[front:front], result[front:front] = [m, n], [["m"], ["n"]]
    return Spec("index", operands, [(shape, x.dtype, result)], factors, f"indices_at = {i64s(at)}", linear=[{0}])


# -- creation ---------------------------------------------------------------------------------------

@template
def arange(p):
    n, start, step = p.rng.choice([2, 3, 5, 8]), p.rng.randint(-3, 3), p.rng.choice([1, 2, 3])
    return Spec("arange", [], [([n], p.float, [["n"]])], {"n": Factor(n)},
                f"static_start = {start} : i64, static_end = {start + n * step - p.rng.randint(0, step - 1)} : i64, "
                f"step = {step} : i64, dtype = {p.float}, operandSegmentSizes = array<i32: 0, 0>")


@template
def random(p):
    """Two draws of one generator, of which one drops elements of the other."""
    kind = p.float if p.float != "bf16" else "f32"
    shape = [p.rng.choice([1, 2, 3, 5, 8]) for _ in range(p.rng.randint(0, 3))]
    dims, factors = named(shape)
    state = [p.arg([], "i64", 1 << 40) for _ in range(2)]
    sizes = ", ".join(map(str, shape))
    distribution = p.rng.choice(["uniform", "normal"])
    return Spec("random", [(v, []) for v in state], [(shape, kind, dims)], factors,
                f'distribution = "{distribution}", dtype = {kind}, static_size = array<i64{": " + sizes if shape else ""}>')


@template
def constant(p):
    shape = [p.rng.choice([1, 2, 3, 5, 8]) for _ in range(p.rng.randint(1, 2))]
    dims, factors = named(shape)
    text = "0.5" if p.rng.random() < 0.5 else nested([float(p.rng.randint(-9, 9)) for _ in range(size(shape))], shape)
    kind = f"tensor<{'x'.join(map(str, shape))}x{p.float}>"
    return Spec("constant", [], [(shape, p.float, dims)], factors, f"value = dense<{text}> : {kind}")


def size(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def nested(values, shape):
    if not shape:
        return str(values[0])
    step = len(values) // shape[0]
    return "[" + ", ".join(nested(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"
