# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `shardc export` does where torch.export has two ways, and with tensors that a model keeps and writes."""
import os
import sys

import pytest
import torch
from torch import nn

from conftest import ROOT, run

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402


class Decides(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else x + 1


class Breaks(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return x + 1


class Mistaken(nn.Module):
    def forward(self, x):
        return x.view(1, 3) @ torch.ones(4, 2)


class Keeps(nn.Module):
    """A list and an attribute that are no buffers, and a buffer that the forward reaches in another way too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(3), persistent=False)
        self.store, self.count = {"rows": [self.table, torch.full((3,), 7.0)]}, torch.tensor(2)

    def forward(self, x):
        for rows in self.store["rows"]:
            rows.add_(x)
        self.count.add_(1)
        return self.table * self.store["rows"][1] * self.count


def main(factory, tmp_path, capfd, *options):
    """The exit status of `shardc export` and what it prints on standard error."""
    status = shardc_export.main([factory, "-o", str(tmp_path / "model.pt2"), *options])
    return status, capfd.readouterr().err


@pytest.fixture
def factory(monkeypatch):
    def built(kind):
        monkeypatch.setattr(shardc_export, "load_factory", lambda _: lambda: (kind(), (torch.ones(3),)))
        return "model.py:build"
    return built


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_both_ways_fail(factory, tmp_path, capfd, options):
    status, text = main(factory(Decides), tmp_path, capfd, *options)
    ways = ["strict", "non-strict"] if options else ["non-strict", "strict"]
    assert status == 1 and "Traceback" not in text and "GraphModule" not in text
    lines = text.splitlines()
    assert lines[0] == "shardc export: error: PyTorch cannot export this model."
    for way, line in zip(ways, lines[1:3]):
        assert line.startswith(f"  the {way} way fails at ") and "test_export.py:18: " in line
    assert lines[3].startswith("  What to do: the forward decides by the values of a tensor") and len(lines) == 4


def test_the_module_itself_fails(tmp_path):
    """In a process of its own: PyTorch logs where the program's standard error was when it was imported."""
    (tmp_path / "model.py").write_text("import torch\nfrom test_export import Mistaken\ndef build():\n    return Mistaken(), (torch.ones(3),)\n")
    done = run(sys.executable, ROOT / "tools/export/shardc_export.py", f"{tmp_path}/model.py:build", "-o", tmp_path / "model.pt2", check=False,
               env={**os.environ, "PYTHONPATH": str(ROOT / "test/e2e")})
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 4, done.stderr
    assert "[1, 3] X [4, 2]" in lines[1]
    assert lines[3] == "  What to do: run the module on the factory's arguments in Python first: the same error comes there."


def test_the_other_way(factory, tmp_path, capfd):
    status, text = main(factory(Breaks), tmp_path, capfd, "--strict")
    assert status == 0 and "exported in PyTorch's non-strict way, because the strict way fails at" in text


def test_a_full_window_needs_positions():
    """The tensors of a sliding window do not say how many tokens came before; with positions the program's answer is the module's."""
    import transformers
    torch.manual_seed(0)
    model = transformers.MistralForCausalLM(transformers.MistralConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4, sliding_window=8,
        initializer_range=0.2, pad_token_id=0)).eval()

    def inputs(**more):
        cache = transformers.DynamicCache(config=model.config)
        with torch.no_grad():
            model(input_ids=torch.arange(1, 21)[None], past_key_values=cache)
        return {"input_ids": torch.tensor([[7]]), "past_key_values": cache, "use_cache": True, **more}

    with pytest.raises(ValueError, match="the window of 8 tokens of the cache 'past_key_values' is full, .* pass position_ids as well"):
        shardc_export.export(model, (), inputs())
    positions = {"position_ids": torch.tensor([[20]])}
    program = shardc_export.export(model, (), inputs(**positions))
    with torch.no_grad():
        torch.testing.assert_close(program.module()(**inputs(**positions)).logits, model(**inputs()).logits, rtol=1e-4, atol=1e-4)


def test_a_dim_without_a_name(factory, tmp_path, capfd):
    status, text = main(factory(Keeps), tmp_path, capfd, "--dynamic", "x:0=3:4")
    assert status == 1 and text == "shardc export: error: --dynamic 'x:0=3:4' is not of the form ARG:DIM=[N*]NAME[:MIN[:MAX]]\n"


def test_a_multiple_of_a_symbol():
    assert str(shardc_export.parse_dynamic(["x:2=4*tiles:1:8"])["x"][2]) == str(4 * torch.export.Dim("tiles", min=1, max=8))
    for spec in ("x:2=0*tiles", "x:2=2*3*tiles", "x:2=n*tiles", "x:2=2*"):
        with pytest.raises(ValueError, match="is not of the form"):
            shardc_export.parse_dynamic([spec])


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_model_writes_are_buffers(strict):
    model, x = Keeps(), torch.arange(3.0)
    program = shardc_export.export(model, (x,), strict=strict)
    assert model.table.tolist() == [0, 0, 0] and model.store["rows"][1].tolist() == [7, 7, 7] and model.count == 2
    assert set(program.graph_signature.buffers_to_mutate.values()) == {"table", "store.rows.1", "count"}
    exported, other = program.module(), Keeps()
    for _ in range(3):
        torch.testing.assert_close(exported(x), other(x))


class Aliases(nn.Module):
    """One tensor is written by one name and read by another, and one is written as `out`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(3), persistent=False)
        self.rows = [self.table, torch.zeros(3)]

    def forward(self, x):
        self.table.add_(x)
        torch.add(self.rows[0], x, out=self.rows[1])
        return self.rows[0] * self.rows[1]


@pytest.mark.parametrize("form", ["composite", "training"])
def test_one_tensor_by_two_names(form):
    program = shardc_export.export(Aliases(), (torch.ones(3),), form=form)
    assert {spec.target for spec in program.graph_signature.input_specs} == {"table", "rows.1", None}
    exported, other, x = program.module(), Aliases(), torch.arange(3.0)
    for _ in range(2):
        torch.testing.assert_close(exported(x), other(x))


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("both", torch.zeros(2, 3))
        self.first = self.both[0]

    def forward(self, x):
        self.first.add_(x)
        return self.both.sum(0)


def test_a_part_of_another_tensor_is_written(factory, tmp_path, capfd):
    status, text = main(factory(Parts), tmp_path, capfd)
    assert status == 1 and text == ("shardc export: error: the forward writes 'first', which shares memory with 'both' of the module: keep one "
                                    "of them, and take its parts in the forward\n")


class Replaces(nn.Module):
    def __init__(self):
        super().__init__()
        self.store = type("Store", (), {})()
        self.store.rows = torch.zeros(3)

    def forward(self, x):
        self.store.rows = self.store.rows + x
        return self.store.rows * 2


def test_a_tensor_that_is_replaced_is_not_kept(factory, tmp_path, capfd):
    status, text = main(factory(Replaces), tmp_path, capfd)
    assert status == 0 and "in the place of store.rows, which the program does not keep from run to run" in text
