# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules as people train them: images, recurrence, routing, contrast, tensors that are changed in place. Their gradients are
PyTorch's in several plans, and there is one exactly where PyTorch has one."""
import copy
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

DATA = ["input:*=dp:S(0)"]
FSDP = [*DATA, "param:*=dp:S(0)"]


class Overwritten(nn.Module):
    """Each parameter is overwritten as a whole, in another way; `sizes` is read for its sizes alone."""

    def __init__(self):
        super().__init__()
        for name in ("filled", "zeroed", "sliced", "copied", "rows", "of_tensor", "masked", "power", "chosen", "empty", "sizes"):
            setattr(self, name, nn.Parameter(torch.randn(6, 4)))

    def forward(self, x):
        sliced, copied, rows, of_tensor = self.sliced.clone(), self.copied.clone(), self.rows * 3, self.of_tensor * 2
        sliced[:] = x
        copied.copy_(x[:1])
        rows[0:6, :] = x
        of_tensor.fill_(x.sum())
        everywhere = torch.ones(6, 4, dtype=torch.bool)
        parts = (self.filled.clone().fill_(0.25), self.zeroed.clone().zero_(), sliced, copied, rows, of_tensor,
                 (self.masked * 1).masked_fill(everywhere, 2.0), self.power.pow(0), torch.where(everywhere, x, self.chosen),
                 torch.cat([self.empty[:0], x]), torch.zeros_like(self.sizes))
        return sum((part * x).sum() for part in parts)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.row, self.less = (nn.Parameter(torch.randn(*shape)) for shape in ((6, 8), (8,), (6, 8)))

    def forward(self, x):
        h = x * self.scale
        h += self.row
        h.mul_(2).sub_(self.less)
        h[1:3] += self.row
        h[:, 2] = self.row[2]
        h[:, ::2].mul_(0.5)
        h[-1].zero_()
        h.clamp_(-3, 3)
        y = h.clone()
        y[x > 0.5] = 0.1
        y[torch.tensor([0, 3, -1]), torch.tensor([1, 2, 2])] = self.row[0] * 1
        y[x[:, 0] > 0] = 0.3
        y.add_(self.scale, alpha=0.3)
        return torch.empty_like(y).copy_(y).div_(1.5).tanh().square().sum()


class BatchNorm(nn.Module):
    """With the statistics of the batch, of each image and of groups; the updated running statistics are read too."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3, bias=False), nn.Linear(8, 5)
        self.weight, self.bias = nn.Parameter(torch.rand(8) + 0.5), nn.Parameter(torch.randn(8))
        self.image, self.group = nn.InstanceNorm2d(8, affine=True), nn.GroupNorm(2, 8)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("variance", torch.ones(8))

    def forward(self, x, y):
        mean, variance = self.mean.clone(), self.variance.clone()
        h = F.batch_norm(self.conv(x), mean, variance, self.weight, self.bias, training=True)
        h = F.batch_norm(h * self.weight[:, None, None], mean, variance)  # with the statistics just updated
        h = self.group(F.max_pool2d(self.image(F.gelu(h)).sin(), 2))
        return F.cross_entropy(self.head(h.relu().mean((2, 3))), y) + (self.head.weight * (mean + variance)).sum()


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1, stride=2), nn.Conv2d(12, 4, 3, padding=1)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x, y):
        a = F.relu(self.down(x))
        b = F.avg_pool2d(F.relu(self.middle(a)), 2)
        c = F.interpolate(F.interpolate(b, scale_factor=2, mode="nearest"), size=(8, 8), mode="bilinear", align_corners=False)
        return F.binary_cross_entropy_with_logits(self.out(self.up(torch.cat([c, a], 1))), y)


class Vision(nn.Module):
    """Volumes, dilated and transposed convolutions, pools, borders and resizing, images in the layout of channels last."""

    def __init__(self):
        super().__init__()
        self.volume, self.dilated = nn.Conv3d(2, 4, (2, 3, 3), padding=(0, 1, 1)), nn.Conv2d(2, 6, 3, dilation=2, groups=2)
        self.up, self.out = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1, groups=2), nn.ConvTranspose1d(4, 2, 2, stride=2)
        self.gate = nn.Conv2d(6, 6, 1)

    def forward(self, x, y):
        frames = torch.stack([x, x.flip(-1), x * 2], 2)
        clip = F.adaptive_avg_pool3d(F.max_pool3d(F.relu(self.volume(frames)), (1, 2, 2)), (1, 2, 3))
        a = F.relu(self.dilated(F.pad(x, (2, 2, 2, 2), mode="reflect")))
        pooled = F.interpolate(F.adaptive_max_pool2d(a, 3), size=a.shape[2:], mode="bilinear", align_corners=True)
        gate = self.gate(F.adaptive_avg_pool2d(a.to(memory_format=torch.channels_last), 1)).sigmoid()
        b = F.pixel_unshuffle(self.up((a + pooled) * gate), 2).unflatten(1, (4, 4)).mean(2)
        # Dims that keep their sizes are resized nevertheless.
        b = F.interpolate(F.interpolate(b, scale_factor=1.12, mode="nearest-exact"), scale_factor=(1.1, 1.5), mode="bicubic")
        c = F.interpolate(b, scale_factor=(1.5, 1.05), mode="bicubic") + F.interpolate(clip[:, :, 0], (12, 12), mode="nearest-exact")
        return (self.out(F.avg_pool2d(c, 3, 2, 1, ceil_mode=True, count_include_pad=False).flatten(2)) - y).pow(2).mean()


class Routed(nn.Module):
    """Experts with room for four tokens each."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(4, 8, 12) * 0.3), nn.Parameter(torch.randn(4, 12, 8) * 0.3)

    def forward(self, x):
        weight, expert = F.softmax(self.router(x), -1).max(-1)
        chosen = F.one_hot(expert, 4)
        place = (chosen.cumsum(0) * chosen).sum(-1) - 1
        slot = torch.where(place < 4, expert * 4 + place, 16)
        tokens = x.new_zeros(17, 8).index_add(0, slot, x)[:-1].view(4, 4, 8)
        y = torch.bmm(F.gelu(torch.bmm(tokens, self.up)), self.down).view(16, 8)
        return (torch.cat([y, y.new_zeros(1, 8)])[slot] * weight[:, None] + x).square().mean()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.gru, self.lstm, self.out = nn.Embedding(11, 6), nn.GRUCell(6, 8), nn.LSTMCell(8, 8), nn.Linear(8, 11)

    def forward(self, ids):
        x = self.embed(ids)
        h = k = c = x.new_zeros(len(ids), 8)
        logits = []
        for t in range(ids.shape[1] - 1):
            h = self.gru(x[:, t], h)
            k, c = self.lstm(h, (k, c))
            logits.append(self.out(k))
        return F.cross_entropy(torch.stack(logits, 1).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=3, label_smoothing=0.1)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.heat = nn.Linear(7, 6), nn.Linear(5, 6), nn.Parameter(torch.tensor(2.3))

    def forward(self, x, y):
        scores = self.heat.exp() * F.normalize(self.left(x), dim=-1) @ F.normalize(self.right(y), dim=-1).T
        labels = torch.arange(len(x))
        return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2


