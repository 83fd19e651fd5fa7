# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model whose forward has a loss, exported once, with PyTorch's gradients beside it."""
import sys

import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, run_python, tool

sys.path.insert(0, str(ROOT / "test/models"))
from with_loss import Language  # noqa: E402, F401


class Reference:
    """`factory` is FILE.py:FUNCTION, which returns (module, args, inputs); `module` and `inputs` are what it returns."""

    def __init__(self, folder, name, factory, module, inputs):
        result = module(**inputs)
        loss = result[0] if isinstance(result, tuple) else result
        loss.backward()
        self.loss = loss.detach()
        self.wants = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        self.unused = {name for name, p in module.named_parameters() if p.grad is None}
        self.source, self.inputs = folder / f"{name}.pt2", folder / f"{name}.safetensors"
        save_file({k: v.contiguous() for k, v in inputs.items()}, self.inputs)
        run_python(ROOT / "tools/export/shardc_export.py", factory, "-o", self.source)

    def outputs(self, program, entry, ranks):
        out = program.with_suffix(".safetensors")
        run(tool("shard-run"), "-n", ranks, program, "--entry", entry, "--weights", self.source, "--inputs", self.inputs,
            "--outputs", out)
        return load_file(out)

    def check(self, got):
        """Each gradient is as near to PyTorch's as 1e-5 of the largest of its kind (weights, biases)."""
        assert got.keys() - self.wants.keys() and not self.wants.keys() - got.keys() and not got.keys() & self.unused
        largest = {}
        for name, want in self.wants.items():
            of_kind = name.split(".")[-1]
            largest[of_kind] = max(largest.get(of_kind, 0.0), float(want.abs().max()))
        for name, want in self.wants.items():
            error = float((got[name] - want).abs().max()) / largest[name.split(".")[-1]]
            assert error <= 1e-5, f"{name} differs by {error:.3g} of the largest of its kind"
