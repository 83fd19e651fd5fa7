# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are bound by memory: the bytes that they must read and write, over the rate of a copy measured beside them."""
import torch

import measure

COPIED = 512 << 20  # bytes of the copy


def run(it):
    size = it.facts.get("copied", COPIED)
    source = torch.empty(size // 4, device=it.place).normal_()
    target = torch.empty_like(source)
    copy, = measure.interleaved([it.gpu.of_function(lambda: target.copy_(source))], 0.3)
    it.report.add("copy", 2 * size / copy * 1e-9, unit="GB/s")
    it.each(["launch of a kernel in a graph"], lambda name: launch(it, name))
    it.each(it.chosen("rows"), lambda op: kernel(it, op, source, target, size))


def kernel(it, op, source, target, size):
    operands = op.operands(it.place)
    with it.open(op.name, record=True) as program:
        call = program.prepare({f"x{i}": t for i, t in enumerate(operands)})
        ours, copy = it.kernels(call, lambda: target.copy_(source), seconds=0.5)
        wants = op.call(*operands)
        wants = wants if isinstance(wants, (list, tuple)) else [wants]
        error = max(measure.scaled_error(call.outputs[f"y{i}"], w) for i, w in enumerate(wants))
    copied = 2 * size / copy
    it.report.add(f"{op.name}: over the copy's rate", op.bytes / ours / copied, op.limit,
                  note=f"{op.bytes / ours * 1e-9:.4g} of {copied * 1e-9:.4g} GB/s")
    it.report.add(f"{op.name}: error", error, 1e-4 if op.dtype == torch.float32 else 2e-2, measure.AT_MOST)


def launch(it, name):
    """What each further kernel of a captured step costs, for the cost model: launch and end of a small product, of which there is
    one kernel for each op of the text."""
    short, long = it.chosen("chains")
    operands = {f"x{i}": t * 0.1 for i, t in enumerate(short.operands(it.place))}  # powers that stay small
    with it.open(short.name) as first, it.open(long.name) as second:
        calls = [program.prepare(operands) for program in (first, second)]
        times = it.steps(*calls, seconds=0.3)
    it.report.add(name, (times[1] - times[0]) / (long.chain - short.chain) * 1e6, unit="us")
