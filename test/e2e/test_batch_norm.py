# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch norm in training: statistics of the whole batch wherever it lies, running statistics, gradients, and the inference form of
the same program, against PyTorch."""
import copy
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

A = torch.ops.aten
STEPS = 3


class Norms(nn.Module):
    """Norms of all kinds; one is used twice, so that its second use begins with what the first one wrote."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 6, 3, padding=1), nn.Linear(6, 4)
        self.first, self.twice = nn.BatchNorm2d(6), nn.BatchNorm2d(6, momentum=0.3, eps=1e-3)
        self.plain, self.untracked = nn.BatchNorm1d(6, affine=False), nn.BatchNorm1d(6, track_running_stats=False)
        self.image = nn.InstanceNorm2d(6, affine=True, track_running_stats=True)
        for norm in (self.first, self.twice, self.untracked, self.image):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias)

    def forward(self, x, y):
        h = self.twice(self.first(self.conv(x)).sin())
        h = self.image(self.twice(h * h)).exp().mean((2, 3))
        h = self.untracked(h) * self.plain(h)
        loss = nn.functional.cross_entropy(self.head(h), y)
        # What the norms have written is read by name.
        return loss, *(b * 1 for _, b in self.named_buffers())


def build():
    torch.manual_seed(4)
    return Norms().double(), {"x": torch.randn(5, 3, 4, 5, dtype=torch.float64) * 2 + 1, "y": torch.randint(0, 4, (5,))}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The module in training mode, exported, and what PyTorch's has after some steps: outputs, gradients."""
    folder = tmp_path_factory.mktemp("norms")
    module, inputs = build()
    program = shardc_export.export(copy.deepcopy(module), (), inputs, train=True)
    torch.export.save(program, folder / "m.pt2")
    save_file(inputs, folder / "in.safetensors")
    for _ in range(STEPS):
        outputs = module(**inputs)
    names = [name for name, _ in module.named_parameters()]
    grads = dict(zip(names, torch.autograd.grad(outputs[0], list(module.parameters()))))
    return folder, module, program.graph_signature.user_outputs, outputs, grads


def close(got, want, name, limit=1e-9):
    assert got.dtype == want.dtype and got.shape == want.shape, name
    error = float((got - want.detach()).abs().max()) if want.numel() else 0.0
    assert error <= limit * max(1.0, float(want.abs().max())), f"{name} differs by {error:.3g}"


# 5 rows on 4 ranks: 2, 2, 1 and none.
PLANS = {
    "r=1": [], "dp=4": ["input:*=dp:S(0)"], "dp=3,tp=2": ["input:*=dp:S(0)", "module:conv=colwise"],
    "sp=3": ["input:x=sp:S(3)"], "tp=4": ["param:conv.weight=tp:S(0)", "param:first.*=tp:S(0)"],
}


@pytest.mark.parametrize("mesh", PLANS)
def test_training(trained, tmp_path, mesh):
    folder, _, names, outputs, grads = trained
    run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", mesh, *places(*PLANS[mesh]), "--gradients", 0, "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", folder / "m.pt2", "--inputs",
        folder / "in.safetensors", "--outputs", tmp_path / "out.safetensors", "--steps", STEPS, "--threads", 1)
    got = load_file(tmp_path / "out.safetensors")
    for name, want in [*zip(names, outputs, strict=True), *grads.items()]:
        close(got[name], want, f"{name} on {mesh}")


def test_inference(trained, tmp_path):
    """The inference form is what the same module does in eval mode: its buffers stay as they are. What a model computes itself of the
    counter of batches, which is a sum like any other in the program, is the same as in training."""
    folder, _, _, _, _ = trained
    module, inputs = build()
    for buffer in module.buffers():
        if buffer.dtype.is_floating_point:
            buffer.uniform_(0.5, 2)
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    run(tool("shard-opt"), folder / "m.pt2", "--aten-to-inference", "-o", tmp_path / "m.mlir")
    assert "mutation" not in (tmp_path / "m.mlir").read_text()
    run(tool("shardc"), "compile", tmp_path / "m.mlir", "--mesh", "dp=2", *places("input:*=dp:S(0)"), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "w.safetensors", "--inputs", folder / "in.safetensors",
        "--outputs", tmp_path / "out.safetensors", "--steps", 2)
    got = load_file(tmp_path / "out.safetensors")
    counters = [name.endswith("num_batches_tracked") for name, _ in module.named_buffers()]
    for name, want, is_counter in zip(trained[2], module.eval()(**inputs), [False, *counters], strict=True):
        if not is_counter:
            close(got[name], want, name)


