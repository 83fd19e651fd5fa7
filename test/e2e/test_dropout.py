# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with dropout: their training on every mesh is PyTorch's with the same numbers, which a generator of the reference
draws for it; and what becomes of them in inference."""
import json
import math
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from training import Trainee, difference, shardc_export

sys.path.insert(0, str(ROOT / "test" / "reference"))
import random_ops  # noqa: E402

P = 0.25


class Block(nn.Module):
    """Attention over grouped heads and a mask, dropout of weights, activations (also in place) and channels."""

    def __init__(self):
        super().__init__()
        self.embed, self.project, self.up, self.down = nn.Linear(6, 32), nn.Linear(32, 64), nn.Linear(32, 24), nn.Linear(24, 6)
        self.first, self.second, self.channels = nn.Dropout(P), nn.Dropout(0.5, inplace=True), nn.Dropout1d(P)
        self.norm = nn.BatchNorm1d(5)

    def forward(self, x, y):
        h = self.norm(self.embed(x))
        q, k, v = self.project(self.first(h)).split([32, 16, 16], -1)
        q, k, v = (t.unflatten(-1, (-1, 8)).transpose(1, 2) for t in (q, k, v))
        mask = torch.ones(5, 5, dtype=torch.bool).tril()
        a = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=P if self.training else 0.0, enable_gqa=True)
        h = h + a.transpose(1, 2).flatten(-2)
        h = self.second(torch.tanh(self.up(h)) * 1.5)
        return F.mse_loss(self.down(self.channels(h)), y)


class Numbers:
    """The generator of a program: `draw` as each op of it draws in turn."""

    def __init__(self, seed=0):
        self.seed, self.offset = seed, 0

    def kept(self, shape, p):
        count = math.prod(shape)
        words = random_ops.philox_words(torch.arange(count).reshape(shape), torch.tensor(self.seed), torch.tensor(self.offset))
        self.offset += (count + 3) // 4 * 4
        return random_ops.uniform(words, torch.float32) < torch.tensor(1 - p)

    def dropout(self, x, p=0.5, training=True, inplace=False):
        return x * self.kept(x.shape, p) / (1 - p) if training else x

    def channels(self, x, p=0.5, training=True, inplace=False):
        return x * self.kept([*x.shape[:2], *[1] * (x.dim() - 2)], p) / (1 - p) if training else x

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~attn_mask, -torch.inf)
        return self.dropout(scores.softmax(-1), dropout_p, dropout_p > 0) @ v


@pytest.fixture(scope="module")
def trainee(tmp_path_factory):
    torch.manual_seed(0)
    inputs = {"x": torch.randn(4, 5, 6, dtype=torch.float64), "y": torch.randn(4, 5, 6, dtype=torch.float64)}
    return Trainee(tmp_path_factory.mktemp("dropout"), "block", Block().double(), inputs, train=True)


def with_numbers(monkeypatch, seed=0):
    numbers = Numbers(seed)
    monkeypatch.setattr(F, "dropout", numbers.dropout)
    monkeypatch.setattr(F, "dropout1d", numbers.channels)
    monkeypatch.setattr(F, "scaled_dot_product_attention", numbers.attention)
    return numbers


DP, TP = ["--place", "input:*=dp:S(0)"], ["--place", "param:up.weight=tp:S(0)", "--place", "param:project.weight=tp:S(0)"]
ADAMW = ["--train", "loss=0", "--train", "optimizer=adamw"]


@pytest.mark.parametrize("mesh, options, micro_batches", [
    ("r=1", [], 1), ("dp=3", [*DP, "--train", "zero=2"], 2), ("dp=2,tp=2", [*DP, *TP, "--recompute", "*"], 2)], ids=["one", "dp", "tp"])
def test_training(trainee, tmp_path, monkeypatch, mesh, options, micro_batches):
    numbers = with_numbers(monkeypatch)
    module, _, losses, _ = trainee.pytorch("adamw", micro_batches=micro_batches)
    trainee.compile(tmp_path / "step.so", "--mesh", mesh, *options, *ADAMW, "--train", f"micro_batches={micro_batches}")
    log, saved = trainee.train(tmp_path / "step.so")
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        assert difference(saved[name], value) < 1e-8, name
    assert int(saved["random.offset"]) == numbers.offset > 0
    # Between the steps, the model in inference: nothing is dropped, and norms have their running statistics.
    save_file(trainee.inputs, tmp_path / "inputs.safetensors")
    run(tool("shard-run"), tmp_path / "step.so", "--entry", "forward", "--weights", tmp_path / "step.checkpoint.safetensors",
        "--inputs", tmp_path / "inputs.safetensors", "--outputs", tmp_path / "outputs.safetensors")
    module.eval()
    monkeypatch.undo()
    (loss,) = load_file(tmp_path / "outputs.safetensors").values()
    assert difference(loss, module(**trainee.inputs)) < 1e-8


def test_resumed_on_another_mesh(trainee, tmp_path, monkeypatch):
    with_numbers(monkeypatch, 9)
    _, _, losses, _ = trainee.pytorch("adamw")
    first, second = tmp_path / "first.so", tmp_path / "second.so"
    trainee.compile(first, "--mesh", "dp=2", *DP, *ADAMW, "--train", "zero=1")
    trainee.compile(second, "--mesh", "tp=2", *TP, *ADAMW)
    log, saved = trainee.train(first, "--seed", 9, steps=2)
    assert int(saved["random.seed"]) == 9
    log += trainee.train(second, "--resume", first.with_suffix(".checkpoint.safetensors"), weights=False)[0]
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)


def test_emulated_device(trainee, tmp_path, monkeypatch):
    with_numbers(monkeypatch)
    _, _, losses, _ = trainee.pytorch("adamw", steps=2)
    trainee.compile(tmp_path / "step.so", "--mesh", "dp=2", *DP, *ADAMW, "--target", "cuda:emulated")
    log, _ = trainee.train(tmp_path / "step.so", "--device", "emulated", steps=2)
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)


class EveryAttention(nn.Module):
    """Attention that drops weights, with every option; outputs are named by their places."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(6, 32), nn.Linear(6, 16), nn.Linear(6, 24)

    def forward(self, x):
        p = 0.5 if self.training else 0.0
        q, k, v = (t.unflatten(-1, (n, -1)).transpose(1, 2) for t, n in ((self.q(x), 4), (self.k(x), 2), (self.v(x), 2)))
        few = q[:, :2]
        seen = torch.arange(5) % 2 == 0
        hidden = seen[:, None] | seen
        hidden[3] = False  # a query that sees no key
        causal = torch.ones(5, 5, dtype=torch.bool).tril()
        bias = torch.arange(25.0, dtype=x.dtype).view(5, 5) / 10
        outputs = [F.scaled_dot_product_attention(a, b, c, dropout_p=p, **options) for (a, b, c), options in [
            ((few, k, v), {}), ((few, k, v), {"is_causal": True}), ((few[:, :, 1:4], k, v), {"scale": 0.3, "is_causal": True}),
            ((q, k, v), {"enable_gqa": True, "is_causal": True}), ((q, k, v), {"enable_gqa": True, "attn_mask": bias, "scale": 2.0}),
            ((few, k, v), {"attn_mask": hidden}), ((few, k, v), {"attn_mask": causal}), ((few, k, v), {"attn_mask": bias.expand(x.shape[0], 1, 5, 5)}),
            ((few[:, 0], k[:, 1], v[:, 0]), {}), ((few, k[:1, :1], v), {})]]
        return sum((output**2).mean() for output in outputs), *outputs


