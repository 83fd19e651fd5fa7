# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighborhood attention in plain PyTorch, as attention with a mask: against PyTorch, over sharded positions, forward and backward; and that only the
keys and values beside a border move."""
import itertools
import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

import masked_attention as m
import window_cases
from conftest import BUILD, run, tool
from exported import F64, Exported, fixture_of
from plans import places
from test_joint_graphs import joint

def image(*sizes):
    return {"x": torch.randn(*sizes, dtype=F64)}


MODELS = {
    "line": lambda: (m.Transformer(1, [(lambda: m.cut((36,), 2), m.one_op), (lambda: m.sliding(36, 5), m.filled), (lambda: m.band(36, 3, 1), m.added),
                                       (lambda: m.cut((36,), 2, 3), m.batched)]), image(2, 3, 36)),
    "image": lambda: (m.Transformer(2, [(lambda: m.cut((10, 8), 1), m.one_op), (lambda: m.natten((10, 8), (3, 5)), m.summed),
                                        (lambda: m.natten_causal(10, 8, 3), m.filled), (lambda: m.outer((10, 8), 1), m.batched)]), image(2, 3, 10, 8)),
    "volume": lambda: (m.Transformer(3, [(lambda: m.cut((12, 3, 3), 1), m.one_op), (lambda: m.distances((12, 3, 3), 1), m.filled)]), image(1, 3, 12, 3, 3)),
}

GIVEN = "input:x=sp:S(2, sizes = [4, 0, 5, 1])"

exported = fixture_of(MODELS)


def explained(model, mesh, *options):
    return json.loads(run(tool("shardc"), "explain", model.folder / "m.pt2", "--mesh", mesh, *options, "--format", "json").stdout)


@pytest.mark.parametrize("name, mesh, plan", [
    ("line", "sp=1", "input:x=sp:S(2)"), ("line", "sp=4", "input:x=sp:S(2)"), ("line", "dp=2,sp=2", "input:x=dp:S(0),sp:S(2)"), ("line", "tp=2", "module:layers.*.qkv=colwise"),
    ("image", "sp=2", "input:x=sp:S(3)"), ("image", "sp=4", GIVEN), ("image", "h=2,w=2", "input:x=h:S(2),w:S(3)"), ("volume", "sp=3", "input:x=sp:S(2)"),
])
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(plan))


@pytest.mark.parametrize("name, mesh, plan", [("line", "sp=4", "input:x=sp:S(2)"), ("image", "sp=4", "input:x=sp:S(2)"), ("image", "sp=4", GIVEN),
                                              ("image", "h=2,w=2", "input:x=h:S(2),w:S(3)"), ("volume", "sp=3", "input:x=sp:S(2)")])
def test_keys_and_values_are_not_gathered(exported, name, mesh, plan):
    """Rows and columns of an image are flattened, and need not divide the ranks."""
    assert exported(name).moved(mesh, *places(plan)) <= {"all_reduce", "all_to_all"}


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
def test_emulated_device(exported, monkeypatch):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")
    exported("volume").run("sp=2", *places("input:x=sp:S(2)"))


class Attention(nn.Module):
    """Of queries, keys and values [batch, heads, positions, E], with one mask in one form."""

    def __init__(self, mask, attend=m.one_op):
        super().__init__()
        self.mask, self.attend = mask, attend

    def forward(self, q, k, v):
        return self.attend(q, k, v, self.mask()).reshape(*q.shape[:-1], v.shape[-1])


def attention(folder, module, positions, heads=2, keys=2, dtype=torch.float32, **options):
    torch.manual_seed(2)
    inputs = {n: torch.randn(2, heads if n == "q" else keys, positions, 4, dtype=dtype) for n in "qkv"}
    return Exported(folder, module, inputs, **options)


ROWS = places("input:*=sp:S(2)", "output:*=sp:S(2)")
POSITION = 2 * 2 * 4 * 4  # bytes of the keys, or values, at one position


def moved(model, mesh="sp=4", *options):
    return sum(c["bytes_per_rank"] for c in explained(model, mesh, *ROWS, *options)["collectives"])


@pytest.mark.parametrize("mask, attend, positions, halo", [
    (lambda: m.cut((64,), 3), m.one_op, 64, 6), (lambda: m.sliding(64, 4), m.filled, 64, 3), (lambda: m.cut((16, 8), 1), m.one_op, 128, 2 * 8),
    (lambda: m.natten((16, 8), (5, 3)), m.summed, 128, 4 * 8), (lambda: m.cut((8, 4, 4), 1), m.batched, 128, 2 * 16), (lambda: m.cut((64,), 2, 3), m.added, 64, 12),
])
def test_the_least_moves(tmp_path, mask, attend, positions, halo):
    """A rank gets the keys and values beside its own that its queries see, and no more."""
    model = attention(tmp_path, Attention(mask, attend), positions)
    assert moved(model) == 2 * halo * POSITION
    model.run("sp=4", *ROWS)


class Ways(nn.Module):
    def forward(self, q, k, v):
        attends = itertools.cycle((m.one_op, m.inverted, m.filled))
        # Equal scores would be computed once, and read by several.
        return tuple(attend(q * (n + 1), k, v, mask) for n, (attend, mask) in enumerate(zip(attends, m.ways(8, 8, 1))))


def test_ways_of_writing(tmp_path):
    model = attention(tmp_path, Ways(), 64)
    assert len(model.outputs) == 7
    assert explained(model, "sp=2", *ROWS)["totals"]["all_gather"]["count"] == 0
    model.run("sp=2", *ROWS)


@pytest.mark.parametrize("options", [{"form": "core"}, {"dynamic": ["q:0=batch:2:64", "k:0=batch", "v:0=batch"]}], ids=["core", "dynamic"])
@pytest.mark.parametrize("mask", [lambda: m.sliding(64, 4), lambda: m.natten((8, 8), (3, 3))])
def test_forms_of_exports(tmp_path, options, mask):
    """Attention that is taken apart by PyTorch, and a batch of any size."""
    model = attention(tmp_path, Attention(mask), 64, **options)
    assert explained(model, "sp=2", *ROWS)["totals"]["all_gather"]["count"] == 0
    model.run("sp=2", *ROWS)


class Stored(nn.Module):
    """The mask is a constant of the model."""

    def __init__(self, mask, persistent, attend=m.one_op):
        super().__init__()
        self.attend = attend
        self.register_buffer("mask", mask, persistent=persistent)

    def forward(self, q, k, v):
        return self.attend(q, k, v, self.mask)


@pytest.mark.parametrize("mask", [m.cut((8, 8), 1), torch.where(m.cut((8, 8), 1), 0.0, -torch.inf)[None, None],
                                  torch.where(m.natten((64,), (5,)), 0.0, torch.finfo(torch.float32).min).expand(1, 2, 64, 64).clone()])
def test_stored_masks(tmp_path, mask):
    model = attention(tmp_path, Stored(mask, persistent=False), 64)
    assert explained(model, "sp=4", *ROWS)["totals"]["all_gather"]["count"] == 0
    model.run("sp=4", *ROWS)


def test_masks_among_the_weights(tmp_path):
    """Another file of weights may have another mask."""
    model = attention(tmp_path, Stored(m.cut((64,), 2), persistent=True), 64)
    assert explained(model, "sp=4", *ROWS)["totals"]["all_gather"]["count"] > 0
    model.run("sp=4", *ROWS)
    fixed = [*ROWS, "--fixed-buffer", "ma*"]
    assert explained(model, "sp=4", *fixed)["totals"]["all_gather"]["count"] == 0
    model.run("sp=4", *fixed)


class Updated(Stored):
    def forward(self, q, k, v):
        self.mask.logical_not_()
        return super().forward(q, k, v)


@pytest.mark.parametrize("module, pattern, message", [(Stored, "other", "--fixed-buffer other: the model has no such buffer"),
                                                      (Updated, "mask", "--fixed-buffer mask: the model updates the buffer 'mask'"), (Stored, "[", "--fixed-buffer [: ")])
def test_buffers_that_cannot_be_fixed(tmp_path, module, pattern, message):
    attention(tmp_path, module(m.cut((16,), 2), persistent=True), 16)
    done = run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=1", "--fixed-buffer", pattern, "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_masks_that_the_model_updates(tmp_path):
    """They are other ones in the next run."""
    model = attention(tmp_path, Updated(~m.cut((64,), 2), persistent=False), 64)
    assert explained(model, "sp=4", *ROWS)["totals"]["all_gather"]["count"] > 0


def almost(change):
    def mask():
        mask = m.cut((64,), 2)
        i = torch.arange(64)
        at = (i[:, None] == change[0]) & (i[None, :] == change[1])
        return mask ^ at
    return mask


def with_globals():
    i = torch.arange(64)
    return m.cut((64,), 2) | (i[None, :] == 0) | (i[:, None] == 0)


def of_heads():
    return torch.stack([m.cut((64,), 2), m.cut((64,), 3)])[None]


def circle():
    y, x = m.differences((8, 8))
    return y * y + x * x <= 5


def with_bias(q, k, v, mask):
    i = torch.arange(mask.shape[0])
    slope = -0.1 * (i[:, None] - i[None, :]).abs().to(q.dtype)
    return m.one_op(q, k, v, torch.where(mask, slope, -torch.inf))


def nearly_hidden(q, k, v, mask):
    return m.one_op(q, k, v, torch.where(mask, 0.0, -20.0))


@pytest.mark.parametrize("mask, attend, why", [
    (almost((30, 40)), m.one_op, "is not that of windows"), (almost((63, 62)), m.filled, "is not that of windows"), (with_globals, m.one_op, "is not that of windows"),
    (circle, m.summed, "is not that of windows"), (of_heads, m.one_op, "is not the same for all heads"), (lambda: m.cut((64,), 2), with_bias, "adds other numbers"),
    (lambda: m.cut((64,), 2), nearly_hidden, "adds other numbers"), (lambda: m.cut((64,), 12), m.one_op, "would take longer"),
])
def test_other_masks_stay(tmp_path, mask, attend, why):
    model = attention(tmp_path, Attention(mask, attend), 64)
    remarks = explained(model, "sp=2", *ROWS)["remarks"]
    assert any("for all pairs of positions: " in str(remark) and why in str(remark) for remark in remarks), remarks
    model.run("sp=2", *ROWS)


class Repeated(nn.Module):
    """Products that repeat their operands along dims in front, grouped heads without a batch, and masks that are each another one for other dims in front."""

    def forward(self, q, k, v):
        band, i = m.cut((16,), 1), torch.arange(16)
        some, others = ((i[:, None] == row) & (i == column) for row, column in ((0, 9), (3, 12)))
        heads, batch = torch.stack([band | some, band | others]), torch.stack([band | others, band | some])
        scores = (q @ k.mT).masked_fill(~heads[None], -torch.inf).masked_fill(~batch[:, None], -torch.inf)
        weights = (q[:, 0] @ k[:, 0].mT).masked_fill(~band, -torch.inf).softmax(-1)
        return (scores.softmax(-1) @ v, weights @ v[0, 0], weights[0] @ v, m.one_op(q, k, v[0], band),
                torch.nn.functional.scaled_dot_product_attention(torch.cat([q[0], q[1]]), k[0], v[0], attn_mask=band, enable_gqa=True))


def test_products_that_repeat(tmp_path):
    model = attention(tmp_path, Repeated(), 16)
    for options in ((), ROWS):
        model.run("sp=2", *options, "--neighborhoods", "all")


def test_which_are_taken(tmp_path):
    wide = attention(tmp_path, Attention(lambda: m.cut((64,), 12)), 64)
    assert moved(wide, "sp=4", "--neighborhoods", "all") < moved(wide)
    wide.run("sp=4", *ROWS, "--neighborhoods", "all")
    assert moved(wide, "sp=4", "--neighborhoods", "off") == moved(wide)
    done = run(tool("shardc"), "compile", wide.folder / "m.pt2", "--neighborhoods", "some", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and "auto, all or off, not 'some'" in done.stderr


def grouped(q, k, v, mask):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def test_heads_that_share_keys(tmp_path):
    model = attention(tmp_path, Attention(lambda: m.sliding(64, 5), grouped), 64, heads=4, keys=2)
    assert explained(model, "sp=4", *ROWS)["totals"]["all_gather"]["count"] == 0
    model.run("sp=4", *ROWS)


class Weighted(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.weight = nn.Parameter(torch.randn(3, 1, 2, 48, 4, dtype=F64))

    def forward(self, x):
        return self.attend(*(self.weight * x), m.cut((8, 6), 1)).square().sum()


@pytest.mark.parametrize("attend", [m.one_op, m.filled])
def test_joint_graphs(tmp_path, attend):
    """Where the backward is written out, the weights of all pairs are read twice."""
    torch.manual_seed(4)
    module, x = Weighted(attend), torch.randn(2, 48, 4, dtype=F64)
    torch.export.save(joint(module, {"x": x}, "overloads"), tmp_path / "m.pt2")
    save_file({"x": x}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "sp=2", *places("input:x=sp:S(1)"), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
        tmp_path / "out.safetensors", "--timeout", 60)
    module(x).backward()
    gradients = [t for t in load_file(tmp_path / "out.safetensors").values() if t.shape == module.weight.shape]
    assert gradients and (gradients[0] - module.weight.grad).abs().max() <= 1e-9 * module.weight.grad.abs().max()


class Mistral(nn.Module):
    def __init__(self, attention):
        super().__init__()
        config = transformers.MistralConfig(vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                                            sliding_window=8, max_position_embeddings=64, attn_implementation=attention)
        self.model = transformers.MistralModel(config).eval()

    def forward(self, ids, mask=None):
        y = self.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        return y.square().mean(), y


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_mistral(tmp_path, attention):
    """A sliding window of `transformers`, as exported without a mask of what is padded."""
    torch.manual_seed(3)
    model = Exported(tmp_path, Mistral(attention), {"ids": torch.randint(0, 50, (2, 64))})
    plan = places("input:ids=sp:S(1)")
    assert explained(model, "sp=4", *plan)["totals"]["all_gather"]["count"] == 0
    model.run("sp=4", *plan)


def test_mistral_with_a_mask(tmp_path):
    """Which positions are padded only the run knows."""
    torch.manual_seed(3)
    mask = torch.ones(2, 64, dtype=torch.int64)
    mask[1, 50:] = 0
    Exported(tmp_path, Mistral("sdpa"), {"ids": torch.randint(0, 50, (2, 64)), "mask": mask}).run("sp=2", *places("input:*=sp:S(1)"))


@pytest.mark.parametrize("dtype, limit", [(torch.bfloat16, 3e-2), (torch.float16, 4e-3)])
def test_half_precision(tmp_path, dtype, limit):
    model = attention(tmp_path, Attention(lambda: m.natten((8, 8), (3, 3)), m.added), 64, dtype=dtype)
    model.compare = lambda got, want, what: torch.testing.assert_close(got.float(), want.float(), rtol=limit, atol=limit, msg=what)
    model.run("sp=4", *ROWS)


@pytest.mark.parametrize("number", range(2))
def test_random_masks(tmp_path, monkeypatch, number):
    """Of `window_cases.py`, which runs as many as one likes."""
    monkeypatch.setattr(window_cases, "KINDS", ["masked"])
    mesh = ("tp=3", "dp=2,tp=2")[number]
    problems = window_cases.problems_of([window_cases.draw(seed, mesh) for seed in range(1000 + 8 * number, 1008 + 8 * number)], mesh, tmp_path, "--neighborhoods", "all")
    assert not problems, "\n".join(problems.values())
