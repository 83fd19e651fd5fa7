# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joint graphs: PyTorch's own export of a forward with its backward, fully decomposed and with the backward overloads
of ATen as they are. Their gradients are those of PyTorch's autograd, on one rank and on several."""
import functools
import json
import math
import re
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch._decomp import get_decompositions
from torch.export.experimental import _export_forward_backward
from torch.export.exported_program import _decompose_exported_program
from torch.nn import functional as F

from conftest import ROOT, run, run_python, tool
import image_pieces
from model_gradients import Language
from plans import places

FORMS = ("decomposed", "overloads")


def joint(model, inputs, form):
    program = torch.export.export(model, (), inputs)
    if form == "decomposed":
        return _export_forward_backward(program)
    # PyTorch's own export fails on gradients that are `t` of something: a name is missing in its signature.
    table = get_decompositions([torch.ops.aten.t])
    return _decompose_exported_program(program, cia_to_decomp={}, python_decomp_table=table, joint_loss_index=0,
                                       decompose_custom_triton_ops=False)


def image(x):
    return x.view(1, 1, 4, 5)


def attention(x, **options):
    heads = torch.stack([x.t(), x.t() * 0.5])[None]
    return F.scaled_dot_product_attention(heads, heads * 2, heads + 1, **options)


def labels():
    return torch.tensor([0, 4, -100, 2])


# Each is a function of a parameter of 4 x 5 (times 1.0, so that none is the parameter itself); the loss is the sum of all.
PIECES = {
    "tanh": lambda x: torch.tanh(x) ** 2, "sigmoid": lambda x: torch.sigmoid(x) ** 2, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": lambda x: F.silu(x) ** 2, "relu": lambda x: F.relu(x) ** 2,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3) ** 2, "elu": lambda x: F.elu(x, 1.5) ** 2, "softplus": F.softplus,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7) ** 2, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
    "mish": lambda x: F.mish(x) ** 2, "abs": lambda x: x.abs(), "std": lambda x: x.std(1), "norm": lambda x: x.norm(),
    "slice": lambda x: x[1:3, ::2] ** 2, "select": lambda x: x[:, -2] ** 3, "index": lambda x: x[torch.tensor([0, 1, 1])] ** 2,
    "gather": lambda x: x.gather(1, torch.tensor([[0, 1], [2, 2]])) ** 2,
    "index_select": lambda x: x.index_select(1, torch.tensor([0, 0, 2])) ** 2, "max": lambda x: x.max(1).values ** 2,
    "amax": lambda x: x.amax(0), "cumsum": lambda x: x.cumsum(0) ** 2, "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: torch.softmax(x, 1) ** 2, "log_softmax": lambda x: torch.log_softmax(x, 0) ** 2,
    "mse": lambda x: F.mse_loss(x, torch.ones(4, 5)), "mse_sum": lambda x: F.mse_loss(x, torch.ones(4, 5), reduction="sum"),
    "cross_entropy": lambda x: F.cross_entropy(x, labels()),
    "cross_entropy_weight": lambda x: F.cross_entropy(x, labels(), weight=torch.tensor([0.5, 1.0, 2.0, 0.1, 3.0])),
    "cross_entropy_sum": lambda x: F.cross_entropy(x, labels(), reduction="sum"),
    "cross_entropy_none": lambda x: F.cross_entropy(x, labels(), reduction="none") ** 2,
    "cross_entropy_2d": lambda x: F.cross_entropy(x.view(1, 5, 2, 2), torch.tensor([[[0, 1], [4, 2]]])),
    "avg_pool": lambda x: F.avg_pool2d(image(x), 2, 1, 1) ** 2, "max_pool": lambda x: F.max_pool2d(image(x), 2, 1) ** 2,
    "adaptive_pool": lambda x: F.adaptive_avg_pool2d(image(x), (3, 2)) ** 2,
    "layer_norm": lambda x: F.layer_norm(x, (5,)) ** 3, "group_norm": lambda x: F.group_norm(x.view(2, 2, 5), 2) ** 3,
    "rms_norm": lambda x: F.rms_norm(x, (5,)) ** 3,
    "batch_norm": lambda x: F.batch_norm(x, torch.arange(5.0), torch.arange(5.0) + 1) ** 2,
    "batch_norm_training": lambda x: F.batch_norm(x, None, None, torch.arange(5.0) + 1, torch.ones(5), training=True) ** 3,
    "attention": lambda x: attention(x) ** 2, "causal": lambda x: attention(x, is_causal=True) ** 2,
    "masked": lambda x: attention(x, attn_mask=torch.ones(5, 5).tril(1).bool()) ** 2,
    "bias": lambda x: attention(x, attn_mask=torch.arange(25.0).view(5, 5) / 25, scale=0.7) ** 2,
    "conv2d": lambda x: F.conv2d(image(x), torch.ones(2, 1, 3, 3).cumsum(2), padding=1, stride=2) ** 2,
    "conv1d": lambda x: F.conv1d(x.view(1, 4, 5), torch.ones(2, 2, 3).cumsum(2), groups=2) ** 2,
    "products": lambda x: torch.einsum("ij,ik->jk", x, x) ** 2, "dot": lambda x: torch.dot(x[0], x[1]), "mv": lambda x: (x @ x[0]) ** 2,
    "where": lambda x: torch.where(x > 0, x, x * 2) ** 2, "clamp": lambda x: x.clamp(-0.5, 0.5) ** 2, "tril": lambda x: x.tril() ** 2,
}


