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


for _name in ("abs neg relu silu exp log rsqrt sqrt tanh sin cos sigmoid erf reciprocal floor ceil "
              "bitwise_not logical_not log1p expm1 sign isnan isinf square round trunc").split():
    _unary(_name, getattr(torch, _name, None) or getattr(F, _name))
for _name in ("alias", "clone", "detach"):
    _unary(_name, torch.clone)
for _name in ("mul bitwise_and bitwise_or bitwise_xor logical_and logical_or eq ne lt le gt ge "
              "maximum minimum pow remainder atan2 fmod").split():
    _binary(_name, getattr(torch, _name))


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


# -- creation ---------------------------------------------------------------------------------------

@aten("constant")
def constant(o, a, t):
    data, shape = a["value"]["dense"], t[0].shape
    values = torch.tensor([number(v) for v in data], dtype=t[0].dtype)
    return values.reshape(shape) if values.numel() > 1 or 0 in shape else values.reshape(()).expand(shape).clone()


@aten("full", "*size", "fill_value")
def full(o, a, t):
    return torch.full(mixed(a["static_size"], o["size"]), o["fill_value"].item(), dtype=t[0].dtype)


@aten("full_like", "self", "fill_value")
def full_like(o, a, t):
    return torch.full_like(o["self"], o["fill_value"].item(), dtype=t[0].dtype)


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
    return o["self"].squeeze(tuple(a["dims"]))


@aten("cat", "*tensors")
def cat(o, a, t):
    return torch.cat(o["tensors"], a["dim"])


@aten("stack", "*tensors")
def stack(o, a, t):
    return torch.stack(o["tensors"], a["dim"])


@aten("slice", "self", "*start", "*end")
def slice_(o, a, t):
    (start,), (end,) = mixed([a["static_start"]], o["start"]), mixed([a["static_end"]], o["end"])
    dim, n = a["dim"], o["self"].shape[a["dim"]]
    start, end = (min(max(v + n if v < 0 else v, 0), n) for v in (start, end))
    step = a.get("step", 1)
    return o["self"].index_select(dim, torch.arange(start, max(start, end), step))


@aten("select", "self", "*index")
def select(o, a, t):
    return o["self"].select(a["dim"], mixed([a["static_index"]], o["index"])[0]).clone()


# -- contractions -----------------------------------------------------------------------------------

@aten("linear", "input", "weight", "?bias")
def linear(o, a, t):
    return F.linear(o["input"], o["weight"], o["bias"])


@aten("addmm", "self", "mat1", "mat2")
def addmm(o, a, t):
    return torch.addmm(o["self"], o["mat1"], o["mat2"], beta=number(a.get("beta", 1.0)),
                       alpha=number(a.get("alpha", 1.0)))


_binary("matmul", torch.matmul)
_binary("mm", torch.mm)
aten("bmm", "self", "mat2")(lambda o, a, t: torch.bmm(o["self"], o["mat2"]))


@aten("scaled_dot_product_attention", "query", "key", "value", "?attn_mask")
def attention(o, a, t):
    scale = number(a["scale"]) if "scale" in a else None
    return F.scaled_dot_product_attention(
        o["query"], o["key"], o["value"], o["attn_mask"], is_causal="is_causal" in a, scale=scale,
        enable_gqa="enable_gqa" in a)


# -- reductions and norms ---------------------------------------------------------------------------

def _dims(o, a):
    return a["dims"] if a.get("dims") is not None else list(range(o["self"].dim()))


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


@aten("argmax", "self")
def argmax(o, a, t):
    return torch.argmax(o["self"], dim=a.get("dim"), keepdim="keepdim" in a)


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

@aten("embedding", "weight", "indices")
def embedding(o, a, t):
    return F.embedding(o["indices"], o["weight"])


@aten("gather", "self", "index")
def gather(o, a, t):
    return torch.gather(o["self"], a["dim"], o["index"])


@aten("index_select", "self", "index")
def index_select(o, a, t):
    return torch.index_select(o["self"], a["dim"], o["index"])