class Adapted(nn.Module):
    """A frozen model with adapters of low rank, and a frozen name of a trained weight."""

    def __init__(self):
        super().__init__()
        self.base, self.head = nn.Linear(8, 12), nn.Linear(12, 5)
        self.requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 12, bias=False)
        self.tied = nn.Parameter(self.up.weight.data, requires_grad=False)

    def forward(self, x, y):
        h = F.gelu(self.base(x) + self.up(self.down(x)) + F.linear(self.down(x * x), self.tied))
        return F.cross_entropy(self.head(h), y)


class Tied(nn.Module):
    """A trained weight whose storage is a frozen parameter's and a buffer's, too; and one that two parameters are."""

    def __init__(self):
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.randn(4, 4))
        self.frozen = nn.Parameter(self.weight.data, requires_grad=False)
        self.again = self.other
        self.register_buffer("buffer", self.weight.data)

    def forward(self, x):
        return (x @ self.weight @ self.other + (x * x) @ self.frozen + x.sin() @ self.buffer @ self.again).pow(2).mean()


class Statistics(nn.Module):
    """Deviations and variances with means, by each of their overloads; two rows are constant."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))
        self.weight.data[1:3] = 0.5

    def forward(self, x):
        scaled = self.weight * x
        pairs = (torch.std_mean(scaled, 1), torch.std_mean(self.weight, dim=(1,), correction=0, keepdim=True),
                 torch.std_mean(self.weight.sin()), torch.var_mean(scaled, 0), torch.var_mean(self.weight),
                 (self.weight.std(), scaled.std(0, unbiased=False)))
        return sum((left * right).sum() for left, right in pairs)


class Corners(nn.Module):
    """Functions at a kink, at ties and where they have no value of their own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor([-3.0, 0.0, 3.0, 1.0])), nn.Parameter(torch.tensor([0.0, 0.0, 2.0, 1.0]))
        self.tied = nn.Parameter(torch.tensor([0.0, 0.0, 0.0, 1.0, -1.0]))
        self.points = nn.Parameter(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))

    def forward(self, x):
        bent = torch.sinc(self.b) + F.hardsigmoid(self.a) + F.hardswish(self.a) + torch.atan2(self.b, self.a * self.b)
        apart = torch.cdist(self.points, x, p=torch.inf)
        turned = torch.view_as_real(torch.sgn(torch.view_as_complex(self.points)))
        return bent.sum() + self.tied.median() * 3 + self.tied.nanmedian() + (apart * 1.5).sum() + turned.sum() + self.tied.max() + self.a.amin()


def image(n, *shape):
    return {"x": torch.randn(n, *shape)}


