# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is packed and measured: ops as text, and models. Both `pack` and `run` read this list, so that a program and what it
is compared with are the same on both machines."""
import dataclasses
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
    small: bool = False  # runs on the emulated device in a moment too
    mesh: str = "r=1"
    options: tuple = ()

    def operands(self, device="cpu", seed=0):
        generator = torch.Generator(device="cpu" if device == "meta" else device).manual_seed(seed)
        if device == "meta":
            return [torch.empty(s, dtype=self.dtype, device="meta") for s in self.shapes]
        return [torch.randn(s, dtype=F32, device=device, generator=generator).to(self.dtype) for s in self.shapes]

    @property
    def results(self):
        """Meta tensors of what the op returns."""
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
        values = ", ".join(f"%y{i}" for i in range(len(results)))
        body = "\n  ".join(lines)
        return f"func.func @forward({arguments}) -> ({kinds}) {{\n  {body}\n  return {values} : {types}\n}}\n"

    @property
    def bytes(self):
        """What is read and written once."""
        return sum(t.numel() * t.element_size() for t in [*self.operands("meta"), *self.results])


@dataclasses.dataclass
class Model:
    """A model; `gradients` names its loss. `limits` are those of the time over eager PyTorch's and over torch.compile's."""
    name: str
    make: Callable  # sizes -> module
    inputs: Callable  # device -> tensors by name
    sizes: dict = dataclasses.field(default_factory=dict)
    dtype: torch.dtype = F32
    gradients: str = ""
    limits: tuple = ()
    small: bool = False
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
    def tolerance(self):
        return 1e-4 if self.dtype == F32 else 2e-2


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


def models():
    for mesh, place in (("r=1", ()), ("dp=2", ("--place", "input:ids=dp:S(0)")), ("dp=4", ("--place", "input:ids=dp:S(0)"))):
        ranks = mesh.split("=")[1]
        group = "answers" if ranks == "1" else "ranks"
        yield Model(f"small_gpt2_{ranks}", networks.Gpt2, tokens(250, 4, 16), SMALL_GPT2, small=True, mesh=mesh,
                    options=place, group=group)
        yield Model(f"small_gpt2_gradients_{ranks}", networks.Gpt2Loss, tokens(250, 4, 16), SMALL_GPT2, gradients="0",
                    small=True, mesh=mesh, options=place, group=group)
    yield Model("small_llama", networks.Llama, tokens(256, 3, 17), SMALL_LLAMA, small=True, group="answers")
    yield Model("small_llama_bf16", networks.Llama, tokens(256, 3, 17), SMALL_LLAMA, BF16, small=True, group="answers")
    yield Model("small_minilm", networks.MiniLm, sentences(100, 3, 11), SMALL_MINILM, small=True, group="answers")
    yield Model("gpt2", networks.Gpt2, tokens(50257, 2, 128), group="answers")
    yield Model("minilm", networks.MiniLm, sentences(30522, 8, 64), group="answers")
    yield Model("llama_1b", networks.Llama, tokens(128256, 1, 128), dtype=BF16, group="answers")
    yield Model("forward_gpt2_f32", networks.Gpt2, tokens(50257, 8, 1024), limits=(0.9, 1.0))
    yield Model("forward_gpt2_bf16", networks.Gpt2, tokens(50257, 8, 1024), dtype=BF16, limits=(0.9, 1.0))
    yield Model("forward_llama_bf16", networks.Llama, tokens(128256, 8, 1024), dtype=BF16, limits=(0.9, 1.0))
    yield Model("decode_gpt2_bf16", networks.Gpt2Decode, cached(BF16, 12, 12, 64, 8, 1023, 50257), dtype=BF16,
                limits=(0.5, 1.0))
    yield Model("training_gpt2_f32", networks.Gpt2Loss, tokens(50257, 8, 1024), gradients="0", limits=(0.9, 1.0))


def products():
    """x y^T: those of GPT-2 and of Llama 1B over 8 x 1024 tokens, and some for one token a sequence."""
    for dtype in (F32, BF16, F16):
        for m, n, k in ((8192, 2304, 768), (8192, 3072, 768), (8192, 768, 3072), (8192, 2048, 2048), (8192, 8192, 2048),
                        (8192, 2048, 8192), (8, 8192, 2048)):
            yield Op(f"gemm_{NAMES[dtype]}_{m}x{n}x{k}", "gemm", [[m, k], [n, k]], "aten.linear {0}, {1}", F.linear, dtype,
                     flops=2.0 * m * n * k, limit=0.95)
    yield Op("gemm_bias", "gemm", [[8192, 2048], [2048, 2048], [2048]], "aten.linear {0}, {1}, {2}", F.linear, BF16,
             flops=2.0 * 8192 * 2048 * 2048, limit=0.95)
    yield Op("gemm_batched", "gemm", [[96, 1024, 64], [96, 64, 1024]], "aten.bmm {0}, {1}", torch.bmm, BF16,
             flops=2.0 * 96 * 1024 * 1024 * 64, limit=0.95)


def rows():
    """Of 256 MiB and more."""
    def op(name, shapes, text, call, dtype=F32, limit=0.85):
        return Op(f"rows_{name}", "rows", shapes, text, call, dtype, limit=limit)

    for dtype, n in ((F32, 4096), (BF16, 8192)):
        kind, m, shape = NAMES[dtype], 16384, [n]
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
        yield op(f"heads_{kind}", [[8, 1024, 64, n // 32]], "aten.permute {0} [0, 2, 1, 3]", lambda x: x.permute(0, 2, 1, 3),
                 dtype, 0.75)
    yield op("vocabulary", [[1400, 50257]], "aten.log_softmax {0} dim 1", lambda x: x.log_softmax(1))
    parts = [[n, 1024] for n in (16384, 50257, 3, 1000, 7777)]
    yield op("pack", parts, "aten.cat " + ", ".join("{%d}" % i for i in range(len(parts))) + " dim 0",
             lambda *x: torch.cat(x))
    yield op("unpack", [[65536, 1024]],
             " ; ".join(f"aten.slice {{0}} dim 0 [{a} : {b} : 1]" for a, b in ((0, 40000), (40000, 40003), (40003, 65536))),
             lambda x: [x[0:40000], x[40000:40003], x[40003:65536]])


def attentions():
    for dtype, size, heads in ((BF16, 64, 12), (BF16, 128, 16), (F16, 64, 12), (F32, 64, 12)):
        for backward in (False, True):
            shape, kind = [8, heads, 1024, size], "backward" if backward else "forward"
            yield Op(f"attention_{kind}_{NAMES[dtype]}_{size}", "attention", [shape] * 3,
                     "aten.scaled_dot_product_attention {0}, {1}, {2} causal",
                     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), dtype, backward=backward,
                     flops=(7.0 if backward else 2.0) * 8 * heads * 1024 * 1024 * size, limit=0.7 if backward else 0.8)


def checked():
    """Small ones for the sanitizer: a kernel of each kind."""
    def op(name, shapes, text, call):
        return Op(f"checked_{name}", "sanitize", shapes, text, call, small=True)

    yield op("pointwise", [[37, 129], [129]], "aten.add {0}, {1}", torch.add)
    yield op("softmax", [[33, 517]], "aten.softmax {0} dim 1", lambda x: x.softmax(1))
    yield op("columns", [[333, 65]], "aten.sum {0} dim [0]", lambda x: x.sum(0))
    yield op("transpose", [[65, 130]], "aten.permute {0} [1, 0]", lambda x: x.permute(1, 0))
    yield op("cumsum", [[9, 300]], "aten.cumsum {0} dim 1", lambda x: x.cumsum(1))
    yield op("linear", [[33, 65], [17, 65]], "aten.linear {0}, {1}", F.linear)
    yield op("attention", [[2, 3, 70, 40]] * 3, "aten.scaled_dot_product_attention {0}, {1}, {2} causal",
             lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))


def ops():
    yield from products()
    yield from rows()
    yield from attentions()
    yield from checked()


def everything(small=False):
    return [p for p in [*models(), *ops()] if p.small or not small]
