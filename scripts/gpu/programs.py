# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is packed and measured: ops as text, and models. Both `pack` and `run` read this list, so that a program and what it
is compared with are the same on both machines."""
import dataclasses
import itertools
from typing import Callable

import torch
from torch.nn import functional as F

import networks

F32, BF16, F16, I64 = torch.float32, torch.bfloat16, torch.float16, torch.int64
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64"}


def mlir_type(tensor):
    return f"tensor<{''.join(f'{n}x' for n in tensor.shape)}{NAMES[tensor.dtype]}>"


@dataclasses.dataclass
class Op:
    """One op of the aten dialect. `text` has {0}, {1} ... for operands, `call` is the same in PyTorch; `shapes` are those of
    the operands. With `backward`, the program computes cotangents of all operands too."""
    name: str
    group: str
    shapes: list
    text: str
    call: Callable
    dtype: torch.dtype = F32
    backward: bool = False
    flops: float = 0.0
    limit: float = 0.0
    chain: int = 1  # so many ops, each with the result of the one before as its first operand
    mesh: str = "r=1"
    options: tuple = ()
    positions: dict = dataclasses.field(default_factory=dict)  # operands of i64, by number: each is below this

    def operands(self, device="cpu", seed=0):
        if device == "meta":
            return [torch.empty(s, dtype=I64 if i in self.positions else self.dtype, device="meta") for i, s in enumerate(self.shapes)]
        generator = torch.Generator(device=device).manual_seed(seed)
        return [torch.randint(self.positions[i], s, device=device, generator=generator) if i in self.positions else
                torch.randn(s, dtype=F32, device=device, generator=generator).to(self.dtype) for i, s in enumerate(self.shapes)]

    @property
    def results(self):
        """Meta tensors of what the op returns; of a chain, its last."""
        out = self.call(*self.operands("meta"))
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def mlir(self):
        operands, results = self.operands("meta"), self.results
        arguments = ", ".join(f'%x{i}: {mlir_type(t)} {{dist.kind = "input", dist.name = "x{i}"}}'
                              for i, t in enumerate(operands))
        types = ", ".join(map(mlir_type, results))
        kinds = ", ".join(f'{mlir_type(t)} {{dist.kind = "output", dist.name = "y{i}"}}' for i, t in enumerate(results))
        lines, names = [], [f"%x{i}" for i in range(len(operands))]
        form = ", ".join(map(mlir_type, operands))
        for i, text in enumerate(self.text.split(" ; ")):
            lines.append(f'%y{i} = {text.format(*names)} : ({form}) -> {mlir_type(results[i])} loc("{self.name}")')
        for i in range(1, self.chain):
            text = self.text.format(f"%y{i - 1}", *names[1:])
            lines.append(f'%y{i} = {text} : ({form}) -> {mlir_type(results[0])} loc("{self.name}.{i}")')
        first = self.chain - 1
        values = ", ".join(f"%y{i}" for i in range(first, first + len(results)))
        body = "\n  ".join(lines)
        return f"func.func @forward({arguments}) -> ({kinds}) {{\n  {body}\n  return {values} : {types}\n}}\n"

    @property
    def bytes(self):
        """What is read and written once."""
        return sum(t.numel() * t.element_size() for t in [*self.operands("meta"), *self.results])


@dataclasses.dataclass
class Model:
    """A model; `gradients` names its loss. `train` has what the plan's section `train` says, for a model that is trained: RATE is its learning
    rate then. `limits` are those of the time over eager PyTorch's and over torch.compile's."""
    name: str
    make: Callable  # sizes -> module
    inputs: Callable  # device -> tensors by name
    sizes: dict = dataclasses.field(default_factory=dict)
    dtype: torch.dtype = F32
    gradients: str = ""
    train: tuple = ()
    limits: tuple = ()
    mesh: str = "r=1"
    options: tuple = ()
    group: str = "models"

    def module(self, device="cpu"):
        """With weights by seed; on the device `meta`, without any."""
        if device == "meta":
            with torch.device("meta"):
                return self.make(**self.sizes).to(self.dtype).eval()
        with torch.device(device):
            module = self.make(**self.sizes)
        return networks.seeded(module).to(self.dtype)

    @property
    def entry(self):
        """The entry that is measured; None: the only one."""
        return "train_step" if self.train else "gradients" if self.gradients else None

    @property
    def compile_options(self):
        gradients = ("--gradients", self.gradients) if self.gradients else ()
        return (*self.options, *gradients, *(part for key in self.train for part in ("--train", key)))

    def all_inputs(self, device):
        inputs = self.inputs() | ({"learning_rate": torch.tensor(RATE, dtype=torch.float64)} if self.train else {})
        return {name: t.to(device) for name, t in inputs.items()}

    def optimizer(self, module):
        """PyTorch's, of `ADAMW`, in the form that takes the least time."""
        return torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=0.1, fused=True)

    @property
    def tolerance(self):
        return 1e-4 if self.dtype == F32 else 2e-2


