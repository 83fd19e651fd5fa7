# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What autograd is told beside the operators, by torch.no_grad() and detach_(): the gradients are PyTorch's, and a write past
autograd that no exported graph can hold is an error."""
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from conftest import ROOT, run, tool
from test_module_gradients import check_gradients

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402


class Model(nn.Module):
    """Parameters `a` and `b`, a buffer, and a forward that each model writes as a function."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.randn(6, 4))
        self.register_buffer("average", torch.ones(4))
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def region(self, x):
    h = self.a * 2
    with torch.no_grad():
        scale, left, right = h.abs().amax(1, keepdim=True), *(self.b * h).split(2, 1)
    return (h / scale * x * torch.cat([right, left], 1)).sum()


@torch.no_grad()
def mask(h):
    return (h > h.mean()).float() * h.abs().max()


def decorated(self, x):
    h = x * self.a
    return (h * mask(h) * self.b).sum()


def enabled_inside(self, x):
    h = self.a * x
    with torch.no_grad():
        before = h.sin()
        with torch.enable_grad():
            kept = h * before * self.b
        after = kept.cos()
    return (kept * after).sum()


def buffer(self, x):
    """A buffer and a tensor from outside are written inside, with what depends on a parameter."""
    made = torch.zeros(6, 4)
    with torch.no_grad():
        self.average.mul_(0.9).add_((x * self.a).mean(0), alpha=0.1)
        made.copy_(self.b)
        inside = self.a * x
        inside[0] = 2.0
        inside.mul_(3)
    return (x * self.a * made * inside / (self.average.abs() + 1)).sum() + (self.b * x).sum()


def overwritten_unread(self, x):
    """What is written past autograd is not read afterwards, but for its value."""
    h = self.a * 2
    d = h.detach()
    d.clamp_(-1, 1)
    with torch.no_grad():
        k = h + 1
    return (d * self.b * k * x * self.a).sum()


def straight_through(self, x):
    h, k = self.a * 2, self.b * 1
    y = h + (h.round() - h).detach()
    k = k.detach_()
    return (y * y * x * k).sum()


def detached_then_written(self, x):
    """Once it is written, the tensor has the gradient of what was written."""
    h, k = self.a * 2, self.b * x
    h.detach_()
    h.mul_(k)
    k.detach_()
    return (h * k * self.a).sum()


class Momentum(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        query = F.normalize(self.query(x), dim=1)
        with torch.no_grad():
            key = F.normalize(self.key(x), dim=1)
        return F.cross_entropy(query @ key.T / 0.1, torch.arange(6))


def model(function):
    return lambda: Model(function)


MODELS = {function.__name__: model(function) for function in
          (region, decorated, enabled_inside, buffer, overwritten_unread, straight_through, detached_then_written)}
MODELS["momentum"] = Momentum


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name, tmp_path):
    plans = {"dp=4": ["input:*=dp:S(0)"], "tp=2": ["param:*=tp:S(0)"]}
    check_gradients(MODELS[name], lambda: {"x": torch.randn(6, 4)}, plans, tmp_path)


def region_of_views(self, x):
    """Views leave the region, and a buffer that is written there; what left it is written outside."""
    h = self.a * 2
    with torch.no_grad():
        rows, count = h.t()[:2], (h > 0).sum(0)
        made = h * 3
        self.average.mul_(0.5)
    made[0] = self.b[0]
    return (rows @ (h * x)).sum() + (made * h * count * self.average).sum()


def enabled_leaves(self, x):
    """What is computed with gradients inside the region keeps them outside; a tensor from outside that is read inside has its own."""
    h = self.a * x
    with torch.no_grad():
        with torch.enable_grad():
            kept = h.sin() * self.b
        count = h.sum() + kept.sum()
    return (kept * h * count).sum()


PROGRAMS = (region, decorated, enabled_inside, enabled_leaves, region_of_views, buffer, overwritten_unread, straight_through,
            detached_then_written)


