# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers and cells as plain exports keep them (`aten.lstm.input` and its kin): values and gradients, whole and sharded,
against PyTorch."""
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import run, tool
from exported import Exported, shardc_export

F64 = torch.float64
PLANS = (("r=1",), ("dp=2,tp=2", "--place", "input:x=dp:S(0)", "--place", "param:*weight_ih*=tp:S(0)", "--place", "param:*weight_hh*=tp:S(0)"),
         ("tp=3", "--place", "param:*=tp:S(0)"), ("sp=2", "--place", "input:x=sp:S(1)"))


class Layers(nn.Module):
    """Its first output is a loss; the others are the layer's."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, states):
        y, last = self.layer(x, tuple(states) if len(states) == 2 else states[0]) if states else self.layer(x)
        last = last if isinstance(last, tuple) else (last,)
        return (y * y).sum() + sum((h * h).sum() * 0.5 for h in last), y, *last


LAYERS = {
    "lstm": lambda: nn.LSTM(5, 6, batch_first=True, dtype=F64),
    "lstm-layers": lambda: nn.LSTM(5, 4, num_layers=3, bidirectional=True, batch_first=True, dtype=F64),
    "lstm-projected": lambda: nn.LSTM(5, 6, num_layers=2, proj_size=3, bias=False, bidirectional=True, dtype=F64),
    "gru": lambda: nn.GRU(5, 6, num_layers=2, batch_first=True, dtype=F64),
    "gru-both": lambda: nn.GRU(5, 3, bidirectional=True, bias=False, dtype=F64),
    "tanh": lambda: nn.RNN(5, 6, num_layers=2, batch_first=True, dtype=F64),
    "relu": lambda: nn.RNN(5, 6, nonlinearity="relu", bidirectional=True, batch_first=True, dtype=F64),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(tmp_path, name):
    torch.manual_seed(3)
    layer = LAYERS[name]()
    x = torch.randn(4, 7, 5, dtype=F64)
    ways, batch = layer.num_layers * (2 if layer.bidirectional else 1), x.shape[0 if layer.batch_first else 1]
    states = [torch.randn(ways, batch, getattr(layer, "proj_size", 0) or layer.hidden_size, dtype=F64)]
    if isinstance(layer, nn.LSTM):
        states.append(torch.randn(ways, batch, layer.hidden_size, dtype=F64))
    for number, given in enumerate((states, [])):
        folder = tmp_path / str(number)
        folder.mkdir()
        exported = Exported(folder, Layers(layer), {"x": x, "states": given}, form="training")
        for plan in PLANS if given else PLANS[:1]:
            exported.run(*plan)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = (kind(5, 4, dtype=F64) for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell))
        self.bare = nn.RNNCell(4, 3, bias=False, nonlinearity="relu", dtype=F64)

    def forward(self, x):
        h, c = self.lstm(x)
        h, c = self.lstm(x * 0.5, (h, c))
        g = self.gru(x, h)
        r = self.bare(self.rnn(x, g))
        return (c * g).sum() + (r * r).sum(), h, c, g, r


def test_cells(tmp_path):
    torch.manual_seed(4)
    exported = Exported(tmp_path, Cells(), {"x": torch.randn(6, 5, dtype=F64)}, form="training")
    for plan in (("r=1",), ("tp=3", "--place", "input:x=tp:S(0)"), ("tp=2", "--place", "param:*=tp:S(0)")):
        exported.run(*plan)


class Dropping(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layer = nn.LSTM(5, 6, num_layers=2, dropout=p, batch_first=True, dtype=F64)

    def forward(self, x):
        y, (h, c) = self.layer(x)
        return (y * y).sum() + (h * h).sum(), y, h, c


def test_all_is_dropped_between_layers(tmp_path):
    torch.manual_seed(6)
    exported = Exported(tmp_path, Dropping(1.0).train(), {"x": torch.randn(4, 7, 5, dtype=F64)}, form="training", train=True)
    exported.run("r=1")
    exported.run("dp=2", "--place", "input:x=dp:S(0)")


class Shown(nn.Module):
    """The first layer's outputs are all 1, and the second's are its inputs."""

    def __init__(self, p):
        super().__init__()
        self.layer = nn.RNN(5, 6, num_layers=2, nonlinearity="relu", dropout=p, batch_first=True, dtype=F64)
        for name, value in self.layer.named_parameters():
            value.requires_grad_(False).copy_(torch.eye(6) if name == "weight_ih_l1" else torch.full_like(value, name == "bias_ih_l0"))

    def forward(self, x):
        return self.layer(x)[0]


def test_some_is_dropped_between_layers(tmp_path):
    """A quarter of the second layer's inputs are, by the same numbers on all meshes, and the others are larger for it."""
    x = torch.randn(12, 7, 5, dtype=F64)
    torch.export.save(shardc_export.export(Shown(0.25).train(), (), {"x": x}, form="training", train=True), tmp_path / "m.pt2")
    save_file({"x": x}, tmp_path / "in.safetensors")
    found = []
    for plan in (("r=1",), ("dp=3", "--place", "input:x=dp:S(0)"), ("tp=2", "--place", "param:*=tp:S(0)")):
        run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", *plan, "-o", tmp_path / "m.so")
        run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
            tmp_path / "out.safetensors")
        (y,) = (t for t in load_file(tmp_path / "out.safetensors").values() if t.shape == (12, 7, 6))
        found.append(y)
        torch.testing.assert_close(y, found[0])
    dropped, count = found[0] == 0, found[0].numel()
    torch.testing.assert_close(found[0][~dropped], torch.full((int((~dropped).sum()),), 4 / 3, dtype=F64))
    deviation = (count * 0.25 * 0.75) ** 0.5
    assert abs(int(dropped.sum()) - count / 4) < 4 * deviation


def test_dynamic_batch(tmp_path):
    layer, x = nn.GRU(3, 3, batch_first=True), torch.randn(5, 6, 3)
    program = shardc_export.export(layer, (torch.randn(2, 6, 3),), {}, form="training", dynamic=["input:0=batch"])
    torch.export.save(program, tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=2", "--place", "input:input=dp:S(0)", "-o", tmp_path / "m.so")
    save_file({"input": x}, tmp_path / "in.safetensors")
    run(tool("shard-run"), tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs", tmp_path / "in.safetensors", "--outputs",
        tmp_path / "out.safetensors")
    got = load_file(tmp_path / "out.safetensors")
    with torch.no_grad():
        torch.testing.assert_close([got[str(name)] for name in program.graph_signature.user_outputs], list(layer(x)))