class Pieces(nn.Module):
    def __init__(self, pieces):
        super().__init__()
        self.pieces = pieces
        self.p = nn.ParameterDict({name: nn.Parameter(torch.randn(4, 5)) for name in pieces})

    def forward(self):
        return sum(piece(self.p[name] * 1.0).sum() for name, piece in self.pieces.items())


class Words(nn.Module):
    """Embedding, norms with parameters, fused attention, cross-entropy."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 12, padding_idx=3)
        self.norm, self.qkv, self.out = nn.LayerNorm(12), nn.Linear(12, 36), nn.Linear(12, 12)
        self.up, self.down, self.head = nn.Linear(12, 20), nn.Linear(20, 12), nn.Linear(12, 11)

    def forward(self, ids, labels):
        x = self.embed(ids)
        q, k, v = (y.unflatten(-1, (3, 4)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        x = x + self.down(torch.tanh(self.up(x)))
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.batch = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.GroupNorm(2, 6), nn.BatchNorm2d(6)
        self.second, self.head = nn.Conv2d(6, 4, 3, padding=1, bias=False), nn.Linear(4, 5)

    def forward(self, x, labels):
        x = F.max_pool2d(F.silu(self.batch(self.norm(self.first(x)))), 2)
        return F.nll_loss(F.log_softmax(self.head(F.adaptive_avg_pool2d(self.second(x), 1).flatten(1)), -1), labels)


def llama():
    sys.path.insert(0, f"{ROOT}/test/models")
    import builders
    model, inputs = builders.llama()
    return Language(model).eval(), inputs


MODELS = {
    "pieces": lambda: (Pieces(PIECES), {}), "image_pieces": lambda: (Pieces(image_pieces.PIECES), {}),
    "words": lambda: (Words(), {"ids": torch.randint(0, 11, (4, 5)), "labels": torch.randint(0, 11, (4, 5))}),
    "images": lambda: (Images().eval(), {"x": torch.randn(2, 3, 13, 11), "labels": torch.tensor([1, 3])}),
    "llama": llama,
}


class Reference:
    def __init__(self, folder, name, form):
        torch.manual_seed(3)
        model, inputs = MODELS[name]()
        model.zero_grad()
        self.loss = model(**inputs)
        self.loss.backward()
        self.wants = {key: p.grad.clone() for key, p in model.named_parameters()}
        self.source, self.inputs = folder / f"{name}-{form}.pt2", folder / f"{name}.safetensors"
        torch.export.save(joint(model, inputs, form), self.source)
        save_file({key: value.contiguous() for key, value in inputs.items()}, self.inputs)

    def check(self, folder, mesh, plan=(), flags=()):
        """Returns the bytes of a rank's arena."""
        program = folder / "m.so"
        run(tool("shardc"), "compile", self.source, "--mesh", mesh, *places(*plan), *flags, "-o", program)
        ranks = math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))
        done = run(tool("shard-run"), "-n", ranks, program, "--weights", self.source, "--inputs", self.inputs, "--outputs",
                   folder / "out.safetensors", "--format", "json")
        got = load_file(folder / "out.safetensors")
        assert self.wants.keys() < got.keys()
        loss = next(value for key, value in got.items() if key not in self.wants)
        torch.testing.assert_close(loss, self.loss.detach(), rtol=1e-5, atol=1e-6)
        wrong = []
        for key, want in self.wants.items():
            error, scale = float((got[key] - want).abs().max()), max(float(want.abs().max()), 1e-3)
            if got[key].shape != want.shape or not error <= 1e-5 * scale:
                wrong.append(f"{key} {error:.3g} of {scale:.3g}")
        assert not wrong
        return json.loads(done.stdout)["peak_memory_of_a_rank"]["arena_bytes"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joint")
    return functools.cache(lambda name, form: Reference(folder, name, form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ("pieces", "image_pieces", "words", "images", "llama"))
def test_gradients(reference, tmp_path, name, form):
    reference(name, form).check(tmp_path, "r=1")


DATA = ["input:*=dp:S(0)"]
SHARDED = {
    "pieces-tp3": ("pieces", "tp=3", ["param:*=tp:S(0)"]),
    "words-dp4": ("words", "dp=4", [*DATA, "param:*=dp:S(0)"]),
    "words-tp2-vocabulary": ("words", "tp=2", ["param:qkv.*=tp:S(0,blocks=3)", "param:out.weight=tp:S(1)", "param:up.*=tp:S(0)",
                                               "param:down.weight=tp:S(1)", "param:head.*=tp:S(0)", "param:embed.weight=tp:S(0)"]),
    "images-dp2-tp3": ("images", "dp=2,tp=3", [*DATA, "param:first.*=tp:S(0)", "param:second.weight=tp:S(1)"]),
}


@pytest.mark.parametrize("case", SHARDED)
@pytest.mark.parametrize("form", FORMS)
def test_sharded_gradients(reference, tmp_path, case, form):
    name, mesh, plan = SHARDED[case]
    reference(name, form).check(tmp_path, mesh, plan)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name,mesh,plan", [("llama", "r=1", []), ("words", "dp=2", DATA)], ids=["llama", "words-dp2"])
def test_memory_limit(reference, tmp_path, name, mesh, plan, form):
    """The backward of a joint graph is what PyTorch wrote behind the loss: it computes again what it has no room to keep."""
    model = reference(name, form)
    plain = model.check(tmp_path, mesh, plan)
    done = run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--memory-limit", 1, "-o",
               tmp_path / "m.so", check=False)
    assert done.returncode != 0
    least = int(re.search(r"allow at least (\d+) bytes", done.stderr)[1])
    assert least < int(re.search(r"without that 'forward' needs (\d+) bytes", done.stderr)[1])
    assert model.check(tmp_path, mesh, plan, ["--memory-limit", least]) < plain
    # From a stage in between, too: what is a backward stands in the program.
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--memory-limit", least, "--save-stages",
        tmp_path / "stages", "-o", tmp_path / "m.so")
    again = run(tool("shard-opt"), tmp_path / "stages/2-placed.mlir", f"--shardc-compile=from=placed to=planned memory-limit={least}")
    arenas = [re.findall(r"exec.arena_bytes = (\d+)", text)
              for text in ((tmp_path / "stages/6-planned.mlir").read_text(), again.stdout)]
    assert arenas[0] and arenas[0] == arenas[1]