@pytest.mark.parametrize("mesh, options", [("r=1", []), ("dp=2,tp=2", ["--place", "input:*=dp:S(0)", "--place", "param:*=tp:S(0)"])], ids=["one", "four"])
def test_attention_is_one_op_in_inference(tmp_path, mesh, options):
    torch.manual_seed(0)
    trainee = Trainee(tmp_path, "attentions", EveryAttention().double(), {"x": torch.randn(4, 5, 6, dtype=torch.float64)}, train=True)
    trainee.compile(tmp_path / "step.so", "--mesh", mesh, *options, "--train", "loss=0", "--save-stages", tmp_path / "stages")
    (placed,) = (tmp_path / "stages").glob("[0-9]-placed.mlir")
    functions = placed.read_text().split("func.func ")[1:]
    (forward,) = (f for f in functions if f.startswith("@forward"))
    (step,) = (f for f in functions if f.startswith("@train_step"))
    assert forward.count("aten.scaled_dot_product_attention ") == 10 and "aten.scaled_dot_product_attention" not in step
    assert not any(op in forward for op in ("aten.matmul", "aten.softmax", "aten.random", "aten.dropout", "training_attention"))
    # The mask that a triangle is needs no tensor.
    assert forward.count(" causal ") == 4 and forward.count(" mask(") == 3
    save_file(trainee.inputs, tmp_path / "x.safetensors")
    run(tool("shard-run"), tmp_path / "step.so", "--entry", "forward", "--weights", trainee.source, "--inputs", tmp_path / "x.safetensors",
        "--outputs", tmp_path / "out.safetensors")
    got, want = load_file(tmp_path / "out.safetensors"), trainee.module.eval()(**trainee.inputs)
    manifest = json.loads(run(tool("shard-run"), tmp_path / "step.so", "--manifest").stdout)
    (entry,) = (e for e in manifest["entries"] if e["name"] == "forward")
    for output, value in zip(entry["outputs"], want, strict=True):
        assert difference(got[output["name"]], value) < 1e-8, output["name"]


