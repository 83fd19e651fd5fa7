# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are bound by memory: the bytes that they must read and write, over the rate of a copy measured beside them."""
import torch

import measure

COPIED = 512 << 20  # bytes of the copy


def run(it):
    source = torch.empty(COPIED // 4, device=it.place).normal_()
    target = torch.empty_like(source)
    it.each(it.chosen("rows"), lambda op: kernel(it, op, source, target))


def kernel(it, op, source, target):
    operands = op.operands(it.place)
    with it.open(op.name) as program:
        call = program.prepare({f"x{i}": t for i, t in enumerate(operands)})
        ours, copy = it.measure(call, lambda: target.copy_(source), seconds=0.5)
        wants = op.call(*operands)
        wants = wants if isinstance(wants, (list, tuple)) else [wants]
        error = max(measure.scaled_error(call.outputs[f"y{i}"], w) for i, w in enumerate(wants))
    copied = 2 * COPIED / copy
    it.report.add(f"{op.name}: over the copy's rate", op.bytes / ours / copied, op.limit,
                  note=f"{op.bytes / ours * 1e-9:.4g} of {copied * 1e-9:.4g} GB/s")
    it.report.add(f"{op.name}: error", error, 1e-4 if op.dtype == torch.float32 else 2e-2, measure.AT_MOST)
