# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of every floating-point op of the aten dialect, in f64, against PyTorch and against finite differences."""
import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool
from gradients import check
import gradient_cases
from gradient_cases import CONSTANT, FAMILIES, REASONS, UNARY


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(11)


def all_unary():
    return [case for name in UNARY + CONSTANT for case in gradient_cases.unary(name)]


@pytest.mark.parametrize("family", [all_unary, *FAMILIES], ids=lambda f: f.__name__)
def test_family(family, tmp_path):
    problems = check(list(family()), tmp_path)
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)


@pytest.mark.parametrize("number", range(len(FAMILIES) + 1), ids=[f.__name__ for f in (all_unary, *FAMILIES)])
def test_sharded_family(number, tmp_path):
    """The same, with all inputs sharded over three ranks, or over 2 x 2."""
    family = (all_unary, *FAMILIES)[number]
    problems = check(list(family()), tmp_path, ("tp=3", "dp=2,tp=2")[number % 2])
    assert not problems, f"{len(problems)} are wrong:\n" + "\n".join(problems)


def test_every_op_is_differentiated_or_has_a_reason():
    text = "".join(path.read_text() for path in (ROOT / "dialects/aten").glob("*.td"))
    names = set(re.findall(r'def Aten_\w+Op\b[^"]*"(\w+)"', text))
    assert len(names) > 120, "the definitions of ops were not found"
    tested = {re.match(r"aten\.(\w+)", case.text)[1] for family in (all_unary, *FAMILIES) for case in family()}
    assert tested | REASONS.keys() == names
    assert not tested & REASONS.keys()


def test_scores_are_in_no_arena_and_threads_change_no_bit(tmp_path):
    """Attention over 2048 positions, whose scores would take 64 MiB, and a table whose rows are read many times."""
    heads, table = (1, 4, 2048, 16), (50, 300)
    ids = torch.randint(0, table[0], (400,))
    inputs = {"q": torch.randn(heads), "k": torch.randn(heads), "v": torch.randn(heads), "w": torch.randn(table), "ids": ids}
    kinds = "x".join(map(str, heads)) + "xf32", "x".join(map(str, table)) + "xf32"
    arguments = ", ".join(f'%{name}: tensor<{kind}> {{dist.kind = "input", dist.name = "{name}"}}' for name, kind in
                          (("q", kinds[0]), ("k", kinds[0]), ("v", kinds[0]), ("w", kinds[1]), ("ids", "400xi64")))
    (tmp_path / "model.mlir").write_text(f"""func.func @forward({arguments})
    -> (tensor<f32> {{dist.kind = "output", dist.name = "loss"}}) {{
  %o = aten.scaled_dot_product_attention %q, %k, %v causal : (tensor<{kinds[0]}>, tensor<{kinds[0]}>, tensor<{kinds[0]}>) -> tensor<{kinds[0]}>
  %p = aten.mul %o, %o : (tensor<{kinds[0]}>, tensor<{kinds[0]}>) -> tensor<{kinds[0]}>
  %a = aten.sum %p : (tensor<{kinds[0]}>) -> tensor<f32>
  %e = aten.embedding %w at %ids : (tensor<{kinds[1]}>, tensor<400xi64>) -> tensor<400x300xf32>
  %t = aten.sin %e : (tensor<400x300xf32>) -> tensor<400x300xf32>
  %b = aten.sum %t : (tensor<400x300xf32>) -> tensor<f32>
  %loss = aten.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}}
""")
    save_file(inputs, tmp_path / "in.safetensors")
    run(tool("shard-opt"), tmp_path / "model.mlir", "--aten-differentiate=into=forward loss=loss wrt=[qkvw]", "-o",
        tmp_path / "backward.mlir")
    run(tool("shardc"), "compile", tmp_path / "backward.mlir", "--mesh", "r=1", "-o", tmp_path / "backward.so")
    results = []
    for threads in (1, 3, 3):
        done = run(tool("shard-run"), tmp_path / "backward.so", "--inputs", tmp_path / "in.safetensors", "--outputs",
                   tmp_path / "out.safetensors", "--threads", threads, "--format", "json")
        assert json.loads(done.stdout)["peak_memory_of_a_rank"]["arena_bytes"] < 12 * 4 * 4 * 2048 * 16
        results.append(load_file(tmp_path / "out.safetensors"))
    assert all(torch.equal(results[0][name], other[name]) for other in results[1:] for name in results[0])
    leaves = {name: x.double().requires_grad_() for name, x in inputs.items() if name != "ids"}
    q, k, v, w = leaves.values()
    loss = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum() + w[ids].sin().sum()
    for name, want in zip(leaves, torch.autograd.grad(loss, list(leaves.values()))):
        got = results[0][name].double()
        assert float((got - want).abs().max()) <= 1e-5 * float(want.abs().max()), name