@pytest.mark.parametrize("make", map(model, PROGRAMS), ids=[function.__name__ for function in PROGRAMS])
@pytest.mark.parametrize("export", [torch.export.export, shardc_export.export], ids=["plain", "shardc"])
def test_program_of_regions(make, export, tmp_path):
    """PyTorch's own export keeps the regions, and the gradients are right without those of `shardc export`."""
    check_gradients(make, lambda: {"x": torch.randn(6, 4)}, {"dp=4": ["input:*=dp:S(0)"]}, tmp_path, export)


def written_in_region(self, x):
    h = self.a * 2
    with torch.no_grad():
        h[0] = 5.0
        h.mul_(3)
    return (h * x).sum()


def parameter_in_region(self, x):
    with torch.no_grad():
        self.a.clamp_(-1, 1)
    return (self.a * x).sum()


def written_detached(self, x):
    h = self.a * x
    d = h.detach()
    d[0] = 0.0
    return (h * self.b).sum()


def written_detached_parameter(self, x):
    self.a.detach().t().mul_(3)
    return (self.a * x).sum()


def gradient_into_detached(self, x):
    y = torch.zeros(6, 4)
    y.detach().copy_(self.a)
    return (y * x * self.b).sum()


def gradient_of_detached(self, x):
    d = torch.zeros(6, 4).detach()
    d.copy_(self.a)
    return (d * x * self.b).sum()


REFUSED = {
    written_in_region: ("inside torch.no_grad()", "write it out of place, or outside torch.no_grad()"),
    parameter_in_region: ("inside torch.no_grad()", "write it out of place, or outside torch.no_grad()"),
    written_detached: ("through a detached view", "write into a clone of the detached tensor"),
    written_detached_parameter: ("through a detached view", "write into a clone of the detached tensor"),
    gradient_into_detached: ("through a detached view", "write into a clone of the detached tensor"),
    gradient_of_detached: ("a tensor that has a gradient", "write into a clone of the detached tensor"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_refused(function):
    with pytest.raises(ValueError) as error:
        shardc_export.export(nn.Sequential(Model(function)), (torch.randn(6, 4),))
    message = str(error.value)
    assert message.startswith("in module '0', File \"" + __file__) and " in place, " in message
    assert all(part in message for part in REFUSED[function])


def gradient_of_detached_and_base(self, x):
    y = torch.zeros(6, 4)
    d = y.detach()
    d.copy_(self.a)
    u = y.sum() * self.b
    return (d * x * u).sum()


@pytest.mark.parametrize("function", (gradient_of_detached, gradient_of_detached_and_base, gradient_into_detached), ids=lambda function: function.__name__)
def test_program_of_written_detached(function, tmp_path):
    """A detached tensor has the gradient of what was written into it last, and what it was detached from has its own."""
    check_gradients(model(function), lambda: {"x": torch.randn(6, 4)}, {}, tmp_path, torch.export.export)


@pytest.mark.parametrize("function", [function for function in REFUSED if not function.__name__.startswith("gradient_")],
                         ids=lambda function: function.__name__)
def test_refused_in_programs(function, tmp_path):
    """PyTorch's own programs keep such writes, too: their forward is compiled, and their gradients are refused."""
    torch.export.save(torch.export.export(Model(function), (torch.randn(6, 4),)), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=1", "-o", tmp_path / "m.so")
    done = run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=1", "--gradients", "0", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and "is written past autograd, inside torch.no_grad() or through a detached view, in" in done.stderr


def test_all_refusals_at_once():
    both = nn.Sequential(Model(lambda self, x: x * written_in_region(self, x)), Model(written_detached))
    with pytest.raises(ValueError) as error:
        shardc_export.export(both, (torch.randn(6, 4),))
    assert [line.split(",")[0] for line in str(error.value).splitlines()] == ["in module '0'", "in module '1'"]


@pytest.mark.parametrize("function", (region, enabled_inside, straight_through))
def test_training_form(function):
    """The detaches are there in every form, also where the caller disabled gradients."""
    with torch.no_grad():
        program = shardc_export.export(Model(function), (torch.randn(6, 4),), form="training")
    nodes = [node for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule) for node in module.graph.nodes]
    targets = {str(node.target) for node in nodes}
    assert "aten.detach.default" in targets and "aten.detach_.default" not in targets