def test_report_of_the_backward(reference, tmp_path):
    """Sums of the data-parallel gradients are of the backward, that of the loss is of the forward."""
    done = run(tool("shardc"), "explain", reference("words", "overloads").source, "--mesh", "dp=2", *places(*DATA), "--format",
               "json")
    backward = {c["backward"] for c in json.loads(done.stdout)["collectives"]}
    assert backward == {True, False}


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.norm, self.table = nn.Parameter(torch.randn(2, 6, 5)), nn.GroupNorm(2, 6), nn.Parameter(torch.randn(4, 3))

    def forward(self):
        rows = nn.functional.embedding(torch.tensor([1, 1, 3]), self.table, scale_grad_by_freq=True)
        return (self.norm(self.weight * 2) ** 2).sum() + rows.sum()


def refused(folder, program, old=None, new=None):
    torch.export.save(program, folder / "m.pt2")
    if old:
        run_python(ROOT / "test/importers/torch_export/Inputs/change.py", folder / "m.pt2", folder / "n.pt2", old, new)
    done = run(tool("shard-opt"), folder / ("n.pt2" if old else "m.pt2"), check=False)
    assert done.returncode == 1
    return done.stderr


def test_refusals(tmp_path):
    """What a backward overload cannot be is an error at its node; all of them come at once."""
    program = joint(Normed(), {}, "overloads")
    error = refused(tmp_path, program, '"as_bools": [true, true, true]', '"as_bools": [true, false, true]')
    assert error.count("error:") == 2
    assert "native_group_norm_backward.default" in error and "asks for 2 results, but the program names 3" in error
    assert "embedding_dense_backward" in error and "the argument 'scale_grad_by_freq' is supported only as false" in error
    error = refused(tmp_path, program, '"as_bools": [true, true, true]', '"as_bools": [true]')
    assert "the argument 'output_mask' has 1 entries, not 3" in error


