# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products: the device's time for them over that for PyTorch's, which calls the same library."""
import torch

import measure


def run(it):
    # f32 products are IEEE ones, as the program's.
    torch.backends.cuda.matmul.allow_tf32 = False
    it.each(it.chosen("gemm"), lambda op: product(it, op))


def product(it, op):
    operands = op.operands(it.place)
    with it.open(op.name, record=True) as program:
        call = program.prepare({f"x{i}": t for i, t in enumerate(operands)})
        ours, torchs = it.kernels(call, lambda: op.call(*operands), seconds=0.5)
        error = measure.scaled_error(call.outputs["y0"], op.call(*operands))
    it.report.add(f"{op.name}: rate", op.flops / ours * 1e-12, unit="TFLOP/s", note=f"PyTorch {op.flops / torchs * 1e-12:.4g}")
    it.report.add(f"{op.name}: over PyTorch's", torchs / ours, op.limit)
    it.report.add(f"{op.name}: error", error, 1e-4 if op.dtype == torch.float32 else 2e-2, measure.AT_MOST)
