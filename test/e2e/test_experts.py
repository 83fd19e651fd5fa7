# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixtures of experts as `transformers` has them, in the forms that can be exported: a plain one, one with biases and gates in turns, and one
whose router chooses among groups, with a shared expert. Experts are shared out whole or in parts: outputs and gradients are PyTorch's, no
weight of an expert moves, and a layer reduces its tokens once."""
import contextlib
import functools
import importlib
import json
import math
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from model_gradients import Reference
from plans import places

BUILDER = '''
import torch

COMMON = dict(hidden_size=12, num_hidden_layers=1, num_attention_heads=2)
ROUTED = dict(n_routed_experts=6, n_shared_experts=1, moe_intermediate_size=10, n_group=3, topk_group=2)

class Loss(torch.nn.Module):
    """A layer's output, and a loss of it."""
    def __init__(self, layer):
        super().__init__()
        self.mlp = layer
    def forward(self, x):
        y = self.mlp(x)
        y = y[0] if isinstance(y, tuple) else y
        return (y * y).mean(), y

def make(kind, form, experts=5, tokens=(2, 7)):
    import transformers
    torch.manual_seed(3)
    if kind == "plain":
        from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock as Layer
        config = transformers.MixtralConfig(**COMMON, intermediate_size=10, num_local_experts=experts, num_experts_per_tok=2)
    elif kind == "biases":
        from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP as Layer
        config = transformers.GptOssConfig(**COMMON, intermediate_size=10, num_local_experts=experts, num_experts_per_tok=2)
    else:
        from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE as Layer
        config = transformers.DeepseekV3Config(**COMMON, **ROUTED, num_experts_per_tok=2)
    config._experts_implementation = form
    layer = Layer(config)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0, 0.5)
    return Loss(layer).eval(), dict(x=torch.randn(*tokens, 12))