class Draws(nn.Module):
    """One tensor of each operator that draws."""

    def forward(self, x):
        n = x.shape[0]
        noise = torch.empty(n, 300)
        return {
            "rand": torch.rand(n, 300), "rand_like": torch.rand_like(x, dtype=torch.float64), "randn": torch.randn(n, 300),
            "randn_like": torch.randn_like(x.bfloat16()), "randint": torch.randint(-3, 5, (n, 300)), "randint_high": torch.randint(9, (n, 300)),
            "randint_like": torch.randint_like(x, 2, 5), "uniform": torch.empty_like(x, dtype=torch.float16).uniform_(-1, 3),
            "normal_": noise.normal_(1, 2), "normal": torch.normal(x, 0.5), "normal_std": torch.normal(2.0, x + 1),
            "bernoulli": torch.bernoulli(x), "bernoulli_p": torch.bernoulli(x, 0.3), "bernoulli_": torch.empty_like(x).bernoulli_(0.8),
            "dropout": F.dropout(x + 1, 0.1, True), "channels": F.dropout2d(torch.ones(n, 300, 1, 2), 0.4, True)}


# Mean and variance of each of them.
MOMENTS = {
    "rand": (1 / 2, 1 / 12), "rand_like": (1 / 2, 1 / 12), "randn": (0, 1), "randn_like": (0, 1), "randint": (0.5, 63 / 12),
    "randint_high": (4, 80 / 12), "randint_like": (3, 8 / 12), "uniform": (1, 16 / 12), "normal_": (1, 4), "normal": (0.5, 0.25),
    "normal_std": (2, 2.25), "bernoulli": (0.5, 0.25), "bernoulli_p": (0.3, 0.21), "bernoulli_": (0.8, 0.16),
    "dropout": (1.5, 1.5**2 / 9), "channels": (1, 2 / 3)}


@pytest.mark.parametrize("form", ["composite", "training"])
def test_imported_numbers(tmp_path, form):
    x = torch.full((200, 300), 0.5)
    torch.export.save(shardc_export.export(Draws(), (x,), dynamic=["x:0=n"], form=form, train=True), tmp_path / "draws.pt2")
    save_file({"x": x}, tmp_path / "x.safetensors")
    run(tool("shardc"), "compile", tmp_path / "draws.pt2", "--mesh", "dp=2", "--place", "input:x=dp:S(0)", "-o", tmp_path / "draws.so")
    found = []
    for steps in (1, 1, 2):
        run(tool("shard-run"), tmp_path / "draws.so", "--inputs", tmp_path / "x.safetensors", "--outputs", tmp_path / "out.safetensors", "--steps", steps)
        found.append(load_file(tmp_path / "out.safetensors"))
    manifest = json.loads(run(tool("shard-run"), tmp_path / "draws.so", "--manifest").stdout)
    names = [output["name"] for output in manifest["entries"][0]["outputs"] if output["kind"] == "user"]
    want = Draws()(x)
    for name, got, again, later in zip(want, *[[f[n] for n in names] for f in found], strict=True):
        assert got.dtype == want[name].dtype and got.shape == want[name].shape, name
        assert torch.equal(got, again) and not torch.equal(got, later), name
        mean, variance = MOMENTS[name]
        values = got.double()
        count = 60000
        slack = {"randn_like": 0.01, "uniform": 0.001}.get(name, 0)  # numbers of few digits
        assert abs(values.mean() - mean) < 5 * (variance / count) ** 0.5 + slack, name
        assert abs(values.var() / variance - 1) < 5 * (3 / count) ** 0.5 + slack, name
    assert torch.equal(*found[0][names[-1]].unbind(-1))


