# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighborhood attention as NATTEN's operators: against attention with a mask in PyTorch, over sharded domains, forward and backward."""
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import BUILD, run, tool
from exported import F64, Exported, Function, fixture_of
from natten_ops import LIBRARY, na
from plans import places
from test_joint_graphs import joint


class Layer(nn.Module):
    """Neighborhood attention with heads, a norm and a product around it, as vision transformers have it."""

    def __init__(self, width, heads, windows, reference=False):
        super().__init__()
        self.heads, self.windows, self.reference = heads, windows, reference
        self.norm, self.qkv, self.leave = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        qkv = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        return x + self.leave(na(*qkv, *self.windows, reference=self.reference)[0].flatten(-2))


class Transformer(nn.Module):
    def __init__(self, dims, windows, width=8, heads=2, reference=False):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.enter = conv(3, width, 3, padding=1)
        self.layers = nn.ModuleList(Layer(width, heads, w, reference) for w in windows)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        h = self.enter(x).movedim(1, -1)
        for layer in self.layers:
            h = layer(h)
        y = self.head(h)
        return y.square().mean(), y


def windows(kernel, stride=1, dilation=1, causal=False, dims=2):
    return [list(x) if isinstance(x, tuple) else [x] * dims for x in (kernel, stride, dilation, causal)]


def image(*sizes):
    return {"x": torch.randn(*sizes, dtype=F64)}


MODELS = {
    "line": lambda: (Transformer(1, [windows(5, dims=1), windows(3, 1, 3, dims=1), windows(4, 2, 2, True, dims=1)]), image(2, 3, 29)),
    "image": lambda: (Transformer(2, [windows(3), windows((4, 3), (2, 1), (2, 3))]), image(2, 3, 13, 11)),
    "causal": lambda: (Transformer(2, [windows((3, 4), 1, (2, 1), (True, False))], reference=True), image(1, 3, 10, 9)),
    "volume": lambda: (Transformer(3, [windows(3, dims=3), windows((2, 1, 3), 1, (2, 1, 1), (True, False, False), dims=3)]), image(1, 3, 7, 5, 6)),
}
GIVEN = "input:x=sp:S(2, sizes = [4, 0, 8, 1])"

exported = fixture_of(MODELS)


@pytest.mark.parametrize("name, mesh, plan", [
    ("line", "sp=1", "input:x=sp:S(2)"), ("line", "sp=4", "input:x=sp:S(2)"), ("line", "dp=2,sp=3", "input:x=dp:S(0),sp:S(2)"),
    ("line", "a=2,b=2", "input:x=a:S(2),b:S(2)"), ("image", "sp=3", "input:x=sp:S(3)"), ("image", "sp=4", GIVEN), ("image", "h=2,w=2", "input:x=h:S(2),w:S(3)"),
    ("image", "h=2,w=4", "input:x=h:S(2),w:S(3)"), ("causal", "h=3,w=2", "input:x=h:S(2),w:S(3)"), ("volume", "h=2,w=2", "input:x=h:S(2),w:S(4)"),
    ("volume", "sp=5", "input:x=sp:S(2)"), ("image", "tp=2", "module:layers.*.qkv=colwise"),
])
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(plan))


@pytest.mark.parametrize("name, mesh, plan", [("line", "sp=4", "input:x=sp:S(2)"), ("image", "sp=4", GIVEN), ("image", "h=2,w=2", "input:x=h:S(2),w:S(3)"),
                                              ("volume", "h=2,w=2", "input:x=h:S(2),w:S(4)")])
def test_keys_and_values_are_not_gathered(exported, name, mesh, plan):
    assert exported(name).moved(mesh, *places(plan)) <= {"all_reduce", "all_to_all"}


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
def test_emulated_device(exported, monkeypatch):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")
    exported("causal").run("sp=2", *places("input:x=sp:S(2)"))


class Attention(nn.Module):
    def forward(self, q, k, v):
        output, logsumexp = na(q, k, v, *windows(5))
        return output, logsumexp


def test_the_least_moves(tmp_path):
    """A rank in the middle needs two rows of keys and of values from either side, and one at the border two more from the next inside."""
    torch.manual_seed(2)
    inputs = {n: torch.randn(1, 16, 12, 2, 4) for n in "qkv"}
    model = Exported(tmp_path, Attention(), inputs)
    plan = places("input:*=sp:S(1)", "output:*=sp:S(1)")
    text = run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", "sp=4", *plan, "--format", "json").stdout
    row = 12 * 2 * 4 * 4
    assert sum(c["bytes_per_rank"] for c in json.loads(text)["collectives"]) == 2 * 4 * row
    model.run("sp=4", *plan)


@pytest.mark.parametrize("dtype, limit", [(torch.bfloat16, 3e-2), (torch.float16, 4e-3)])
def test_half_precision(tmp_path, dtype, limit):
    torch.manual_seed(3)
    inputs = {n: torch.randn(2, 9, 8, 2, 16).to(dtype) for n in "qkv"}
    model = Exported(tmp_path, Attention(), inputs)
    model.outputs = [x.float() for x in Attention()(**{n: x.float() for n, x in inputs.items()})]
    model.compare = lambda got, want, what: torch.testing.assert_close(got.float(), want, rtol=limit, atol=limit, msg=what)
    model.run("h=2,w=2", *places("input:*=h:S(1),w:S(2)"))