MODELS = {
    "adapted": (Adapted, lambda: image(6, 8) | {"y": torch.randint(0, 5, (6,))}, {"dp=4": FSDP, "tp=3": ["module:base=colwise"]}),
    "overwritten": (Overwritten, lambda: image(6, 4), {"dp=2": DATA, "tp=4": ["param:*=tp:S(0)"]}),
    "in_place": (InPlace, lambda: image(6, 8), {"dp=4": FSDP, "dp=2,tp=2": [*DATA, "param:scale=tp:S(1)"], "tp=3": ["input:x=tp:S(1)"]}),
    "batch_norm": (BatchNorm, lambda: image(6, 3, 9, 8) | {"y": torch.randint(0, 5, (6,))},
                   {"dp=4": FSDP, "tp=3": ["param:conv.weight=tp:S(0)"]}),
    "unet": (UNet, lambda: image(4, 2, 8, 8) | {"y": torch.rand(4, 1, 8, 8)}, {"dp=3": FSDP, "tp=2": ["param:middle.*=tp:S(0)"]}),
    "vision": (Vision, lambda: image(4, 2, 8, 8) | {"y": torch.rand(4, 2, 98)},
               {"dp=3": FSDP, "tp=2": ["param:volume.*=tp:S(0)", "param:dilated.*=tp:S(0)", "param:out.weight=tp:S(1)"],
                "sp=2": ["input:x=sp:S(2)"]}),
    "routed": (Routed, lambda: image(10, 8), {"dp=2,tp=2": [*DATA, "param:up=tp:S(0)", "param:down=tp:S(0)"]}),
    "recurrent": (Recurrent, lambda: {"ids": torch.randint(0, 11, (4, 5))},
                  {"dp=4": FSDP, "tp=3": ["module:out=colwise", "param:gru.*=tp:S(0)"]}),
    "tied": (Tied, lambda: image(6, 8), {"dp=4": FSDP, "dp=2,tp=2": [*DATA, "param:weight=tp:S(1)"]}),
    "corners": (Corners, lambda: {"x": torch.tensor([[0.0, 1.0], [3.0, 0.0]])}, {"tp=3": ["param:*=tp:S(0)"]}),
    "statistics": (Statistics, lambda: image(6, 4), {"dp=4": DATA, "tp=3": ["param:weight=tp:S(0)"]}),
    "contrast": (Contrast, lambda: image(6, 7) | {"y": torch.randn(6, 5)},
                 {"dp=4": DATA, "dp=2,tp=2": [*DATA, "module:left=colwise", "module:right=colwise"]}),
}


def check_gradients(make, inputs, plans, tmp_path, export=shardc_export.export):
    """On one rank and in each of `plans` (mesh: rules), the gradients of the module that `make` returns are PyTorch's."""
    torch.manual_seed(5)
    module, inputs = make().eval(), inputs()
    trained = copy.deepcopy(module)  # its buffers change
    leaves = dict(trained.named_parameters())
    wanted = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    grads = torch.autograd.grad(trained(**inputs), list(wanted.values()), allow_unused=True)
    wants = dict.fromkeys(leaves) | dict(zip(wanted, grads))
    model, given, out = tmp_path / "m.pt2", tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    torch.export.save(export(module, (), inputs), model)
    save_file(inputs, given)
    largest = max(float(want.abs().max()) for want in wants.values() if want is not None)
    for mesh, plan in {"r=1": [], **plans}.items():
        run(tool("shardc"), "compile", model, "--mesh", mesh, *places(*plan), "--gradients", 0, "-o", tmp_path / "m.so")
        run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", model, "--inputs", given, "--outputs", out,
            "--threads", 1)
        got = load_file(out)
        assert {key for key in leaves if key in got} == {key for key in wants if wants[key] is not None}, mesh
        for key, want in wants.items():
            if want is not None:
                error = float((got[key] - want).abs().max())
                assert error <= 2e-5 * max(float(want.abs().max()), 0.05 * largest), f"{key} on {mesh} differs by {error:.3g}"


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name, tmp_path):
    check_gradients(*MODELS[name], tmp_path)


@pytest.mark.parametrize("name", ("corners", "statistics", "tied", "vision"))
def test_plain_export(name, tmp_path):
    """Overloads that `shardc export` decomposes, and PyTorch's own export keeps."""
    check_gradients(*MODELS[name], tmp_path, torch.export.export)


class Nothing(nn.Module):
    """Distances to no points, whose gradients are views of memory without elements."""

    def __init__(self):
        super().__init__()
        self.x, self.y = nn.Parameter(torch.randn(4, 5)), nn.Parameter(torch.randn(0, 5))

    def forward(self, z):
        return (torch.cdist(self.x, self.y, p=1.5) * z).sum() + self.x.square().sum()


def test_no_elements(tmp_path):
    module, model, out = Nothing(), tmp_path / "m.pt2", tmp_path / "out.safetensors"
    torch.export.save(torch.export.export(module, (torch.zeros(4, 0),)), model)
    save_file({"z": torch.zeros(4, 0)}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", model, "--mesh", "tp=3", *places("param:x=tp:S(0)", "param:y=tp:S(1)"), "--gradients", 0, "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", model, "--inputs", tmp_path / "in.safetensors", "--outputs", out)
    got = load_file(out)
    assert torch.allclose(got["x"], 2 * module.x.detach()) and got["y"].shape == (0, 5)
