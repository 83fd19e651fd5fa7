# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each `aten` op computes, by PyTorch itself. One function per op: it takes the operands by name
(see `SPECS`), the attributes and the result types, and gives one tensor or a list. The same functions
serve global tensors and the tensors of one rank."""
import torch
import torch.nn.functional as F

DYNAMIC = -(2**63)
OPS, SPECS = {}, {}


def aten(name, *spec):
    """Registers the function for `aten.NAME`. In `spec`, "*x" is variadic and "?x" optional."""
    def register(function):
        OPS["aten." + name], SPECS["aten." + name] = function, spec
        return function
    return register


def bind(op, values):
    """Operands by name."""
    spec, segments = SPECS[op.name], op.attrs.get("operandSegmentSizes")
    if segments is None:
        loose = [s for s in spec if s[0] in "*?"]
        segments = [len(values) - (len(spec) - len(loose)) if s[0] in "*?" else 1 for s in spec]
    bound, at = {}, 0
    for s, n in zip(spec, segments):
        part = values[at:at + n]
        at += n
        bound[s.lstrip("*?")] = part if s[0] == "*" else (part[0] if n else None)
    return bound


def mixed(static, dynamic):
    """Static values with the index operands filled in."""
    rest = iter(dynamic)
    return [next(rest) if v == DYNAMIC else v for v in static]


def number(value):
    return float(value) if isinstance(value, str) else value


# -- elementwise ------------------------------------------------------------------------------------

def _unary(name, function):
    aten(name, "self")(lambda o, a, t: function(o["self"]))


def _binary(name, function):
    aten(name, "self", "other")(lambda o, a, t: function(o["self"], o["other"]))


for _name in ("abs neg sign floor ceil trunc round bitwise_not exp exp2 expm1 log log2 log10 log1p sqrt "
              "rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh erf erfinv sigmoid logical_not isnan "
              "isinf relu").split():
    _unary(_name, getattr(torch, _name))
for _name in ("silu", "mish", "hardswish", "hardsigmoid"):
    _unary(_name, getattr(F, _name))
for _name in ("alias", "clone"):
    _unary(_name, torch.clone)
for _name in ("mul bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor eq ne lt le gt ge "
              "maximum minimum remainder atan2 fmod").split():
    _binary(_name, getattr(torch, _name))
aten("pow", "self", "exponent")(lambda o, a, t: torch.pow(o["self"], o["exponent"]))


@aten("add", "self", "other")
def add(o, a, t):
    return torch.add(o["self"], o["other"], alpha=_alpha(a, t))


@aten("sub", "self", "other")
def sub(o, a, t):
    return torch.sub(o["self"], o["other"], alpha=_alpha(a, t))


def _alpha(a, t):
    alpha = number(a.get("alpha", 1.0))
    return alpha if t[0].dtype.is_floating_point else int(alpha)


@aten("div", "self", "other")
def div(o, a, t):
    return torch.div(o["self"], o["other"], rounding_mode=a.get("rounding_mode"))


@aten("gelu", "self")
def gelu(o, a, t):
    return F.gelu(o["self"], approximate=a.get("approximate", "none"))


@aten("where", "condition", "self", "other")
def where(o, a, t):
    return torch.where(o["condition"], o["self"], o["other"])


@aten("clamp", "self", "?min", "?max")
def clamp(o, a, t):
    return torch.clamp(o["self"], o["min"], o["max"])


@aten("masked_fill", "self", "mask", "value")
def masked_fill(o, a, t):
    return o["self"].masked_fill(o["mask"], o["value"])


@aten("to_copy", "self")
def to_copy(o, a, t):
    return o["self"].to(t[0].dtype)


@aten("bitcast", "self")
def bitcast(o, a, t):
    return o["self"].view(t[0].dtype)


@aten("copy", "self", "src")
def copy(o, a, t):
    return torch.clone(o["src"])


# -- creation ---------------------------------------------------------------------------------------

@aten("constant")
def constant(o, a, t):
    values = torch.tensor([number(v) for v in a["value"]["dense"]], dtype=t[0].dtype)
    splat = values.numel() == 1
    return values.reshape(()).expand(t[0].shape).clone() if splat else values.reshape(t[0].shape)


@aten("arange", "?start", "?end")
def arange(o, a, t):
    start = a.get("static_start", 0) if o["start"] is None else o["start"]
    end = a["static_end"] if o["end"] is None else o["end"]
    return torch.arange(start, end, a.get("step", 1)).to(t[0].dtype)


aten("sym_size", "self")(lambda o, a, t: o["self"].shape[a["dim"]])


# -- views ------------------------------------------------------------------------------------------

@aten("view", "self", "*size")
def view(o, a, t):
    return o["self"].reshape(mixed(a["static_size"], o["size"]))


@aten("expand", "self", "*size")
def expand(o, a, t):
    return o["self"].expand(mixed(a["static_size"], o["size"])).clone()


@aten("permute", "self")
def permute(o, a, t):
    return o["self"].permute(a["dims"]).contiguous()


@aten("transpose", "self")
def transpose(o, a, t):
    return o["self"].transpose(a["dim0"], a["dim1"]).contiguous()


@aten("unsqueeze", "self")
def unsqueeze(o, a, t):
    return o["self"].unsqueeze(a["dim"])


@aten("squeeze", "self")
def squeeze(o, a, t):
    if any(o["self"].shape[d] != 1 for d in a["dim"]):
        raise ValueError("a squeezed dim has not size 1")
    return o["self"].squeeze(tuple(a["dim"]))


aten("flip", "self")(lambda o, a, t: o["self"].flip(a["dims"]))
aten("cat", "*tensors")(lambda o, a, t: torch.cat(o["tensors"], a.get("dim", 0)))
aten("stack", "*tensors")(lambda o, a, t: torch.stack(o["tensors"], a.get("dim", 0)))
aten("tril", "self")(lambda o, a, t: torch.tril(o["self"], a.get("diagonal", 0)))
aten("triu", "self")(lambda o, a, t: torch.triu(o["self"], a.get("diagonal", 0)))


@aten("slice", "self", "?start", "?end")
def slice_(o, a, t):
    dim, n = a["dim"], o["self"].shape[a["dim"]]
    start = a.get("static_start", 0) if o["start"] is None else o["start"]
    end = a.get("static_end", n) if o["end"] is None else o["end"]
    start, end = (min(max(v + n if v < 0 else v, 0), n) for v in (start, end))
    return o["self"].index_select(dim, torch.arange(start, max(start, end), a.get("step", 1)))


@aten("select", "self", "?index")
def select(o, a, t):
    index = a["static_index"] if o["index"] is None else o["index"]
    return o["self"].select(a["dim"], index).clone()


@aten("split_with_sizes", "self", "*split_sizes")
def split_with_sizes(o, a, t):
    sizes = mixed(a["static_split_sizes"], o["split_sizes"])
    return [part.clone() for part in torch.split(o["self"], sizes, a.get("dim", 0))]


@aten("constant_pad_nd", "self")
def constant_pad_nd(o, a, t):
    return F.pad(o["self"], a["pad"], value=number(a.get("value", 0.0)))


# -- contractions -----------------------------------------------------------------------------------

@aten("linear", "input", "weight", "?bias")
def linear(o, a, t):
    return F.linear(o["input"], o["weight"], o["bias"])


@aten("addmm", "self", "mat1", "mat2")
def addmm(o, a, t):
    return torch.addmm(o["self"], o["mat1"], o["mat2"], beta=number(a.get("beta", 1.0)),
                       alpha=number(a.get("alpha", 1.0)))


aten("tensordot", "self", "other")(
    lambda o, a, t: torch.tensordot(o["self"], o["other"], (a["dims_self"], a["dims_other"])))
_binary("matmul", torch.matmul)
aten("mm", "self", "mat2")(lambda o, a, t: torch.mm(o["self"], o["mat2"]))
aten("bmm", "self", "mat2")(lambda o, a, t: torch.bmm(o["self"], o["mat2"]))


@aten("baddbmm", "self", "batch1", "batch2")
def baddbmm(o, a, t):
    return torch.baddbmm(o["self"], o["batch1"], o["batch2"], beta=number(a.get("beta", 1.0)),
                         alpha=number(a.get("alpha", 1.0)))


# -- reductions and norms ---------------------------------------------------------------------------

def _dims(o, a):
    """No list, or an empty one: all dims."""
    return a.get("dim") or list(range(o["self"].dim()))


@aten("sum", "self")
def sum_(o, a, t):
    return torch.sum(o["self"], dim=_dims(o, a), keepdim="keepdim" in a, dtype=t[0].dtype)


@aten("mean", "self")
def mean(o, a, t):
    return torch.mean(o["self"], dim=_dims(o, a), keepdim="keepdim" in a, dtype=t[0].dtype)


@aten("var", "self")
def var(o, a, t):
    return torch.var(o["self"], dim=_dims(o, a), correction=number(a.get("correction", 1.0)),
                     keepdim="keepdim" in a)


def _extreme(function, worst):
    """The reduction over nothing is the identity: what a rank with an empty shard contributes."""
    def run(o, a, t):
        x, dims = o["self"], _dims(o, a)
        if any(x.shape[d] == 0 for d in dims):
            shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
            if "keepdim" not in a:
                shape = [n for d, n in enumerate(x.shape) if d not in dims]
            return torch.full(shape, worst(x.dtype), dtype=x.dtype)
        return function(x, dim=dims, keepdim="keepdim" in a)
    return run


def _lowest(dtype):
    return float("-inf") if dtype.is_floating_point else dtype != torch.bool and torch.iinfo(dtype).min


def _highest(dtype):
    return float("inf") if dtype.is_floating_point else dtype == torch.bool or torch.iinfo(dtype).max


aten("amax", "self")(_extreme(torch.amax, _lowest))
aten("amin", "self")(_extreme(torch.amin, _highest))


@aten("prod", "self")
def prod(o, a, t):
    result = o["self"].to(t[0].dtype)
    for d in sorted(_dims(o, a), reverse=True):
        result = result.prod(d, keepdim="keepdim" in a)
    return result


aten("any", "self")(lambda o, a, t: torch.any(o["self"], dim=_dims(o, a), keepdim="keepdim" in a))
aten("all", "self")(lambda o, a, t: torch.all(o["self"], dim=_dims(o, a), keepdim="keepdim" in a))


@aten("logsumexp", "self")
def logsumexp(o, a, t):
    return torch.logsumexp(o["self"].to(t[0].dtype), dim=_dims(o, a), keepdim="keepdim" in a)


def _arg(function):
    def run(o, a, t):
        result = function(o["self"], dim=a.get("dim"), keepdim="keepdim" in a and "dim" in a)
        return result.reshape([1] * o["self"].dim()) if "keepdim" in a and "dim" not in a else result
    return run


aten("argmax", "self")(_arg(torch.argmax))
aten("argmin", "self")(_arg(torch.argmin))


@aten("linalg_vector_norm", "self")
def vector_norm(o, a, t):
    return torch.linalg.vector_norm(o["self"], ord=number(a.get("ord", 2.0)), dim=_dims(o, a),
                                    keepdim="keepdim" in a)


@aten("cumsum", "self")
def cumsum(o, a, t):
    return torch.cumsum(o["self"], a["dim"], dtype=t[0].dtype)


@aten("softmax", "self")
def softmax(o, a, t):
    return torch.softmax(o["self"], a["dim"], dtype=t[0].dtype)


@aten("log_softmax", "self")
def log_softmax(o, a, t):
    return torch.log_softmax(o["self"], a["dim"], dtype=t[0].dtype)


@aten("layer_norm", "input", "?weight", "?bias")
def layer_norm(o, a, t):
    return F.layer_norm(o["input"], a["normalized_shape"], o["weight"], o["bias"], number(a.get("eps", 1e-5)))


@aten("rms_norm", "input", "?weight")
def rms_norm(o, a, t):
    eps = number(a["eps"]) if "eps" in a else None
    return F.rms_norm(o["input"], a["normalized_shape"], o["weight"], eps)


# -- indexing ---------------------------------------------------------------------------------------

@aten("group_norm", "input", "?weight", "?bias")
def group_norm(o, a, t):
    return torch.group_norm(o["input"], a["num_groups"], o["weight"], o["bias"], number(a.get("eps", 1e-5)))


@aten("embedding", "weight", "indices")
def embedding(o, a, t):
    return F.embedding(o["indices"], o["weight"])


@aten("gather", "self", "index")
def gather(o, a, t):
    return torch.gather(o["self"], a["dim"], o["index"])


@aten("index_select", "self", "index")
def index_select(o, a, t):
    return torch.index_select(o["self"], a["dim"], o["index"])


@aten("index", "self", "*indices")
def index(o, a, t):
    at = dict(zip(a["indices_at"], o["indices"]))
    # Not Python's indexing: that takes a 0-dim index out first, and a gap between indices may close.
    return torch.ops.aten.index(o["self"], [at.get(d) for d in range(o["self"].dim())])


@aten("batch_norm", "input", "?weight", "?bias", "running_mean", "running_var")
def batch_norm(o, a, t):
    return F.batch_norm(o["input"], o["running_mean"], o["running_var"], o["weight"], o["bias"], False, 0.0,
                        number(a["eps"]))
