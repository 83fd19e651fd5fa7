# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: the device's time for it over that of the fastest of PyTorch's implementations that takes the case. Our backward
is timed as a program of forward and backward, less the forward's; PyTorch's alone."""
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


def possible(it, function):
    """Whether the implementation takes the case."""
    try:
        function()
        it.synchronise()
        return True
    except RuntimeError:
        return False


def attention(it, op, forward):
    q, k, v = op.operands(it.place)
    if op.backward:
        return backward(it, op, forward, q, k, v)
    found = {}
    with it.open(op.name, record=True) as program, torch.no_grad():
        call = program.prepare({"x0": q, "x1": k, "x2": v})
        for name, backend in backends():
            with sdpa_kernel(backend):
                if not possible(it, lambda: op.call(q, k, v)):
                    continue
                found[name] = it.kernels(call, lambda: op.call(q, k, v), seconds=0.4)
        error = measure.scaled_error(call.outputs["y0"], op.call(q.float(), k.float(), v.float()))
    compare(it, op, found, error)


def compare(it, op, found, error):
    """Of each implementation: our time and its own. The figure is against the fastest."""
    if not found:
        raise RuntimeError("none of PyTorch's implementations takes the case")
    name, (ours, best) = min(found.items(), key=lambda item: item[1][1])
    it.report.add(f"{op.name}: rate", op.flops / ours * 1e-12, unit="TFLOP/s", note=f"{name} {op.flops / best * 1e-12:.4g}")
    others = ", ".join(f"{other} {time * 1e6:.4g} us" for other, (_, time) in sorted(found.items()))
    it.report.add(f"{op.name}: over the best", best / ours, op.limit, note=f"{name}; of {others}")
    it.report.add(f"{op.name}: error", error, 1e-4 if op.dtype == torch.float32 else 2e-2, measure.AT_MOST)


def backward(it, op, forward, q, k, v):
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    cotangent = torch.randn_like(q.detach())
    found = {}
    with it.open(op.name, record=True) as both, it.open(forward.name, record=True) as first:
        inputs = {"x0": q.detach(), "x1": k.detach(), "x2": v.detach()}
        whole = both.prepare(inputs | {"cotangent_y0": cotangent})
        part = first.prepare(inputs)
        for name, backend in backends():
            with sdpa_kernel(backend):
                def gradients():
                    return torch.autograd.grad(out, (q, k, v), cotangent, retain_graph=True)
                out = None
                if not possible(it, lambda: op.call(q, k, v)):
                    continue
                out = op.call(q, k, v)  # the backward is that of the implementation that made it
                if not possible(it, gradients):
                    continue
                clocks = [it.gpu.of_call(whole), it.gpu.of_call(part), it.gpu.of_function(gradients)]
                ours, ahead, torchs = measure.interleaved(clocks, 0.6)
                found[name] = (ours - ahead, torchs)
        wide = [t.detach().float().requires_grad_() for t in (q, k, v)]
        wants = torch.autograd.grad(scaled_dot_product_attention(*wide, is_causal=True), wide, cotangent.float())
        error = max(measure.scaled_error(whole.outputs[f"x{i}"], w) for i, w in enumerate(wants))
    compare(it, op, found, error)
