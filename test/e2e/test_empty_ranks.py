# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and norms over a dim of which some rank holds nothing, or another number of groups than the others:
every rank's answer is put together and compared with PyTorch's."""
import functools

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool  # noqa: F401
from kernels import mlir_type
from plans import places

SHAPE = (3, 6, 5)
# 3, 6 and 5 over four ranks are 1 1 1 0, 2 2 2 0 and 2 2 1 0.
PLACEMENTS = {f"tp4-S({d})": ("tp=4", places(f"input:x=tp:S({d})")) for d in range(3)} | {
    f"dp2xtp2-S({a})S({b})": ("dp=2,tp=2", places(f"input:x=dp:S({a}),tp:S({b})")) for a, b in ((0, 0), (0, 1), (1, 2), (2, 2))}


def over_dims(text, call):
    """The op over each dim, two dims, and all of them."""
    return [(f"{text} %x dim [{', '.join(map(str, dims))}]", functools.partial(call, dim=dims))
            for dims in ((0,), (1,), (2,), (0, 2))] + [(f"{text} %x", functools.partial(call, dim=(0, 1, 2)))]


def along(text, call):
    return [(f"{text} %x dim {d}", functools.partial(call, dim=d)) for d in range(3)]


def trailing(text, call):
    return [(f"{text} %x [{', '.join(map(str, SHAPE[-n:]))}] {{eps = 1.0e-5 : f64}}",
             functools.partial(call, normalized_shape=SHAPE[-n:], eps=1e-5)) for n in (1, 2, 3)]


def group_norms():
    """Groups that divide over no mesh here; with one group all channels are shared."""
    weight, bias = torch.linspace(0.5, 1.5, 6), torch.linspace(-1, 1, 6)
    dense = [f"dense<[{', '.join(map(str, v.tolist()))}]> : tensor<6xf32>" for v in (weight, bias)]
    made = f"%w{{n}} = aten.constant {dense[0]}\n  %b{{n}} = aten.constant {dense[1]}\n  "
    for groups in (1, 2, 3, 6):
        yield (f"aten.group_norm %x groups {groups} weight(%w{{n}}) bias(%b{{n}})",
               functools.partial(F.group_norm, num_groups=groups, weight=weight, bias=bias), made)


def prod(x, dim):
    for d in sorted(dim, reverse=True):
        x = x.prod(d)
    return x


OPS = {
    "sum": over_dims("aten.sum", torch.sum),
    "mean": over_dims("aten.mean", torch.mean),
    "amax": over_dims("aten.amax", torch.amax),
    "amin": over_dims("aten.amin", torch.amin),
    "prod": over_dims("aten.prod", prod),
    "var": over_dims("aten.var", torch.var),
    "logsumexp": over_dims("aten.logsumexp", torch.logsumexp),
    "linalg_vector_norm": over_dims("aten.linalg_vector_norm", torch.linalg.vector_norm),
    "argmax": along("aten.argmax", torch.argmax),
    "cumsum": along("aten.cumsum", torch.cumsum),
    "softmax": along("aten.softmax", torch.softmax),
    "log_softmax": along("aten.log_softmax", torch.log_softmax),
    "layer_norm": trailing("aten.layer_norm", F.layer_norm),
    "rms_norm": trailing("aten.rms_norm", F.rms_norm),
    "group_norm": list(group_norms()),
}


@functools.cache
def values():
    torch.manual_seed(3)
    return torch.randn(SHAPE)


def program():
    """Text of a function with every case as a result, and what PyTorch says."""
    x, lines, results, wants = values(), [], [], {name: [] for name in OPS}
    for name, cases in OPS.items():
        for text, call, *made in cases:
            want, n = call(x), len(results)
            wants[name].append((n, text, want))
            operands = [mlir_type(x)] + ["tensor<6xf32>"] * (2 * len(made))
            text = (made[0] if made else "") + f"%r{{n}} = {text} : ({', '.join(operands)}) -> {mlir_type(want)}"
            lines.append(text.replace("{n}", str(n)))
            results.append(mlir_type(want))
    body, names = "\n  ".join(lines), ", ".join(f"%r{i}" for i in range(len(results)))
    return (f'func.func @forward(%x: {mlir_type(x)} {{dist.name = "x", dist.kind = "input"}}) -> ({", ".join(results)}) {{\n'
            f"  {body}\n  return {names} : {', '.join(results)}\n}}\n"), wants


def compiled(folder, text, inputs, mesh, plan):
    """The outputs of a program in MLIR, compiled and run."""
    (folder / "ops.mlir").write_text(text)
    save_file(inputs, folder / "in.safetensors")
    run(tool("shardc"), "compile", folder / "ops.mlir", "--mesh", mesh, *plan, "-o", folder / "ops.so")
    run(tool("shard-run"), folder / "ops.so", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors")
    return load_file(folder / "out.safetensors")


@pytest.fixture(scope="module", params=PLACEMENTS)
def answers(request, tmp_path_factory):
    text, wants = program()
    return compiled(tmp_path_factory.mktemp("uneven"), text, {"x": values()}, *PLACEMENTS[request.param]), wants


@pytest.mark.parametrize("op", OPS)
def test_some_rank_holds_nothing(answers, op):
    got, wants = answers
    for number, text, want in wants[op]:
        torch.testing.assert_close(got[f"output_{number}"], want, rtol=2e-5, atol=2e-5, msg=lambda m: f"{text}: {m}")


def one_op(op, inputs, result):
    """A program of one op over named inputs."""
    arguments = ", ".join(f'%{n}: {mlir_type(v)} {{dist.name = "{n}", dist.kind = "input"}}' for n, v in inputs.items())
    types = ", ".join(mlir_type(v) for v in inputs.values())
    return (f"func.func @forward({arguments}) -> {mlir_type(result)} {{\n  %y = {op} : ({types}) -> {mlir_type(result)}\n"
            f"  return %y : {mlir_type(result)}\n}}\n")


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_scan_along_the_sharded_dim(tmp_path, ranks):
    """The result is asked for where the operand is, so nothing is gathered but one total a rank."""
    x = values()
    for dim in range(3):
        got = compiled(tmp_path, one_op(f"aten.cumsum %x dim {dim}", {"x": x}, x), {"x": x}, f"tp={ranks}",
                       places(f"input:x=tp:S({dim})", f"output:0=tp:S({dim})"))
        torch.testing.assert_close(got["output_0"], x.cumsum(dim), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_more_ranks_than_heads_of_keys(tmp_path, ranks):
    """Six heads of queries share two of keys: from three ranks on, some have no head."""
    torch.manual_seed(5)
    q, k, v = torch.randn(2, 6, 7, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    want = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    text = one_op("aten.scaled_dot_product_attention %q, %k, %v {enable_gqa}", {"q": q, "k": k, "v": v}, want)
    got = compiled(tmp_path, text, {"q": q, "k": k, "v": v}, f"tp={ranks}", places("input:q=tp:S(1)"))
    torch.testing.assert_close(got["output_0"], want, rtol=2e-5, atol=2e-5)
