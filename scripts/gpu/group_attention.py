# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: its time over that of the fastest of PyTorch's implementations that takes the case. A backward's time is that of
forward and backward, less the forward's."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import measure

BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH")


def run(it):
    torch.backends.cuda.matmul.allow_tf32 = False
    ops = it.chosen("attention")
    forwards = {op.name: op for op in ops if not op.backward}
    it.each(ops, lambda op: attention(it, op, forwards.get(op.name.replace("backward", "forward"))))


def backends():
    return [(name, getattr(SDPBackend, name)) for name in BACKENDS if hasattr(SDPBackend, name)]


def possible(function):
    """Whether the implementation takes the case."""
    try:
        function()
        torch.cuda.synchronize()
        return True
    except RuntimeError:
        return False


def attention(it, op, forward):
    q, k, v = op.operands(it.place)
    if op.backward:
        return backward(it, op, forward, q, k, v)
    found = {}
    with it.open(op.name) as program, torch.no_grad():
        call = program.prepare({"x0": q, "x1": k, "x2": v})
        for name, backend in backends():
            with sdpa_kernel(backend):
                if not possible(lambda: op.call(q, k, v)):
                    continue
                found[name] = it.measure(call, lambda: op.call(q, k, v), seconds=0.4)
        error = measure.scaled_error(call.outputs["y0"], op.call(q.float(), k.float(), v.float()))
    compare(it, op, found, error)


def compare(it, op, found, error):
    """Of each implementation: our time and its own. The figure is against the fastest."""
    name, (ours, best) = min(found.items(), key=lambda item: item[1][1])
    it.report.add(f"{op.name}: rate", op.flops / ours * 1e-12, unit="TFLOP/s", note=f"{name} {op.flops / best * 1e-12:.4g}")
    it.report.add(f"{op.name}: over the best", best / ours, op.limit, note=name)
    it.report.add(f"{op.name}: error", error, 1e-4 if op.dtype == torch.float32 else 2e-2, measure.AT_MOST)


def backward(it, op, forward, q, k, v):
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    out = op.call(q, k, v)
    cotangent = torch.randn_like(out)
    found = {}
    with it.open(op.name) as both, it.open(forward.name) as first:
        inputs = {"x0": q.detach(), "x1": k.detach(), "x2": v.detach()}
        whole = both.prepare(inputs | {"cotangent_y0": cotangent})
        part = first.prepare(inputs)
        for name, backend in backends():
            with sdpa_kernel(backend):
                def step():
                    torch.autograd.grad(op.call(q, k, v), (q, k, v), cotangent)

                def ahead():
                    return op.call(q, k, v)
                if not possible(step):
                    continue
                ours, ours_ahead, torchs, torchs_ahead = it.measure(whole, part, step, ahead, seconds=0.6)
                found[name] = (ours - ours_ahead, torchs - torchs_ahead)
        wide = [t.detach().float().requires_grad_() for t in (q, k, v)]
        wants = torch.autograd.grad(scaled_dot_product_attention(*wide, is_causal=True), wide, cotangent.float())
        error = max(measure.scaled_error(whole.outputs[f"x{i}"], w) for i, w in enumerate(wants))
    compare(it, op, found, error)
