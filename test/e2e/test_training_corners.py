# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Corners of training steps: parameters of 0 dims, losses of early micro-batches, masters that keep small updates, norms of bf16, updates in
kernels that also reduce."""
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import BUILD, run, tool
from plans import places
from training import Trainee, difference

DP = ("--mesh", "dp=2", *places("input:*=dp:S(0)"))


def train(*settings):
    return [option for setting in settings for option in ("--train", setting)]


class Scaled(nn.Module):
    """One of its parameters has no dims."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.scale, self.linear = nn.Parameter(torch.tensor(1.3, dtype=dtype)), nn.Linear(5, 3).to(dtype)

    def forward(self, x):
        return (self.linear(x) * self.scale).square().mean()


def test_parameters_of_no_dims(tmp_path):
    one = Trainee(tmp_path, "scaled", Scaled(), {"x": torch.randn(4, 5, dtype=torch.float64)})
    one.compile(tmp_path / "m.so", *DP, *train("loss=0", "optimizer=adamw", "clip_norm=0.1", "micro_batches=2", "zero=1"))
    log, saved = one.train(tmp_path / "m.so")
    module, _, losses, _ = one.pytorch("adamw", clip=0.1, micro_batches=2)
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)
    for name, parameter in module.named_parameters():
        assert difference(saved[name], parameter) <= 1e-9, name
    # Without masters the states are of the parameter's own type.
    short = Trainee(tmp_path, "short", Scaled(torch.bfloat16), {"x": torch.randn(4, 5).bfloat16()})
    short.compile(tmp_path / "s.so", *DP, *train("loss=0", "optimizer=adamw", "precision={masters: none}"))
    _, saved = short.train(tmp_path / "s.so", steps=1)
    assert saved["optimizer.exp_avg.scale"].dtype == torch.bfloat16


class Narrow(nn.Module):
    """A head with one row, and a table without any."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.head = nn.Linear(5, 4).double(), nn.Linear(4, 1).double()
        self.table = nn.Parameter(torch.zeros(0, 5, dtype=torch.float64))

    def forward(self, x):
        return self.head(self.linear(torch.cat([self.table, x])).tanh()).square().mean()


@pytest.mark.parametrize("optimizer, zero", [("sgd", 0), ("adamw", 3)])
def test_parameters_that_one_rank_has(tmp_path, optimizer, zero):
    """All of them are sharded along their first dim, which is 1 or 0 for some."""
    one = Trainee(tmp_path, "narrow", Narrow(), {"x": torch.randn(4, 5, dtype=torch.float64)})
    one.compile(tmp_path / "m.so", *DP, *places("param:*=dp:S(0)"), *train("loss=0", f"optimizer={optimizer}", f"zero={zero}", "clip_norm=0.1"))
    log, saved = one.train(tmp_path / "m.so")
    module, _, losses, _ = one.pytorch(optimizer, clip=0.1)
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)
    for name, parameter in module.named_parameters():
        assert saved[name].shape == parameter.shape and (not parameter.numel() or difference(saved[name], parameter) <= 1e-9), name


class Sometimes(nn.Module):
    """A loss that is infinite where an input is large; its gradients never are."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return F.hardtanh(self.linear(x)).square().mean() + torch.where(x.detach().max() > 1e6, torch.inf, 0.0)


@pytest.mark.parametrize("bad", (0, 1))
def test_losses_of_all_micro_batches(tmp_path, bad):
    one = Trainee(tmp_path, "sometimes", Sometimes(), {"x": torch.randn(4, 4)}, count=4)
    batches = {"x": one.batches["x"].clone()}
    batches["x"][bad, 0, 0] = 1e7
    save_file(batches, one.file)
    one.compile(tmp_path / "m.so", *DP, *train("loss=0", "optimizer=sgd", "micro_batches=2", "non_finite=skip"))
    log, saved = one.train(tmp_path / "m.so", steps=2)
    assert [line["skipped"] for line in log] == [True, False]
    assert int(saved["train.step"]) == 1 and int(saved["train.runs"]) == 2
    one.compile(tmp_path / "m.so", *DP, *train("loss=0", "optimizer=sgd", "micro_batches=2", "non_finite=stop"))
    done = one.train(tmp_path / "m.so", steps=2, check=False)
    assert done.returncode and "finite" in done.stderr


class Single(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, dtype=dtype))

    def forward(self, x):
        return (self.weight * x).sum()


def test_masters_keep_small_updates(tmp_path):
    """40 steps of 1e-3 from 1, each of which is less than half of what bf16 can tell from 1."""
    one = Trainee(tmp_path, "single", Single(torch.bfloat16), {"x": torch.ones(8).bfloat16()}, count=1)
    for masters, want in (("f32", 0.96), ("none", 1.0)):
        one.compile(tmp_path / "m.so", "--mesh", "dp=1", *train("loss=0", "optimizer=sgd", f"precision={{masters: {masters}}}"))
        _, saved = one.train(tmp_path / "m.so", steps=40, lr=1e-3)
        assert saved["weight"].float().tolist() == pytest.approx([want] * 8, abs=2 ** -9)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(5, 6), nn.BatchNorm1d(6)

    def forward(self, x):
        return self.norm(self.linear(x)).float().square().sin().mean()


def test_batch_norm_of_bf16(tmp_path):
    torch.manual_seed(1)
    module = Normed().bfloat16().train()
    one = Trainee(tmp_path, "normed", module, {"x": torch.randn(8, 5).bfloat16()}, train=True)
    one.compile(tmp_path / "m.so", *DP, *train("loss=0", "optimizer=sgd"))
    log, saved = one.train(tmp_path / "m.so", steps=3)
    wanted, _, losses, _ = one.pytorch("sgd", steps=3)
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=2e-2)
    for name in ("norm.running_mean", "norm.running_var"):
        assert difference(saved[name], wanted.state_dict()[name]) <= 2e-2, name


class Squared(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(*sizes))

    def forward(self, x):
        return (self.weight * x).sum(-1).square().sum()


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
@pytest.mark.parametrize("sizes, settings", [((64,), ["optimizer=adamw"]), ((33, 20), ["optimizer=adamw", "clip_norm=0.5", "non_finite=skip"])])
def test_reductions_beside_updates_on_a_device(tmp_path, sizes, settings):
    """Where one kernel reduces and updates, threads without an element of their own must not read what others write."""
    one = Trainee(tmp_path, "squared", Squared(*sizes), {"x": torch.randn(*sizes)}, count=2)
    results = []
    for target, device in (((), ()), (("--target", "cuda:emulated"), ("--device", "emulated"))):
        one.compile(tmp_path / "m.so", "--mesh", "dp=1", *train("loss=0", *settings), *target)
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        run(tool("shard-run"), tmp_path / "m.so", *device, "--weights", one.source, "--batches", one.file, "--steps", 3, "--lr", 1e-2, "--log", log,
            "--save", tmp_path / "c")
        results.append(load_file(tmp_path / "c"))
    for name, value in results[0].items():
        assert difference(results[1][name], value) <= 1e-4, name
