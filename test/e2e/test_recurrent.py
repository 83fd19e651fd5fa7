# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers and cells as plain exports keep them (`aten.lstm.input` and its kin), and results that are written into an argument
`out`: values and gradients, whole and sharded, against PyTorch."""
import pytest
import torch
from torch import nn

from test_complex import Exported, shardc_export
from conftest import run, tool

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


class Out(nn.Module):
    """Writes into tensors that others look at: a buffer, a part of one, a new one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(6, 4, dtype=F64))

    def forward(self, x, y):
        torch.div(x, y, out=self.kept)
        made = torch.empty(6, 4, dtype=F64)
        first = made[:3]
        torch.mul(x, 3.0, out=made)
        torch.add(x[:3], y[:3], alpha=2, out=first)
        joined = torch.empty(12, 4, dtype=F64)
        both = torch.cat([x, y], out=joined)
        square = torch.matmul(x, y.T, out=torch.empty(6, 6, dtype=F64))
        diagonal = square.clone().fill_diagonal_(2.5)
        tall = torch.cat([x, y]).fill_diagonal_(-1.5, wrap=True)
        return made, both, square, diagonal, tall, self.kept * 2, nn.functional.rrelu(x - 1.0, 0.1, 0.4)


def test_results_in_an_argument(tmp_path):
    torch.manual_seed(5)
    inputs = {"x": torch.rand(6, 4, dtype=F64) + 0.5, "y": torch.rand(6, 4, dtype=F64) + 0.5}
    for form in ("training", "composite"):
        exported = Exported(tmp_path, Out(), inputs, form=form)
        for plan in (("r=1",), ("tp=2", "--place", "input:x=tp:S(0)"), ("tp=3", "--place", "input:*=tp:S(1)")):
            exported.run(*plan)


def test_refused(tmp_path):
    class Dynamic(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(3, 3, batch_first=True)

        def forward(self, x):
            return self.layer(x)[0]

    program = shardc_export.export(Dynamic(), (torch.randn(2, 6, 3),), {}, form="training", dynamic=["x:0=batch"])
    torch.export.save(program, tmp_path / "batch.pt2")
    run(tool("shardc"), "compile", tmp_path / "batch.pt2", "--mesh", "dp=2", "--place", "input:x=dp:S(0)", "-o", tmp_path / "m.so")
    program = torch.export.export(nn.RReLU(), (torch.randn(4),))
    torch.export.save(program, tmp_path / "r.pt2")
    done = run(tool("shardc"), "compile", tmp_path / "r.pt2", "--mesh", "dp=2", "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and "'rrelu' in training is not supported" in done.stderr