class Weighted(nn.Module):
    def __init__(self, reference):
        super().__init__()
        self.reference = reference
        self.weight = nn.Parameter(torch.randn(3, 9, 8, 2, 4, dtype=F64))

    def forward(self, x):
        return na(*(self.weight * x)[:, None], *windows((3, 2), (2, 1), 2, (False, True)), reference=self.reference)[0].square().sum()


@pytest.mark.parametrize("reference", [False, True])
def test_joint_graphs(tmp_path, reference):
    """The backward is an operator of NATTEN's, too."""
    torch.manual_seed(4)
    module, x = Weighted(reference), torch.randn(9, 8, 2, 4, dtype=F64)
    torch.export.save(joint(module, {"x": x}, "overloads"), tmp_path / "m.pt2")
    save_file({"x": x}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "h=2,w=2", *places("input:x=h:S(0),w:S(1)"), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
        tmp_path / "out.safetensors", "--timeout", 60)
    module(x).backward()
    gradients = [t for t in load_file(tmp_path / "out.safetensors").values() if t.shape == module.weight.shape]
    # The operator keeps the logsumexp in f32.
    assert gradients and (gradients[0] - module.weight.grad).abs().max() <= 1e-5 * module.weight.grad.abs().max()


LIBRARY.define("hopper_na1d_forward(Tensor query, Tensor key, Tensor value, int[] kernel_size, int[] stride, int[] dilation, bool[] is_causal, float scale, "
               "int[] q_shape, int[] kv_shape, int[] qkv_shape, int[] q_tile_shape, int[] kv_tile_shape, int kernel_schedule_int) -> (Tensor, Tensor)")
torch.library.register_fake("natten::hopper_na1d_forward", lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:-1])), lib=LIBRARY)


@pytest.mark.parametrize("call, message", [
    (lambda x: torch.ops.natten.hopper_na1d_forward(x, x, x, [3], [1], [1], [False], 1.0, [8], [8], [8], [8], [8], 0)[0], "NATTEN's backend 'cutlass-fna'"),
    (lambda x: torch.ops.natten.na1d_forward(x, x, x, [5], [1], [2], [False], 1.0, [8], [8])[0], "has a kernel of 5 with dilation 2 for a dim of 8 elements"),
    (lambda x: torch.ops.natten.na1d_forward(x, x, x, [3], [4], [1], [False], 1.0, [8], [8])[0], "has a stride of 4 and a kernel of 3"),
    (lambda x: torch.ops.natten.reference_na1d_forward(x, x, x, [3], [1], [1], [False], 1.0, [8], 2)[0], "without additional keys and values"),
    (lambda x: torch.ops.natten.reference_na1d_forward(x, x, x, [3], [1], [1], [False], 1.0, [9], 0)[0], "has a 'qkv_shape' that is not that of its 8 positions"),
    (lambda x: torch.ops.natten.reference_na1d_forward(x, x[:, :5], x[:, :5], [3], [1], [1], [False], 1.0, [8], 0)[0], "is not that of its 5 positions"),
    (lambda x: torch.ops.natten.reference_na1d_forward(x[0], x[0], x[0], [3], [1], [1], [False], 1.0, [8], 0)[0], "needs query, key and value of 4 dims, not of 3"),
    (lambda x: torch.ops.natten.na1d_backward(x, x, x, x, x[:, :5], x[..., 0], [3], [1], [1], [False], 1.0, [8], [8], [1], False)[0],
     "has another 'd_output' than the forward"),
    (lambda x: torch.ops.natten.na1d_backward(x, x, x, x, x, x, [3], [1], [1], [False], 1.0, [8], [8], [1], False)[0], "has another 'logsumexp' than the forward"),
    (lambda x: torch.ops.natten.na1d_forward(x, x, x, [1 << 40], [1], [1], [False], 1.0, [8], [8])[0], "which is no window"),
])
def test_refusals(tmp_path, call, message):
    program = torch.export.export(Function(call), (torch.randn(1, 8, 2, 4),))
    torch.export.save(program, tmp_path / "m.pt2")
    done = run(tool("shardc"), "compile", tmp_path / "m.pt2", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_sizes_that_the_run_knows(tmp_path):
    """A field may have any size that a window fits into; for smaller ones the run says what the program needs."""
    torch.manual_seed(5)
    inputs = {n: torch.randn(1, 16, 12, 2, 4, dtype=F64) for n in "qkv"}
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(Attention(), (), inputs, dynamic_shapes={n: {1: rows} for n in "qkv"})
    torch.export.save(program, tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=1", "-o", tmp_path / "m.so")
    for size in (5, 9, 4):
        given = {n: x[:, :size].contiguous() for n, x in inputs.items()}
        save_file(given, tmp_path / "in.safetensors")
        done = run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors", check=False)
        if size < 5:
            assert done.returncode == 1 and "the program needs" in done.stderr and ">= 5" in done.stderr, done.stderr
            continue
        got = list(load_file(tmp_path / "out.safetensors").values())
        want = Attention()(**given)[0]
        assert any(x.shape == want.shape and (x - want).abs().max() < 1e-12 for x in got), size


class Whole(nn.Module):
    """Attention of all positions to all, by the operator that NATTEN calls where a window is as large as the field."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 2, 9, 2, 4, dtype=F64))

    def forward(self, x):
        output, _ = torch.ops.natten.fmha_forward(*(self.weight * x), True, 0.5, 64, 64, None, None, 0, 0)
        return output.square().sum(), output


def test_attention_of_all_to_all(tmp_path):
    torch.manual_seed(6)
    Exported(tmp_path, Whole(), {"x": torch.randn(9, 2, 4, dtype=F64)}).run("sp=2", *places("input:x=sp:S(0)"))
