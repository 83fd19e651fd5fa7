# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of models, from PyTorch's export of a forward with a loss to the entry `gradients` on one rank: each is as
near to PyTorch's as 1e-5 of the largest of its kind (weights, biases)."""
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool

BUILDER = f'''
import sys
sys.path.insert(0, "{ROOT}/test/models")
import torch
from torch import nn
from torch.nn import functional as F
import builders

class MeanSquare(nn.Module):
    """Two layers, and a parameter that nothing uses."""
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 20), nn.Linear(20, 5)
        self.unused = nn.Parameter(torch.randn(3))
    def forward(self, x, target):
        return F.mse_loss(self.second(F.relu(self.first(x))), target)

class Pairs(nn.Module):
    """Sentences that belong together are to be near each other."""
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
    def forward(self, input_ids, attention_mask):
        x = self.encoder(input_ids, attention_mask)
        scores = x[::2] @ x[1::2].t() * 20
        return F.cross_entropy(scores, torch.arange(x.shape[0] // 2))

class Language(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, input_ids):
        logits = self.model(input_ids=input_ids).logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten()), logits

class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head = builders.ResidualBlock(3, 6, 2), nn.Linear(6, 4)
    def forward(self, x, labels):
        x = F.max_pool2d(self.block(x), 3, 2, 1)
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), labels)

def make(kind):
    torch.manual_seed(5)
    if kind == "mse":
        return MeanSquare(), {{"x": torch.randn(9, 12), "target": torch.randn(9, 5)}}
    if kind == "minilm":
        encoder, inputs = builders.minilm(batch=4)
        return Pairs(encoder).eval(), inputs
    if kind == "image":
        return Image().eval(), {{"x": torch.randn(2, 3, 11, 9), "labels": torch.tensor([1, 3])}}
    model, inputs = getattr(builders, kind)()
    return Language(model).eval(), inputs
'''
KINDS = ("mse", "gpt2", "llama", "image", "minilm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("gradients")
    builds = "".join(f"def build_{k}():\n    m, x = make('{k}')\n    return m, (), x\n" for k in KINDS)
    (target / "gradient_models.py").write_text(BUILDER + builds)
    sys.path.insert(0, str(target))
    yield target
    sys.path.remove(str(target))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(folder, tmp_path, kind):
    import gradient_models
    module, inputs = gradient_models.make(kind)
    result = module(**inputs)
    loss = result[0] if isinstance(result, tuple) else result
    loss.backward()
    wants = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    save_file({k: v.contiguous() for k, v in inputs.items()}, tmp_path / "in.safetensors")
    source, program, out = tmp_path / "m.pt2", tmp_path / "m.so", tmp_path / "out.safetensors"
    run(sys.executable, ROOT / "tools/export/shardc_export.py", f"{folder}/gradient_models.py:build_{kind}", "-o", source)
    run(tool("shardc"), "compile", source, "--mesh", "r=1", "--gradients", "0", "-o", program)
    unused = [name for name, p in module.named_parameters() if p.grad is None]
    run(tool("shard-run"), program, "--entry", "gradients", "--weights", source, "--inputs", tmp_path / "in.safetensors",
        "--outputs", out)
    got = load_file(out)
    assert got.keys() - wants.keys() and not wants.keys() - got.keys() and not got.keys() & set(unused)
    largest = {}
    for name, want in wants.items():
        of_kind = name.split(".")[-1]
        largest[of_kind] = max(largest.get(of_kind, 0.0), float(want.abs().max()))
    for name, want in wants.items():
        error = float((got[name] - want).abs().max()) / largest[name.split(".")[-1]]
        assert error <= 1e-5, f"{name} differs by {error:.3g} of the largest of its kind"
    # The forward is an entry as before.
    run(tool("shard-run"), program, "--entry", "forward", "--weights", source, "--inputs", tmp_path / "in.safetensors",
        "--outputs", out)
    torch.testing.assert_close(load_file(out)[next(k for k in got if k not in wants)], loss.detach(), rtol=1e-4, atol=1e-5)
