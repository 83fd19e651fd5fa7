# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over a sharded sequence as a ring (--ring-attention): PyTorch's outputs and gradients, for queries and keys that ranks have in equal and
unequal shares, causal, masked and grouped, on several axes; and what it saves."""
import json
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import run, tool
from exported import F64, Exported, fixture_of
from plans import places
import test_joint_graphs
from test_sequence_attention import Cross, Model


def hiding(queries, keys):
    """Query 0 sees nothing, and query 1 only what the last rank has."""
    mask = torch.rand(queries, keys) < 0.6
    mask[0], mask[1, :-2] = False, False
    return mask


def added(queries, keys):
    """Likewise, as what is added to the scores, per head."""
    mask = torch.randn(2, queries, keys, dtype=F64)
    return mask.masked_fill(~hiding(queries, keys), -torch.inf)


def sequence(length):
    return torch.randn(2, length, 8, dtype=F64)


MODELS = {
    "causal": lambda: (Model((True,), (True,)), {"x": sequence(16)}),
    "uneven": lambda: (Model((True,), (False,)), {"x": sequence(11)}),
    "plain": lambda: (Model((False,)), {"x": sequence(8)}),
    "grouped": lambda: (Model((True, 2)), {"x": sequence(12)}),
    "masked": lambda: (Model((False, 2)), {"x": sequence(9), "mask": hiding(9, 9)}),
    "added": lambda: (Model((False,)), {"x": sequence(9), "mask": added(9, 9)}),
    "row": lambda: (Model((False,)), {"x": sequence(8), "mask": torch.rand(2, 1, 1, 8) < 0.8}),
    # In chunks, a rank has keys and no queries.
    "fewer": lambda: (Cross(causal=True), {"x": sequence(9), "memory": sequence(12)}),
    "fewer, even": lambda: (Cross(causal=True), {"x": sequence(6), "memory": sequence(8)}),
    "more": lambda: (Cross(causal=True), {"x": sequence(12), "memory": sequence(8)}),
    "cross": lambda: (Cross(), {"x": sequence(6), "memory": sequence(13), "mask": hiding(6, 13)}),
}

exported = fixture_of(MODELS)


@pytest.mark.parametrize("name, mesh, plan, how", [
    ("plain", "sp=2", "input:x=sp:S(1)", "all"), ("plain", "sp=8", "input:x=sp:S(1)", "all"),
    ("causal", "sp=2", "input:x=sp:S(1)", "all"), ("causal", "sp=4", "input:x=sp:S(1)", "all"),
    ("causal", "sp=2", "input:x=sp:S(1)", "balanced"), ("causal", "sp=4", "input:x=sp:S(1)", "balanced"),
    ("causal", "sp=8", "input:x=sp:S(1)", "balanced"), ("causal", "dp=2,sp=4", "input:x=dp:S(0),sp:S(1)", "balanced"),
    ("causal", "a=2,b=2", "input:x=a:S(1),b:S(1)", "balanced"),
    ("uneven", "sp=3", "input:x=sp:S(1)", "all"), ("uneven", "sp=4", "input:x=sp:S(1, sizes = [4, 0, 6, 1])", "balanced"),
    ("grouped", "sp=3", "input:x=sp:S(1)", "balanced"), ("grouped", "dp=2,sp=2", "input:x=dp:S(0),sp:S(1)", "all"),
    ("masked", "sp=3", "input:x=sp:S(1)", "all"), ("added", "sp=4", "input:x=sp:S(1)", "all"), ("row", "sp=2", "input:x=sp:S(1)", "all"),
    ("cross", "sp=2", ("input:x=sp:S(1)", "input:memory=sp:S(1)"), "all"), ("cross", "sp=3", ("input:x=R", "input:memory=sp:S(1)"), "all"),
    ("fewer", "sp=4", ("input:x=sp:S(1)", "input:memory=sp:S(1)"), "all"),
    ("fewer, even", "sp=4", ("input:x=sp:S(1)", "input:memory=sp:S(1)"), "balanced"),
    ("more", "sp=4", ("input:x=sp:S(1)", "input:memory=sp:S(1)"), "all"),
])
def test_gradients(exported, name, mesh, plan, how):
    exported(name).run(mesh, *places(*([plan] if isinstance(plan, str) else plan)), "--ring-attention", how)


class Plain(nn.Module):
    """Attention of almost its inputs, so that its own rounding is most there is."""

    def __init__(self, t, causal):
        super().__init__()
        self.causal = causal
        self.q, self.k, self.v = (nn.Parameter((1 + torch.rand(16)).to(t)) for _ in range(3))

    def forward(self, q, k, v):
        y = F.scaled_dot_product_attention(q * self.q, k * self.k, v * self.v, is_causal=self.causal)
        return (y.float() if y.dtype == torch.bfloat16 else y).square().mean(), y


class Loose(Exported):
    """Within some roundings to bf16 of what PyTorch computes in f64."""

    @staticmethod
    def compare(got, want, what):
        assert got.shape == want.shape and got.dtype == want.dtype, what
        limit = 2.0 ** -6 * want.abs().max().float()
        assert (got.float() - want.float()).abs().max() <= limit, f"{what}: {(got.float() - want.float()).abs().max()} > {limit}"


SHARDED = places(*(f"input:{name}=sp:S(2)" for name in "qkv"))


def plain_inputs(length, t):
    return {name: torch.randn(2, 3, length, 16).to(t) for name in "qkv"}


@pytest.mark.parametrize("causal, how", [(False, "all"), (True, "all"), (True, "balanced")])
def test_bf16(tmp_path, causal, how):
    """Partial results and the sums that travel are f32."""
    torch.manual_seed(3)
    inputs = plain_inputs(64, torch.bfloat16)
    model = Loose(tmp_path, Plain(torch.bfloat16, causal), inputs)
    exact = Plain(F64, causal)
    exact.load_state_dict(model.module.state_dict())
    loss, y = exact(*(x.double() for x in inputs.values()))
    loss.backward()
    model.outputs = [loss.detach().float(), y.detach().bfloat16()]
    model.grads = {n: p.grad.bfloat16() for n, p in exact.named_parameters()}
    model.run("sp=4", *SHARDED, "--ring-attention", how, "--save-stages", tmp_path / "stages")
    text = (tmp_path / "stages/3-local.mlir").read_text()
    assert "reduce_scatter" in text
    text = (tmp_path / "stages/4-scheduled.mlir").read_text().split("func.func @gradients")[1]
    assert "reduce_scatter" not in text and "all_gather" not in text
    partial = re.findall(r"flash_attention(?:_backward)? .*? partial : .*? -> \(tensor<[0-9x]*x(b?f[0-9]+)>", text)
    assert set(partial) == {"f32"}


def test_f32(tmp_path):
    torch.manual_seed(4)
    Exported(tmp_path, Plain(torch.float32, True), plain_inputs(48, torch.float32)).run("sp=3", *SHARDED, "--ring-attention", "balanced")


def test_emulated_device(tmp_path):
    torch.manual_seed(5)
    module, inputs = Model((True,)), {"x": torch.randn(1, 16, 8)}
    model = Exported(tmp_path, module, inputs)
    for how in ("all", "balanced"):
        run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=4", *places("input:x=sp:S(1)"), "--gradients", 0, "--target", "cuda:emulated",
            "--ring-attention", how, "-o", tmp_path / "m.so")
        model.answer("--inputs", tmp_path / "in.safetensors", "--device", "emulated", what=how)


def permutes(folder):
    return (folder / "stages/4-scheduled.mlir").read_text().count("dist.permute")


def test_batch_known_when_it_runs(tmp_path):
    torch.manual_seed(8)
    model = Exported(tmp_path, Model((True, 2)).double(), {"x": sequence(16)}, dynamic=["x:0=n:1:8"])
    model.run("sp=4", *places("input:x=sp:S(1)"), "--ring-attention", "balanced", "--save-stages", tmp_path / "stages")
    assert permutes(tmp_path)


class Loss(Model):
    def forward(self, x):
        return super().forward(x)[0]


def test_joint_graph(tmp_path, monkeypatch):
    """PyTorch's own export of a forward with its backward."""
    monkeypatch.setitem(test_joint_graphs.MODELS, "sequence", lambda: (Loss((True,)), {"x": torch.randn(2, 16, 8)}))
    reference = test_joint_graphs.Reference(tmp_path, "sequence", "overloads")
    reference.check(tmp_path, "sp=4", ["input:x=sp:S(1)"], ["--ring-attention", "balanced", "--save-stages", tmp_path / "stages"])
    assert permutes(tmp_path)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Keys and values are most of what a rank has."""
    torch.manual_seed(6)
    return Exported(tmp_path_factory.mktemp("long"), Model((True,), (True,)), {"x": torch.randn(1, 2048, 8)})


def compiled(model, *options):
    """What is predicted of an entry, and which collectives it has."""
    so = model.folder / "m.so"
    run(tool("shardc"), "compile", model.folder / "m.pt2", "--mesh", "sp=8", *places("input:x=sp:S(1)"), *options, "-o", so,
        "--save-stages", model.folder / "stages")
    entry = json.loads(run(tool("shard-run"), so, "--manifest").stdout)["entries"][-1]
    text = (model.folder / "stages/4-scheduled.mlir").read_text().split("func.func @" + entry["name"])[1]
    return entry, set(re.findall(r"dist\.(permute|all_gather)\b", text))


@pytest.mark.parametrize("gradients", [(), ("--gradients", "0")])
def test_memory_limit_that_gathered_keys_exceed(long, gradients):
    gathered, kinds = compiled(long, *gradients, "--ring-attention", "off")
    assert kinds == {"all_gather"}
    for how in ("all", "balanced"):
        ring, kinds = compiled(long, *gradients, "--ring-attention", how)
        assert kinds == {"permute"}
        assert max(ring["arena_bytes"]) < 0.85 * max(gathered["arena_bytes"])
        assert ring["predicted"]["peak_bytes"] < 0.85 * gathered["predicted"]["peak_bytes"]
    limit = (ring["predicted"]["peak_bytes"] + gathered["predicted"]["peak_bytes"]) // 2
    if not gradients:  # where nothing is scarce, few bytes are gathered at once
        assert compiled(long)[1] == {"all_gather"}
    limited, kinds = compiled(long, *gradients, "--memory-limit", str(limit))
    assert kinds == {"permute"} and limited["predicted"]["peak_bytes"] <= limit
