# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of models, from PyTorch's export of a forward with a loss to the entry `gradients`, on one rank and on several:
each is as near to PyTorch's as 1e-5 of the largest of its kind (weights, biases)."""
import functools
import json
import math
import sys

import pytest
import torch

from conftest import ROOT, run, tool
from model_gradients import Reference
from plans import places

BUILDER = f'''
import sys
sys.path.insert(0, "{ROOT}/test/models")
import torch
from torch import nn
from torch.nn import functional as F
import builders
import with_loss

class MeanSquare(nn.Module):
    """Two layers, and a parameter that nothing uses."""
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 20), nn.Linear(20, 5)
        self.unused = nn.Parameter(torch.randn(3))
    def forward(self, x, target):
        return F.mse_loss(self.second(F.relu(self.first(x))), target)

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
        return with_loss.Pairs(encoder).eval(), inputs
    if kind == "image":
        return Image().eval(), {{"x": torch.randn(2, 3, 11, 9), "labels": torch.tensor([1, 3])}}
    model, inputs = getattr(builders, kind)()
    return with_loss.Language(model, returns_logits=True).eval(), inputs
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


DATA = ["input:*=dp:S(0)"]
LLAMA = ["module:*layers.*.self_attn.{q,k,v}_proj=colwise", "module:*layers.*.self_attn.o_proj=rowwise",
         "module:*layers.*.mlp.{gate,up}_proj=colwise", "module:*layers.*.mlp.down_proj=rowwise"]
GPT2 = ["module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise", "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise"]
MINILM = ["module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise",
          "module:*.intermediate.dense=colwise", "module:*.layer.*.output.dense=rowwise"]
SEQUENCE = ["module:*.ln_1=sequence", "module:*.ln_2=sequence", "module:*.ln_f=sequence"]
# Sizes that the meshes do not divide are among these: 9 rows, 20 features, 5 outputs, 6 heads.
SHARDED = {
    "mse-tp3": ("mse", "tp=3", ["module:first=colwise", "module:second=rowwise"]),
    "mse-dp4": ("mse", "dp=4", [*DATA, "param:*=dp:S(0)"]),
    "mse-dp2-tp2": ("mse", "dp=2,tp=2", [*DATA, "module:first=colwise", "module:second=rowwise"]),
    "gpt2-tp4": ("gpt2", "tp=4", GPT2),
    "gpt2-tp4-sequence": ("gpt2", "tp=4", [*GPT2, *SEQUENCE]),
    "gpt2-tp4-vocabulary": ("gpt2", "tp=4", [*GPT2, "module:*wte=embedding_rowwise"]),
    "gpt2-sharded": ("gpt2", "dp=2", [*DATA, "param:*=dp:S(0)"]),
    "llama-dp2-tp2": ("llama", "dp=2,tp=2", [*DATA, *LLAMA]),
    "llama-tp4-vocabulary": ("llama", "tp=4", [*LLAMA, "module:*embed_tokens=embedding_rowwise", "module:*lm_head=colwise"]),
    "minilm-dp2-tp2": ("minilm", "dp=2,tp=2", [*DATA, *MINILM]),
    "image-tp3": ("image", "tp=3", ["param:*=tp:S(0)"]),
}


@pytest.fixture(scope="module")
def reference(folder):
    def make(kind):
        import gradient_models
        return Reference(folder, kind, f"{folder}/gradient_models.py:build_{kind}", *gradient_models.make(kind))

    return functools.cache(make)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(reference, tmp_path, kind):
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", "r=1", "--gradients", "0", "-o", program)
    got = model.outputs(program, "gradients", 1)
    model.check(got)
    # The forward is an entry as before.
    loss = next(name for name in got if name not in model.wants)
    torch.testing.assert_close(model.outputs(program, "forward", 1)[loss], model.loss, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", SHARDED)
def test_sharded_gradients(reference, tmp_path, case):
    check(reference, tmp_path, *SHARDED[case])


def check(reference, tmp_path, kind, mesh, plan):
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "-o", program)
    model.check(model.outputs(program, "gradients", math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))))


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "20MiB"]], ids=["free", "limited"])
@pytest.mark.parametrize("case, pieces", [("gpt2-tp4-sequence", "2"), ("llama-dp2-tp2", "2"), ("mse-tp3", "2"),
                                          ("gpt2-tp4-sequence", "ring")])
def test_gradients_in_pieces(reference, tmp_path, case, pieces, limit):
    """Collectives and products of the forward and the backward taken apart, also where memory is planned under a limit."""
    kind, mesh, plan = SHARDED[case]
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "--chunk-collectives", pieces,
        *limit, "-o", program)
    model.check(model.outputs(program, "gradients", math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))))


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "20MiB"]], ids=["free", "limited"])
@pytest.mark.parametrize("case", ["gpt2-tp4", "gpt2-tp4-sequence"])
def test_gradients_over_nodes(reference, tmp_path, case, limit):
    """Collectives of the forward and the backward over two nodes of two ranks, within and between them."""
    kind, mesh, plan = SHARDED[case]
    model, program = reference(kind), tmp_path / "m.so"
    (tmp_path / "pairs").write_text("name = pairs\nranks_per_node = 2\nmemory_gb_per_s = 10\nlaunch_us = 1\n"
                                    "[all_gather intra busbw]\n2 2 100\n[all_gather inter busbw]\n2 10 10\n")
    options = [model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "--topology", tmp_path / "pairs", *limit]
    run(tool("shardc"), "compile", *options, "--split-nodes", "all", "-o", program)
    model.check(model.outputs(program, "gradients", 4))
    scattered = [json.loads(run(tool("shardc"), "explain", *options, "--bucket=false", *split, "--format", "json").stdout)
                 ["totals"]["reduce_scatter"]["count"] for split in ([], ["--split-nodes", "all"])]
    assert scattered[1] > scattered[0]


@pytest.mark.parametrize("partial", ["off", "cheapest"])
def test_partial_gradients(reference, tmp_path, partial):
    """What becomes of a gradient whose value was partial changes the bytes, not the gradients."""
    kind, mesh, plan = SHARDED["llama-dp2-tp2"]
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "--partial-gradients", partial,
        "-o", program)
    model.check(model.outputs(program, "gradients", 4))


def test_a_placed_model(reference, tmp_path):
    """What --save-stages wrote of the placed forward is differentiated as it is."""
    kind, mesh, plan = SHARDED["mse-dp2-tp2"]
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--save-stages", tmp_path, "-o", program)
    run(tool("shardc"), "compile", tmp_path / "2-placed.mlir", "--gradients", "0", "-o", program)
    model.check(model.outputs(program, "gradients", 4))
