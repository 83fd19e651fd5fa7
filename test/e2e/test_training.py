# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training by compiled programs: losses, parameters and the optimizer's states are PyTorch's, on several meshes and in every
mode of the plan."""
import functools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from plans import places
from test_model_gradients import BUILDER
from training import Trainee, difference


class Towers(nn.Module):
    """Odd sizes, a parameter that nothing uses, one that is used twice, frozen ones, a bias that every rank has whole, and empty shards."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 11), nn.Linear(11, 3)
        self.inner = nn.ModuleDict({"norm": nn.LayerNorm(11), "scale": nn.Linear(11, 11, bias=False)})
        self.unused, self.frozen = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(11))
        self.tiny = nn.Parameter(torch.randn(1))

    def forward(self, x, target):
        h = F.gelu(self.first(x)) * self.frozen
        h = self.inner["scale"](self.inner["norm"](self.inner["scale"](h))) * self.tiny
        return F.mse_loss(self.second(h), target), h


@functools.cache
def models():
    space = {}
    exec(BUILDER, space)
    return space["make"]


@pytest.fixture(scope="module")
def trainee(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")

    @functools.cache
    def make(kind):
        if kind == "towers":
            torch.manual_seed(3)
            module, inputs = Towers(), {"x": torch.randn(9, 7), "target": torch.randn(9, 3)}
        else:
            module, inputs = models()(kind)
        inputs = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
        return Trainee(folder, kind, module.double(), inputs)
    make.folder = folder
    return make


DP = places("input:*=dp:S(0)")
BOTH = ("--mesh", "dp=2,tp=2", *DP)
TOWERS_TP = places("module:first=colwise", "module:second=rowwise")


def train(*settings):
    return [option for setting in settings for option in ("--train", setting)]


def check(trainee, name, options, reference, log, saved, tolerance=1e-5):
    module, optimizer, losses, norms = reference
    for got, want in zip(log, losses, strict=True):
        assert abs(got["loss"] - want) <= tolerance * max(abs(want), 1e-6), (got, want)
    for got, want in zip(log, norms):
        assert abs(got["grad_norm"] - want) <= tolerance * want
    parameters = dict(module.named_parameters())
    states = 0
    for key, parameter in parameters.items():
        if key not in saved:
            assert parameter.grad is None, f"{key} is not in the checkpoint"
            continue
        assert difference(saved[key], parameter) <= tolerance, f"{name}: {key}"
        for kind, value in optimizer.state.get(parameter, {}).items():
            if value is not None and kind != "step":
                states += 1
                assert difference(saved[f"optimizer.{kind}.{key}"], value) <= tolerance, f"{name}: {kind} of {key}"
    assert int(saved["train.step"]) == len(log)
    return states


OPTIMIZERS = {
    "sgd": ({}, []),
    "sgd-decay": (dict(weight_decay=0.1, maximize=True), ["optimizer.weight_decay=0.1", "optimizer.maximize=true"]),
    "sgd-momentum": (dict(momentum=0.9, dampening=0.3, weight_decay=0.05),
                     ["optimizer.momentum=0.9", "optimizer.dampening=0.3", "optimizer.weight_decay=0.05"]),
    "sgd-nesterov": (dict(momentum=0.8, nesterov=True), ["optimizer.momentum=0.8", "optimizer.nesterov=true"]),
    "adam": (dict(weight_decay=0.1, betas=(0.8, 0.95), eps=1e-6),
             ["optimizer.weight_decay=0.1", "optimizer.betas=[0.8,0.95]", "optimizer.eps=1e-6"]),
    "adam-amsgrad": (dict(amsgrad=True), ["optimizer.amsgrad=true"]),
    "adamw": (dict(weight_decay=0.2), ["optimizer.weight_decay=0.2"]),
    "adamw-amsgrad": (dict(amsgrad=True, maximize=True), ["optimizer.amsgrad=true", "optimizer.maximize=true"]),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(trainee, name):
    numbers, settings = OPTIMIZERS[name]
    one = trainee("towers")
    kind = name.split("-")[0]
    program = trainee.folder / f"towers-{name}.so"
    one.compile(program, *BOTH, *TOWERS_TP, *train("loss=0", f"optimizer={kind}", *settings))
    log, saved = one.train(program)
    states = check(one, name, (), one.pytorch(kind, **numbers), log, saved)
    assert states == {"sgd": 0, "sgd-decay": 0, "sgd-momentum": 9, "sgd-nesterov": 9, "adam-amsgrad": 27, "adamw-amsgrad": 27}.get(name, 18)


MODES = {
    "zero1": (["zero=1"], {}),
    "zero2-micro": (["zero=2", "micro_batches=2"], dict(micro_batches=2)),
    "zero3-norm": (["zero=3", "clip_norm=0.5"], dict(clip=0.5)),
    "micro-sum": (["micro_batches=4", "accumulation=sum"], dict(micro_batches=4, mean=False)),
    "zero1-micro-norm-skip": (["zero=1", "micro_batches=2", "clip_norm=0.3", "non_finite=skip"], dict(micro_batches=2, clip=0.3)),
    "value": (["clip_value=0.01", "non_finite=stop"], dict(clip_value=0.01)),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes(trainee, mode):
    settings, keywords = MODES[mode]
    one = trainee("towers")
    program = trainee.folder / f"towers-{mode}.so"
    reference = one.pytorch("adamw", **keywords)
    for mesh, plan in [(("--mesh", "dp=3"), DP), (("--mesh", "dp=2,tp=2"), (*DP, *TOWERS_TP)), (("--mesh", "dp=1"), ())]:
        one.compile(program, *mesh, *plan, *train("loss=0", "optimizer=adamw", *settings))
        log, saved = one.train(program)
        check(one, f"{mode} on {mesh[1]}", (), reference, log, saved)
        assert all(not line.get("skipped", False) for line in log)


PLANS = {"mse": places("module:first=colwise", "module:second=rowwise"),
         "gpt2": places("module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise", "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise"),
         "llama": places("module:*layers.*.self_attn.{q,k,v}_proj=colwise", "module:*layers.*.self_attn.o_proj=rowwise"),
         "minilm": places("module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise"), "image": ()}


@pytest.mark.parametrize("kind, settings, keywords", [
    ("mse", ["zero=1"], {}), ("gpt2", ["zero=3", "clip_norm=1"], dict(clip=1.0)), ("llama", ["zero=2", "micro_batches=2"], dict(micro_batches=2)),
    ("minilm", ["zero=1"], {}), ("image", ["zero=1", "clip_norm=1"], dict(clip=1.0))])
def test_models(trainee, kind, settings, keywords):
    one = trainee(kind)
    program = trainee.folder / f"{kind}.so"
    one.compile(program, *BOTH, *PLANS[kind], *train("loss=0", "optimizer=adamw", *settings))
    log, saved = one.train(program, lr=1e-3)
    check(one, kind, (), one.pytorch("adamw", lr=1e-3, **keywords), log, saved)
