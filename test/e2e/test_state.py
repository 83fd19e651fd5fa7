# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that change their buffers: the buffer and its new value have one layout, run after run."""
import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from plans import places
from test_bad_input import refused

STEPS = 3


class Counter(torch.nn.Module):
    """Changed by constants alone, and used beside a sharded product."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.arange(1.0, 8.0))
        self.weight = torch.nn.Parameter(torch.randn(7, 5))

    def forward(self, x):
        self.count += 1
        self.scale.mul_(1.5)
        return x @ self.weight.t() * self.scale, self.count * 2


class Mean(torch.nn.Module):
    """Changed by a mean of what the sharded weight makes, and by a sum over what it contracts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(7))
        self.register_buffer("total", torch.ones(6, 3))
        self.weight = torch.nn.Parameter(torch.randn(7, 5))
        self.down = torch.nn.Parameter(torch.randn(3, 7))

    def forward(self, x):
        y = x @ self.weight.t()
        self.mean.mul_(0.9).add_(y.mean(0) * 0.1)
        self.total += y @ self.down.t()
        return y * self.mean, self.total + 1


class Cache(torch.nn.Module):
    """Attention of one new token over a window of keys and values, written at a position that is state too."""

    def __init__(self, heads=6, size=4, length=5):
        super().__init__()
        self.heads, self.size = heads, size
        width = heads * size
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.register_buffer("keys", torch.zeros(4, heads, length, size))
        self.register_buffer("values", torch.zeros(4, heads, length, size))
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    def split(self, x):
        return x.view(x.shape[0], 1, self.heads, self.size).transpose(1, 2)

    def forward(self, x):
        places = torch.arange(self.keys.shape[2])
        here = (places == self.position).view(1, 1, -1, 1)
        self.keys.copy_(torch.where(here, self.split(self.k(x)), self.keys))
        self.values.copy_(torch.where(here, self.split(self.v(x)), self.values))
        seen = (places <= self.position).view(1, 1, 1, -1)
        self.position += 1
        y = torch.nn.functional.scaled_dot_product_attention(self.split(self.q(x)), self.keys, self.values,
                                                             attn_mask=seen)
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Exchange(torch.nn.Module):
    """New values that cannot be written over the old ones as they are computed: two buffers change places, one is transposed, one is
    returned as it was, and one is read behind its change."""

    def __init__(self):
        super().__init__()
        for name, shape in (("a", (7, 5)), ("b", (7, 5)), ("square", (5, 5)), ("count", (3,)), ("last", (6, 5))):
            self.register_buffer(name, torch.randn(shape))

    def forward(self, x):
        a, b, count = self.a.clone(), self.b.clone(), self.count.clone()
        self.a.copy_(b)
        self.b.copy_(a)
        self.square.copy_(self.square.t() * 0.5)
        self.count += 1
        y = x @ self.a.t() + (self.last @ self.b.t()).tanh()
        self.last.copy_(x * self.last)
        return y, self.square.sum(0), count, self.last.relu()


MODELS = {
    "counter": (Counter, (6, 5), places("param:weight=tp:S(0)")),
    "mean": (Mean, (6, 5), places("param:weight=tp:S(0)")),
    # The sum over the sharded dim is partial before it is added to the buffer.
    "mean_partial": (Mean, (6, 5), places("param:weight=tp:S(0)", "param:down=tp:S(1)", "param:mean=R")),
    "mean_stored": (Mean, (6, 5), places("param:mean=tp:S(0)", "param:total=tp:S(1)")),
    "exchange": (Exchange, (6, 5), places("param:a=tp:S(0)", "param:square=tp:S(0)", "param:last=tp:S(1)")),
    "cache": (Cache, (4, 24), places("module:{q,k,v}=colwise", "module:o=rowwise")),
}


def export(name, folder):
    """The model, and what PyTorch's returns at step STEPS."""
    torch.manual_seed(0)
    build, shape, plan = MODELS[name]
    model, x = build(), torch.randn(shape)
    exported = torch.export.export(copy.deepcopy(model), (x,))
    torch.export.save(exported, folder / "model.pt2")
    save_file({str(n): x for n in exported.graph_signature.user_inputs}, folder / "in.safetensors")
    with torch.no_grad():
        for _ in range(STEPS):
            wanted = model(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    return plan, dict(zip(exported.graph_signature.user_outputs, wanted, strict=True))


def layouts(program):
    """Of the buffers that the program changes, as they are kept and as they are written."""
    manifest = json.loads(run(tool("shard-run"), program, "--manifest").stdout)
    kept = {p["names"][0]: p["layout"] for p in manifest["parameters"] if p.get("mutable")}
    written = {o["updates"]: o["layout"] for o in manifest["entries"][0]["outputs"] if o["kind"] == "state"}
    assert kept == written
    return kept


@pytest.mark.parametrize("mesh", ["tp=2", "tp=3", "tp=4", "dp=2,tp=2"])
@pytest.mark.parametrize("name", MODELS)
def test_steps(tmp_path, name, mesh):
    plan, wanted = export(name, tmp_path)
    batch = places("input:0=dp:S(0)") if mesh.startswith("dp") else []
    program, out = tmp_path / "model.so", tmp_path / "out.safetensors"
    run(tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", mesh, *plan, *batch, "-o", program)
    layouts(program)
    run(tool("shard-run"), program, "--weights", tmp_path / "model.pt2", "--inputs", tmp_path / "in.safetensors",
        "--outputs", out, "--steps", STEPS)
    got = load_file(out)
    assert got.keys() == wanted.keys()
    for output, value in wanted.items():
        assert got[output].dtype == value.dtype
        np.testing.assert_allclose(got[output], value, rtol=1e-4, atol=1e-5, err_msg=output)


@pytest.mark.parametrize("name, kept", [
    # What is made of constants stays whole; what is made of shards stays where they are: no rank asks another for it.
    ("counter", {"count": "[R]", "scale": "[R]"}),
    ("mean", {"mean": "[S(0)]", "total": "[R]"}),
    ("mean_partial", {"mean": "[R]", "total": "[R]"}),
    ("cache", {"keys": "[S(1)]", "values": "[S(1)]", "position": "[R]"}),
])
def test_layouts(tmp_path, name, kept):
    plan, _ = export(name, tmp_path)
    program = tmp_path / "model.so"
    run(tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", "tp=2", *plan, "-o", program)
    assert layouts(program) == kept


def test_positions_count_what_the_model_returns(tmp_path):
    _, wanted = export("mean", tmp_path)
    compile_with = lambda *specs: (tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", "tp=2", *places(*specs),
                                   "-o", tmp_path / "model.so")
    run(*compile_with("output:0=tp:S(1)", "output:1=tp:S(0)"))
    outputs = json.loads(run(tool("shard-run"), tmp_path / "model.so", "--manifest").stdout)["entries"][0]["outputs"]
    assert [o["layout"] for o in outputs if o["kind"] == "user"] == ["[S(1)]", "[S(0)]"]
    refused(*compile_with("output:2=R"), says="there is no output 2; the model has 2")
    refused(*compile_with("output:mean=R"), says="'mean' is a parameter or buffer: its new value is placed as it is; "
                                                 "write param:mean")


@pytest.mark.parametrize("spec", ["param:weight=tp:P(sum)", "param:mean=tp:P(max)"])
def test_weights_are_not_partial(tmp_path, spec):
    export("mean", tmp_path)
    refused(tool("shardc"), "compile", tmp_path / "model.pt2", "--mesh", "tp=2", "--place", spec,
            "-o", tmp_path / "model.so", says=["does not fit", "write tp:R for a whole copy on every rank"])