'''
FORMS = ("batched_mm", "grouped_mm")
KINDS = ("plain", "biases", "groups")
TOKENS, HIDDEN = 2 * 7, 12

WHOLE = ["param:*.experts.*=tp:S(0)"]
PARTS = {
    "plain": ["param:*.gate_up_proj=tp:S(1)", "param:*.down_proj=tp:S(2)"],
    "biases": ["param:*.gate_up_proj=tp:S(2)", "param:*.gate_up_proj_bias=tp:S(1)", "param:*.down_proj=tp:S(1)"],
    "groups": ["param:*.experts.gate_up_proj=tp:S(1)", "param:*.experts.down_proj=tp:S(2)"],
}
SHARED = ["module:*.shared_experts.{gate,up}_proj=colwise", "module:*.shared_experts.down_proj=rowwise"]
DATA = ["input:x=dp:S(0)"]


def plan(kind, ways, mesh):
    of_experts = [] if ways == "alone" else WHOLE if ways == "whole" else PARTS[kind]
    return of_experts + SHARED * (kind == "groups" and bool(of_experts)) + DATA * ("dp" in mesh) + ["output:1=R"]


CASES = [("plain", "batched_mm", "tp=1", "alone"), ("biases", "grouped_mm", "tp=1", "alone"), ("groups", "grouped_mm", "tp=1", "alone"),
         ("plain", "grouped_mm", "tp=2", "whole"), ("biases", "batched_mm", "tp=2", "whole"), ("groups", "batched_mm", "tp=2", "whole"),
         ("plain", "batched_mm", "tp=3", "parts"), ("biases", "batched_mm", "tp=2", "parts"), ("groups", "grouped_mm", "tp=3", "parts"),
         ("plain", "grouped_mm", "tp=3", "whole"), ("biases", "grouped_mm", "tp=3", "whole"),
         ("biases", "grouped_mm", "dp=2", "alone"), ("plain", "batched_mm", "dp=2,tp=2", "whole"), ("groups", "grouped_mm", "dp=2,tp=2", "parts")]


@contextlib.contextmanager
def references(folder, name, sizes):
    """`make(kind, form, size)`: a layer with PyTorch's values. `sizes`: by name, the further arguments of the builder."""
    builds = "".join(f"def build_{k}_{f}_{s}():\n    m, x = make('{k}', '{f}', *{a})\n    return m, (), x\n"
                     for k in KINDS for f in FORMS for s, a in sizes.items())
    (folder / f"{name}.py").write_text(BUILDER + builds)
    sys.path.insert(0, str(folder))

    @functools.cache
    def make(kind, form, size):
        # PyTorch's grouped_mm takes no odd sizes; the values are the same.
        module, inputs = importlib.import_module(name).make(kind, "batched_mm", *sizes[size])
        made = Reference(folder, f"{kind}_{form}_{size}", f"{folder}/{name}.py:build_{kind}_{form}_{size}", module, inputs)
        with torch.no_grad():
            made.output = module(**inputs)[1]
        return made

    yield make
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    with references(tmp_path_factory.mktemp("experts"), "expert_models", {"usual": ()}) as make:
        yield functools.partial(make, size="usual")


def ranks_of(mesh):
    return math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))


@pytest.mark.parametrize("kind, form, mesh, ways", CASES, ids=["-".join(case) for case in CASES])
def test_gradients(reference, tmp_path, kind, form, mesh, ways):
    model, program = reference(kind, form), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan(kind, ways, mesh)), "--gradients", "0", "-o", program)
    model.check(model.outputs(program, "gradients", ranks_of(mesh)))


def collectives(model, kind, ways, mesh, *options):
    how = ("--mesh", mesh, *places(*plan(kind, ways, mesh)), *options, "--format", "json")
    return json.loads(run(tool("shardc"), "explain", model.source, *how).stdout)["collectives"]


@pytest.mark.parametrize("kind, form", [(kind, form) for kind in KINDS for form in FORMS])
@pytest.mark.parametrize("ways", ["whole", "parts"])
def test_a_layer_reduces_its_tokens_once(reference, kind, form, ways):
    """Least: each rank has a part of what each token's experts give, and the output is asked for whole."""
    found = collectives(reference(kind, form), kind, ways, "tp=2")
    moved = [c for c in found if c["bytes_per_rank"] >= 8]  # the loss is one number
    assert [c["kind"] for c in moved] == ["all_reduce"], found
    assert moved[0]["bytes_per_rank"] == 4 * TOKENS * HIDDEN


@pytest.mark.parametrize("kind, form", [(kind, form) for kind in KINDS for form in FORMS])
def test_no_token_moves_between_data_parallel_ranks(reference, kind, form):
    """Rows in groups are sorted by their expert and brought back: each rank has its own to sort."""
    how = ("--mesh", "dp=2", *places(*DATA, "output:1=dp:S(0)"), "--format", "json")
    found = json.loads(run(tool("shardc"), "explain", reference(kind, form).source, *how).stdout)["collectives"]
    assert [(c["kind"], c["bytes_per_rank"]) for c in found] == [("all_reduce", 4)], found  # the loss


SHARED_AXIS = ["input:x=ep:S(0)", "module:*.experts=grouped_gemm", "output:1=ep:S(0)"]


@pytest.mark.parametrize("kind, form", [(kind, form) for kind in KINDS for form in FORMS])
def test_experts_on_the_axis_of_the_tokens(reference, tmp_path, kind, form):
    """Each rank has some of the tokens and some of the experts. It gets the tokens of all once, with the experts that the router chose, and
    what each of these gives for its own tokens. No expert moves."""
    model, program = reference(kind, form), tmp_path / "m.so"
    how = ("--mesh", "ep=2", *places(*SHARED_AXIS))
    found = json.loads(run(tool("shardc"), "explain", model.source, *how, "--format", "json").stdout)["collectives"]
    half = TOKENS // 2
    tokens, chosen = 4 * half * HIDDEN, half * 2 * 8
    assert sum(c["bytes_per_rank"] for c in found) <= (1 + 2) * tokens + chosen + 4, found
    run(tool("shardc"), "compile", model.source, *how, "--gradients", "0", "-o", program)
    model.check(model.outputs(program, "gradients", 2))


@pytest.mark.parametrize("kind, form, ways", [("plain", "grouped_mm", "whole"), ("biases", "batched_mm", "whole"), ("plain", "batched_mm", "parts")])
def test_no_weight_moves_for_gradients(reference, kind, form, ways):
    """The forward reduces its output, the backward the gradient of its input and that of each choice of the router: nothing as large as
    the weights, and no rows between the products of an expert."""
    found = collectives(reference(kind, form), kind, ways, "tp=2", "--gradients", "0")
    assert {c["kind"] for c in found} == {"all_reduce"}, found
    assert sum(c["bytes_per_rank"] for c in found) <= 4 * (2 * TOKENS * HIDDEN + 2 * TOKENS + 8), found


class LookedUp(torch.nn.Module):
    """Rows times matrices at positions of which nothing is known."""
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1)))

    def forward(self, x, at):
        return torch.bmm(x.unsqueeze(1), self.w[at]).squeeze(1)


def test_positions_of_no_matrix(tmp_path):
    """Negative ones count from the end, and those beyond fail the run, as a lookup does, though no matrix is looked up."""
    module, x = LookedUp(), torch.randn(4, 4)
    torch.export.save(torch.export.export(module, (x, torch.zeros(4, dtype=torch.int64))), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "tp=2", *places("param:w=tp:S(0)", "output:0=R"), "-o", tmp_path / "m.so")

    def of(*at, **how):
        save_file({"x": x, "at": torch.tensor(at)}, tmp_path / "in.safetensors")
        return run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
                   tmp_path / "out.safetensors", **how)

    of(2, -3, 0, -1)
    with torch.no_grad():
        torch.testing.assert_close(next(iter(load_file(tmp_path / "out.safetensors").values())), module(x, torch.tensor([2, -3, 0, -1])))
    done = of(0, 3, 1, 2, check=False)
    assert done.returncode == 1 and "3" in done.stderr and "out of range" in done.stderr, done.stderr