class Overloads(nn.Module):
    """The overloads that programs have which other tools made."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(4) + 0.5), nn.Parameter(torch.randn(4))
        for i in range(6):
            self.register_buffer(f"mean{i}", torch.randn(4))
            self.register_buffer(f"variance{i}", torch.rand(4) + 0.5)

    def forward(self, x):
        of = lambda i: (x, self.weight, self.bias, getattr(self, f"mean{i}"), getattr(self, f"variance{i}"))
        results = [*A._native_batch_norm_legit_functional(*of(0), True, 0.2, 1e-5), *A._native_batch_norm_legit(*of(1), True, 0.2, 1e-5),
                   *A.native_batch_norm(*of(2), True, 0.2, 1e-5), *A._batch_norm_with_update(*of(3), 0.2, 1e-5)[:3],
                   *A._batch_norm_with_update_functional(*of(4), 0.2, 1e-5)[:3],
                   *A._native_batch_norm_legit.no_stats(x, None, self.bias, True, 0.2, 1e-5),
                   A._native_batch_norm_legit_functional(*of(5), False, 0.2, 1e-5)[0], A._batch_norm_no_update(*of(0), 0.2, 1e-5)[0],
                   A.batch_norm(*of(5), True, 0.2, 1e-5, False)]
        return *results, *(b * 1 for b in self.buffers())


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_overloads(tmp_path, kind):
    """As torch.export has them; statistics of short floats are computed in f32."""
    torch.manual_seed(2)
    module, x = Overloads(), torch.randn(7, 4, 3).to(kind)
    program = torch.export.export(copy.deepcopy(module), (x,))
    torch.export.save(program, tmp_path / "m.pt2")
    save_file({"x": x}, tmp_path / "in.safetensors")
    wants = module(x)
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=3", *places("input:x=dp:S(0)"), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors",
        "--outputs", tmp_path / "out.safetensors")
    got = load_file(tmp_path / "out.safetensors")
    # Of saved statistics torch.export records another type than the kernel of CPUs returns (bf16, f32): the program has what is recorded.
    recorded = {node.name: node.meta["val"].dtype for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)}
    for name, want in zip(program.graph_signature.user_outputs, wants, strict=True):
        close(got[name], want.to(recorded[name]), name, 2e-2 if recorded[name] == torch.bfloat16 else 1e-5)


class Batch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.norm(x)
        return (y * y.sin()).sum(), self.norm.running_var * 1


@pytest.mark.parametrize("form", ("composite", "core", "training"))
def test_any_batch(tmp_path, form):
    """Exported once with a batch of any size; the unbiased variance divides by what there is when it runs."""
    torch.manual_seed(3)
    module, x = Batch(), torch.randn(6, 4)
    program = shardc_export.export(copy.deepcopy(module), (x,), dynamic=["x:0=n:2:32"], form=form, train=True)
    torch.export.save(program, tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=2", *places("input:x=dp:S(0)"), "--gradients", 0, "-o",
        tmp_path / "m.so")
    for size in (2, 9):
        copied, x = copy.deepcopy(module), torch.randn(size, 4)
        save_file({"x": x}, tmp_path / "in.safetensors")
        run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", tmp_path / "m.pt2", "--inputs",
            tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
        got = load_file(tmp_path / "out.safetensors")
        wants = copied(x)
        grads = torch.autograd.grad(wants[0], list(copied.parameters()))
        names = [*program.graph_signature.user_outputs, "norm.weight", "norm.bias"]
        for name, want in zip(names, [*wants, *grads], strict=True):
            close(got[name], want, name, 1e-5)


def test_train_option(tmp_path):
    (tmp_path / "made.py").write_text("import torch\ndef build():\n    return torch.nn.BatchNorm1d(4), (torch.ones(3, 4),)\n")
    for options, mutations in (["--train"], 3), ([], 0):
        run(tool("shardc"), "export", f"{tmp_path}/made.py:build", *options, "-o", tmp_path / "m.pt2")
        assert run(tool("shard-opt"), tmp_path / "m.pt2").stdout.count("buffer_mutation") == mutations