@dataclasses.dataclass
class Buckets:
    """A program of several ranks that moves buckets of so many bytes: all-reduces, all-gathers and reduce-scatters, one after
    the other. The bytes are those of the whole bucket."""
    name: str
    world: int
    sizes: tuple
    mesh: str = ""  # it is in the text
    options: tuple = ("--keep-collectives",)
    group: str = "gpus"
    backward: bool = False

    KINDS = ("all_reduce", "all_gather", "reduce_scatter")

    def cases(self):
        """(name, kind, elements of the bucket), in the order of arguments x0, x1 ... and results y0, y1 ..."""
        return [(f"{kind}_{size}", kind, size // 4) for size in self.sizes for kind in self.KINDS]

    def mlir(self):
        mesh = f'#dist.mesh<["r" = {self.world}]>'
        layouts = {"all_reduce": ("P(sum)", "R"), "all_gather": ("S(0)", "R"), "reduce_scatter": ("P(sum)", "S(0)")}
        takes, gives, types, lines = [], [], [], []
        for i, (name, kind, count) in enumerate(self.cases()):
            source, target = (f"tensor<{count}xf32, #dist.layout<{mesh}, [{place}]>>" for place in layouts[kind])
            takes.append(f'%x{i}: {source} {{dist.name = "x{i}", dist.kind = "input"}}')
            gives.append(f'{target} {{dist.name = "y{i}"}}')
            types.append(target)
            lines.append(f'  %y{i} = dist.redistribute %x{i} : {source} to {target} loc("{name}")')
        results = ", ".join(f"%y{i}" for i in range(len(types)))
        body = "\n".join(lines)
        return (f"module attributes {{dist.mesh = {mesh}}} {{\nfunc.func @forward({', '.join(takes)})\n    -> ({', '.join(gives)}) "
                f"{{\n{body}\n  return {results} : {', '.join(types)}\n}}\n}}\n")


ADAMW, RATE = ("loss=0", "optimizer=adamw", "optimizer.weight_decay=0.1"), 1e-3
SMALL_GPT2 = dict(layers=2, width=64, heads=4, vocabulary=250, positions=32)
SMALL_LLAMA = dict(layers=2, width=64, hidden=176, heads=4, kv_heads=2, vocabulary=256)
SMALL_MINILM = dict(layers=2, width=48, hidden=96, heads=4, vocabulary=100, positions=32)


def tokens(end, *shape):
    return lambda: {"ids": networks.ids(end, *shape)}


def sentences(end, *shape):
    def make():
        lengths = networks.ids(shape[1], shape[0], 1, seed=1) + 1
        return {"ids": networks.ids(end, *shape), "mask": (torch.arange(shape[1]) < lengths).long()}
    return make


def cached(dtype, layers, heads, size, batch, past, vocabulary):
    def make():
        generator = torch.Generator().manual_seed(2)
        cache = torch.randn(layers, 2, batch, heads, past, size, generator=generator).to(dtype)
        return {"ids": networks.ids(vocabulary, batch, 1), "cache": cache}
    return make


def models(small):
    for mesh, place in (("r=1", ()), ("dp=2", ("--place", "input:ids=dp:S(0)")), ("dp=4", ("--place", "input:ids=dp:S(0)"))):
        ranks = mesh.split("=")[1]
        group = "answers" if ranks == "1" else "ranks"
        yield Model(f"small_gpt2_{ranks}", networks.Gpt2, tokens(250, 4, 16), SMALL_GPT2, mesh=mesh,
                    options=place, group=group)
        yield Model(f"small_gpt2_gradients_{ranks}", networks.Gpt2Loss, tokens(250, 4, 16), SMALL_GPT2, gradients="0",
                    mesh=mesh, options=place, group=group)
    yield Model("small_gpt2_training", networks.Gpt2Loss, tokens(250, 4, 16), SMALL_GPT2, train=ADAMW, group="answers")
    yield Model("small_llama", networks.Llama, tokens(256, 3, 17), SMALL_LLAMA, group="answers")
    yield Model("small_llama_bf16", networks.Llama, tokens(256, 3, 17), SMALL_LLAMA, BF16, group="answers")
    yield Model("small_minilm", networks.MiniLm, sentences(100, 3, 11), SMALL_MINILM, group="answers")
    if small:
        gpt2, llama, minilm, context = SMALL_GPT2, SMALL_LLAMA, SMALL_MINILM, 32
        shape, heads, words = (2, 31), (2, 4, 16), (3, 11)
    else:
        gpt2, llama, minilm, context = {}, {}, {}, 1024
        shape, heads, words = (8, 1024), (12, 12, 64), (8, 64)
    end, llama_end, minilm_end = (sizes.get("vocabulary", most) for sizes, most in ((gpt2, 50257), (llama, 128256), (minilm, 30522)))
    short = (shape[0], min(shape[1], 128))
    yield Model("gpt2", networks.Gpt2, tokens(end, *short), gpt2, group="answers")
    yield Model("gpt2_bf16", networks.Gpt2, tokens(end, *short), gpt2, BF16, group="answers")
    yield Model("gpt2_gradients", networks.Gpt2Loss, tokens(end, *short), gpt2, gradients="0", group="answers")
    yield Model("minilm", networks.MiniLm, sentences(minilm_end, *words), minilm, group="answers")
    yield Model("minilm_bf16", networks.MiniLm, sentences(minilm_end, *words), minilm, BF16, group="answers")
    yield Model("llama_1b", networks.Llama, tokens(llama_end, 1, short[1]), llama, group="answers")
    yield Model("llama_1b_bf16", networks.Llama, tokens(llama_end, 1, short[1]), llama, BF16, group="answers")
    yield Model("forward_gpt2_f32", networks.Gpt2, tokens(end, *shape), gpt2, limits=(0.9, 1.0))
    yield Model("forward_gpt2_bf16", networks.Gpt2, tokens(end, *shape), gpt2, BF16, limits=(0.9, 1.0))
    yield Model("forward_llama_bf16", networks.Llama, tokens(llama_end, *shape), llama, BF16, limits=(0.9, 1.0))
    yield Model("decode_gpt2_bf16", networks.Gpt2Decode, cached(BF16, *heads, 8, context - 1, end), gpt2, BF16, limits=(0.5, 1.0))
    yield Model("training_gpt2_f32", networks.Gpt2Loss, tokens(end, *shape), gpt2, gradients="0", limits=(0.9, 1.0))
    yield Model("training_step_gpt2_f32", networks.Gpt2Loss, tokens(end, *shape), gpt2, train=ADAMW, limits=(0.9, 1.0))


def products(small):
    """x y^T: those of GPT-2 and of Llama 1B over 8 x 1024 tokens, and some for one token a sequence."""
    shapes = ((8192, 2304, 768), (8192, 3072, 768), (8192, 768, 3072), (8192, 2048, 2048), (8192, 8192, 2048),
              (8192, 2048, 8192), (8, 8192, 2048))
    for dtype in (F32, BF16, F16):
        for m, n, k in ((33, 24, 40),) if small else shapes:
            yield Op(f"gemm_{NAMES[dtype]}_{m}x{n}x{k}", "gemm", [[m, k], [n, k]], "aten.linear {0}, {1}", F.linear, dtype,
                     flops=2.0 * m * n * k, limit=0.95)
    m, n = (33, 24) if small else (8192, 2048)
    yield Op("gemm_bias", "gemm", [[m, n], [n, n], [n]], "aten.linear {0}, {1}, {2}", F.linear, BF16, flops=2.0 * m * n * n,
             limit=0.95)
    b, m, k = (3, 32, 16) if small else (96, 1024, 64)
    yield Op("gemm_batched", "gemm", [[b, m, k], [b, k, m]], "aten.bmm {0}, {1}", torch.bmm, BF16, flops=2.0 * b * m * m * k,
             limit=0.95)


def rows(small):
    """Of 256 MiB and more."""
    def op(name, shapes, text, call, dtype=F32, limit=0.85):
        return Op(f"rows_{name}", "rows", shapes, text, call, dtype, limit=limit)

    for dtype, n in ((F32, 96 if small else 4096), (BF16, 128 if small else 8192)):
        kind, m, shape = NAMES[dtype], 37 if small else 16384, [n]
        heads = [2, 8, 6, n // 32] if small else [8, 1024, 64, n // 32]
        yield op(f"add_{kind}", [[m, n], [m, n]], "aten.add {0}, {1}", torch.add, dtype)
        yield op(f"gelu_{kind}", [[m, n]], "aten.gelu {0}", F.gelu, dtype)
        yield op(f"softmax_{kind}", [[m, n]], "aten.softmax {0} dim 1", lambda x: x.softmax(1), dtype)
        yield op(f"layer_norm_{kind}", [[m, n], shape, shape], f"aten.layer_norm {{0}} {shape} weight({{1}}) bias({{2}})",
                 lambda x, w, b: F.layer_norm(x, w.shape, w, b), dtype)
        yield op(f"rms_norm_{kind}", [[m, n], shape], f"aten.rms_norm {{0}} {shape} weight({{1}}) {{{{eps = 1.0e-5}}}}",
                 lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), dtype)
        yield op(f"sum_{kind}", [[m, n]], "aten.sum {0} dim [1]", lambda x: x.sum(1), dtype)
        yield op(f"sum_of_columns_{kind}", [[m, n]], "aten.sum {0} dim [0]", lambda x: x.sum(0), dtype)
        yield op(f"transpose_{kind}", [[m, n]], "aten.permute {0} [1, 0]", lambda x: x.permute(1, 0), dtype, 0.75)
        yield op(f"heads_{kind}", [heads], "aten.permute {0} [0, 2, 1, 3]", lambda x: x.permute(0, 2, 1, 3), dtype, 0.75)
    yield op("vocabulary", [[2 if small else 1400, 50257]], "aten.log_softmax {0} dim 1", lambda x: x.log_softmax(1))
    width = 12 if small else 1024
    parts = [[n // 1000 + 1 if small else n, width] for n in (16384, 50257, 3, 1000, 7777)]
    yield op("pack", parts, "aten.cat " + ", ".join("{%d}" % i for i in range(len(parts))) + " dim 0",
             lambda *x: torch.cat(x))
    ends = (0, 40, 43, 65) if small else (0, 40000, 40003, 65536)
    yield op("unpack", [[ends[-1], width]],
             " ; ".join(f"aten.slice {{0}} dim 0 [{a} : {b} : 1]" for a, b in itertools.pairwise(ends)),
             lambda x: [x[a:b] for a, b in itertools.pairwise(ends)])


CHAINS = (50, 150)


def chains():
    """Small products, which are not fused, each with the one before: two programs, whose difference is what a kernel more costs."""
    for count in CHAINS:
        yield Op(f"chain_{count}", "chains", [[16, 16], [16, 16]], "aten.mm {0}, {1}", torch.mm, chain=count)


def attentions(small):
    """Causal, so half of the products count: two of them forward, five backward."""
    for dtype, size, heads in ((BF16, 64, 12), (BF16, 128, 16), (F16, 64, 12), (F32, 64, 12)):
        for backward in (False, True):
            shape, kind = [2, 2, 40, 16] if small else [8, heads, 1024, size], "backward" if backward else "forward"
            yield Op(f"attention_{kind}_{NAMES[dtype]}_{size}", "attention", [shape] * 3,
                     "aten.scaled_dot_product_attention {0}, {1}, {2} causal",
                     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), dtype, backward=backward,
                     flops=(5.0 if backward else 2.0) * shape[0] * shape[1] * shape[2] ** 2 * shape[3], limit=0.7 if backward else 0.8)


def checked():
    """Small ones for the sanitizer: the kinds of kernels, by how threads divide the work and what they share."""
    def op(name, shapes, text, call, **positions):
        return Op(f"checked_{name}", "sanitize", shapes, text, call, **positions)

    yield op("pointwise", [[37, 129], [129]], "aten.add {0}, {1}", torch.add)
    yield op("softmax", [[33, 517]], "aten.softmax {0} dim 1", lambda x: x.softmax(1))
    yield op("passes", [[2, 50257]], "aten.log_softmax {0} dim 1", lambda x: x.log_softmax(1))
    yield op("argmax", [[5, 3001]], "aten.argmax {0} dim 1", lambda x: x.argmax(1))
    yield op("positions", [[50, 37], [9, 7]], "aten.embedding {0} at {1}", lambda w, i: F.embedding(i, w), positions={1: 50})
    yield op("scatter", [[50, 37], [90], [90, 37]], "aten.index_put {0}[{1}] of {2} accumulate",
             lambda x, i, v: x.index_put((i,), v, accumulate=True), positions={1: 50})
    yield op("columns", [[333, 65]], "aten.sum {0} dim [0]", lambda x: x.sum(0))
    yield op("transpose", [[65, 130]], "aten.permute {0} [1, 0]", lambda x: x.permute(1, 0))
    yield op("cumsum", [[9, 300]], "aten.cumsum {0} dim 1", lambda x: x.cumsum(1))
    yield op("linear", [[33, 65], [17, 65]], "aten.linear {0}, {1}", F.linear)
    yield op("attention", [[2, 3, 70, 40]] * 3, "aten.scaled_dot_product_attention {0}, {1}, {2} causal",
             lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))


def buckets(small):
    for world in (2,) if small else (2, 4, 8):
        sizes = (1 << 12, 3 << 12) if small else tuple(n << 20 for n in (1, 4, 16, 64, 256))
        yield Buckets(f"buckets_{world}", world, sizes)


def ops(small=False):
    yield from products(small)
    yield from rows(small)
    yield from chains()
    yield from attentions(small)
    yield from checked()


def everything(small=False):
    """`small`: with sizes that the emulated device runs in a moment."""
    return [*models(small), *ops(small), *buckets(small)]