class Resized(nn.Module):
    """Backwards of resizing, which PyTorch composes of other ops in joint graphs."""

    def forward(self, g):
        ops, shape, line, volume = torch.ops.aten, [2, 3, 5, 4], g[:, :, 0], g[None]
        kept = [2, 3, 9, 4]
        return (ops.upsample_bicubic2d_backward(g, [9, 7], shape, False, 1.9, 1.8), ops.upsample_bicubic2d_backward(g, [9, 7], shape, True),
                ops.upsample_bicubic2d_backward(g, [9, 7], kept, False, 1.05, 1.8), ops.upsample_bicubic2d_backward(g, [9, 7], g.shape, False, 1.05, 1.1),
                ops.upsample_bilinear2d_backward(g, [9, 7], kept, False, 1.05, 1.8), ops.upsample_nearest2d_backward(g, [9, 7], kept, 1.05, 1.8),
                ops._upsample_nearest_exact2d_backward(g, [9, 7], g.shape, 1.11, 1.14), ops.upsample_linear1d_backward(line, [7], [2, 3, 4], False, 1.8),
                ops.upsample_nearest1d_backward(line, [7], [2, 3, 4]), ops._upsample_nearest_exact1d_backward(line, [7], [2, 3, 4]),
                ops.upsample_trilinear3d_backward(volume, [3, 9, 7], [1, 2, 2, 5, 4], False, 1.6, 1.9, 1.8),
                ops.upsample_nearest3d_backward(volume, [3, 9, 7], [1, 2, 2, 5, 4]),
                ops._upsample_nearest_exact3d_backward(volume, [3, 9, 7], [1, 2, 2, 5, 4], 1.6, 1.9, 1.8))


def test_backwards_of_resizing(tmp_path):
    torch.manual_seed(4)
    g = torch.randn(2, 3, 9, 7)
    torch.export.save(torch.export.export(Resized(), (g,)), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "r=1", "-o", tmp_path / "m.so")
    save_file({"g": g}, tmp_path / "in.safetensors")
    run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    outputs = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][0]["outputs"]
    got = load_file(tmp_path / "out.safetensors")
    for number, (output, want) in enumerate(zip(outputs, Resized()(g), strict=True)):
        torch.testing.assert_close(got[output["name"]], want, rtol=1e-4, atol=1e-5, msg=lambda m, n=number: f"{n}: {m}")