@pytest.mark.parametrize("form", ["decomposed", "overloads"])
def test_joint_graphs(tmp_path, form):
    """The backward that PyTorch exported reads the mask of the forward."""
    from test_joint_graphs import joint

    class Squares(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.arange(1.0, 61).view(3, 20))

        def forward(self, x):
            y = F.dropout(self.w * x, 0.3, True)
            return (y * y).sum(), y.detach() + 0
    x = torch.ones(3, 20)
    torch.export.save(joint(Squares(), {"x": x}, form), tmp_path / "joint.pt2")
    save_file({"x": x}, tmp_path / "x.safetensors")
    run(tool("shardc"), "compile", tmp_path / "joint.pt2", "--mesh", "dp=2", "--place", "input:x=dp:S(0)", "-o", tmp_path / "joint.so")
    run(tool("shard-run"), tmp_path / "joint.so", "--weights", tmp_path / "joint.pt2", "--inputs", tmp_path / "x.safetensors",
        "--outputs", tmp_path / "out.safetensors")
    outputs = load_file(tmp_path / "out.safetensors")
    (gradient,) = (value for name, value in outputs.items() if name == "w")
    (y,) = (value for name, value in outputs.items() if value.shape == x.shape and name != "w")
    assert 10 < int((y == 0).sum()) < 30
    torch.testing.assert_close(gradient, 2 * y / 0.7)


class Attentions(nn.Module):
    """Every option of attention with dropout, and keys that nobody sees."""

    def forward(self, q, k, v, bias):
        hidden = torch.ones(6, 7, dtype=torch.bool).tril(-1)  # query 0 sees no key
        half = q.bfloat16(), k.bfloat16(), v.bfloat16()
        calls = ((q, k, v, None, P, True), (q, k, v, bias, P), (q, k, v, hidden, 0.5), (*half, None, P), (q[0, 0], k[0, 0], v[0, 0], bias, P))
        scales = (None, 0.3, None, None, None)
        return [F.scaled_dot_product_attention(*call, scale=scale) for call, scale in zip(calls, scales)]


def test_attention(tmp_path, monkeypatch):
    torch.manual_seed(1)
    inputs = {"q": torch.randn(2, 3, 6, 8), "k": torch.randn(2, 3, 7, 8), "v": torch.randn(2, 3, 7, 5), "bias": torch.randn(6, 7)}
    torch.export.save(shardc_export.export(Attentions(), (), inputs, train=True), tmp_path / "attention.pt2")
    save_file(inputs, tmp_path / "inputs.safetensors")
    run(tool("shardc"), "compile", tmp_path / "attention.pt2", "--mesh", "tp=3", "--place", "input:{q,k,v}=tp:S(1)", "-o", tmp_path / "attention.so")
    run(tool("shard-run"), tmp_path / "attention.so", "--inputs", tmp_path / "inputs.safetensors", "--outputs", tmp_path / "out.safetensors")
    numbers, found = Numbers(), load_file(tmp_path / "out.safetensors")
    manifest = json.loads(run(tool("shard-run"), tmp_path / "attention.so", "--manifest").stdout)
    names = [output["name"] for output in manifest["entries"][0]["outputs"] if output["kind"] == "user"]

    def attention(q, k, v, mask=None, p=0.0, is_causal=False, scale=None):
        scores = q.float() @ k.float().transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if is_causal else mask
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        return (numbers.dropout(scores.softmax(-1).nan_to_num(0), p) @ v.float()).to(q.dtype)
    monkeypatch.setattr(F, "scaled_dot_product_attention", attention)
    for name, want in zip(names, Attentions()(**inputs), strict=True):
        torch.testing.assert_close(found[name], want, rtol=1e-5 if want.dtype == torch.float32 else 0.01, atol=1e-5)


def test_refused(tmp_path):
    class Alpha(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.AlphaDropout(0.2)

        def forward(self, x):
            return self.drop(x)

    with pytest.raises(ValueError, match="alpha dropout in training is not supported: in module 'drop'"):
        shardc_export.export(Alpha(), (torch.ones(3),), train=True)
    torch.export.save(torch.export.export(Alpha().train(), (torch.ones(3),)), tmp_path / "alpha.pt2")
    done = run(tool("shardc"), "compile", tmp_path / "alpha.pt2", "--mesh", "r=1", "-o", tmp_path / "alpha.so", check=False)
    assert done.returncode and "'aten.alpha_dropout.default' in drop" in done.stderr and "in training is not supported" in done.stderr
