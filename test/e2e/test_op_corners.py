# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where operators are easily wrong: ties, zeros of either sign, operands that broadcast along the dim that is summed up, integers beside
fractions, bounds that a short type rounds. As torch.export leaves them, values and gradients against PyTorch, whole and sharded."""
import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import run, tool
from plans import places

F64, F16 = torch.float64, torch.float16
INF, NAN = float("inf"), float("nan")


def k(*numbers):
    return torch.tensor(numbers, dtype=F64)


def pairs(*numbers):
    return torch.view_as_real(torch.tensor(numbers, dtype=torch.complex128))


def of_pairs(function):
    return lambda z: torch.view_as_real(function(torch.view_as_complex(z)))


def written(x, view):
    y = x * 1
    view(y).mul_(k(3)[0])
    return y


def shaped_in_place(x):
    """Tensors that look at their storage anew, under all their names, while it is written to."""
    t = x * 1
    t.unsqueeze_(1)
    t.mul_(2)
    t.transpose_(0, 1)
    t[0, 1] = 5.0
    a = x.cos()
    b = a[0]
    a.t_()
    b.add_(1)
    return torch.cat([part.flatten() for part in (t, a, b, x.sin().swapaxes_(0, 1), (x + 1)[None].squeeze_(0))])


def spectrum_of_nothing(x):
    return torch.view_as_real(torch.fft.fftn(x, dim=()))


def checked(x):
    """As `transformers` compares numbers of image tokens and of features."""
    torch._check_tensor_all(torch.tensor(x.shape[0] * 2) == (x == x).sum(), lambda: "not as many")
    return x * 2


def nearest(factor):
    """PyTorch's kernel for two dims looks at the sizes, and the others at the factor."""
    return lambda x: (F.interpolate(x, scale_factor=factor), F.interpolate(x[None], scale_factor=(1, factor)), F.interpolate(x[:, :, None, None], scale_factor=(1, 1, factor)))


def spectrogram(x, *sizes, **how):
    return torch.view_as_real(torch.stft(x, *sizes, return_complex=True, **how))


def heard(x, size, hop, **how):
    """A signal that is changed in its spectrogram."""
    window = torch.hann_window(size, dtype=F64) + 0.1
    spectrum = torch.stft(x, size, hop, window=window, return_complex=True, **how)
    return torch.istft(spectrum * torch.arange(1, spectrum.shape[-2] + 1)[:, None], size, hop, window=window, **how)


LONG = torch.tensor([[3, 1, 4], [0, 6, 5]])
ROWS = torch.tensor([[3, 1, 4, 0, 2], [0, 4, -1, 3, 1], [-1, 0, 1, 2, 3]])
# Of all operands.
DIFFERENTIABLE = {
    "cosine of a column": (lambda x, y: F.cosine_similarity(x, y, dim=1), torch.rand(4, 1, dtype=F64) + 1, torch.randn(4, 7, dtype=F64)),
    "cosine of a row": (lambda x, y: F.cosine_similarity(x, y, dim=0), torch.randn(6, dtype=F64), torch.randn(4, 6, dtype=F64)),
    "cosine of pairs": (lambda x, y: F.cosine_similarity(x, y, dim=-1), torch.randn(3, 1, 5, dtype=F64), torch.randn(4, 5, dtype=F64)),
    "lgamma": (torch.lgamma, k(1e-9, 0.5, 1, 2, 1 + 1e-9, 9.999, 10, 171.7, 1e5, -0.5, -2.25, -7.9, -100.5)),
    "lgamma of large numbers": (lambda x: torch.lgamma(x) * 1e-42, k(1e30, 1e40)),
    # PyTorch's own derivative has an error of 1e-9 of it where the second term counts.
    "digamma": (torch.digamma, k(1e-3, 9.999, 10, 1e5, 1e150, -0.5, -2.25, -7.9, -100.5)),
    "entropy": (torch.special.entr, k(1e-300, 0.25, 1, 7)),
    "transposed convolution of one element": (lambda x, w: F.conv_transpose1d(x, w, dilation=2, output_padding=1), torch.randn(1, 2, 8, dtype=F64),
                                              torch.randn(2, 3, 1, dtype=F64)),
    "few rows": (lambda x: x.index_select(0, torch.tensor([3, 70])), torch.randn(100, 2, dtype=F64)),
    "overlapping places": (lambda x: x.as_strided((3, 2), (2, 3), 1) ** 2, torch.randn(4, 3, dtype=F64)),
    "xlogy": (torch.xlogy, k(0, 0, 0, 1.5, -2), k(2, 0.5, 1, 3, 0.25)),
    "xlog1py": (torch.special.xlog1py, k(0, 0, 0, 1.5, -2), k(2, -0.5, 1, 3, 0.25)),
    "fmax": (torch.fmax, k(1, 1, 2, NAN, 1, -3), k(1, 2, 1, 1, NAN, -3)),
    "fmin": (torch.fmin, k(1, 1, 2, NAN, 1, -3), k(1, 2, 1, 1, NAN, -3)),
    "fmax of a row": (torch.fmax, k(1, 2, 3), torch.tensor([[1.0, 3, 2], [3, 2, 1]], dtype=F64)),
    "shapes in place": (shaped_in_place, torch.randn(4, 6, dtype=F64)),
    "complex sqrt": (of_pairs(torch.sqrt), pairs(-4, complex(-4, -0.0), -1 + 2j, 3 - 1j, -2 - 1j, 2, 3j)),
    "angle": (lambda z: torch.view_as_complex(z).angle(), pairs(0, complex(-0.0, 0), 1, -1 + 2j, -3, 2 - 1j)),
    "poisson of counts": (lambda x: F.poisson_nll_loss(x, LONG), torch.rand(2, 3, dtype=F64) + 0.5),
    "poisson of rates": (lambda x: F.poisson_nll_loss(x, LONG.double(), log_input=False, full=True, reduction="none"), torch.rand(2, 3, dtype=F64) + 0.5),
    "copysign": (lambda x: torch.copysign(x, k(1, -1, 1, -1)), k(0, -0.0, 2, -3)),
    "nan_to_num": (lambda x: torch.nan_to_num(x, nan=2, posinf=3, neginf=INF).clamp(max=9), k(NAN, INF, -INF, 1, -0.0)),
    "trapezoid": (lambda x: torch.trapezoid(x, dim=1), torch.randn(3, 5, dtype=F64)),
    "other names": (of_pairs(lambda z: torch.subtract(torch.multiply(torch.negative(z), z), torch.divide(torch.concat([z[1:], z[:1]]), 2), alpha=3)),
                    pairs(1 + 2j, -1j, 3)),
    "absolute": (lambda z: torch.absolute(torch.view_as_complex(z)), pairs(1 + 2j, -1j, 3)),
    "no dims of a spectrum": (spectrum_of_nothing, torch.randn(3, 5, dtype=F64)),
    "windows": (lambda x: written(x, lambda y: y.as_strided((3, 4), (4, 1))[1]), torch.randn(12, dtype=F64)),
    "at least": (lambda x: written(x, torch.atleast_2d), torch.randn(5, dtype=F64)),
    "at least one": (lambda x: written(x, torch.atleast_1d), torch.randn(5, dtype=F64)),
    "repeats": (lambda x: x.repeat_interleave(torch.tensor(2), 0, output_size=6), torch.randn(3, 2, dtype=F64)),
    "softshrink": (lambda x: F.softshrink(x, 0.5), k(0.5, -0.5, 0.75, -2, 0)),
    "hardshrink": (lambda x: F.hardshrink(x, 0.5), k(0.5, -0.5, 0.75, -2, 0)),
    "threshold": (lambda x: F.threshold(x, 0.5, -7), k(0.5, -0.5, 0.75, -2, 0)),
    "spectrogram": (lambda x: spectrogram(x, 8, 3, 5, window=torch.hann_window(5, dtype=F64)), torch.randn(3, 23, dtype=F64)),
    "spectrogram of a row": (lambda x: spectrogram(x, 7, normalized=True, onesided=False, pad_mode="circular"), torch.randn(23, dtype=F64)),
    "spectrogram with a short window": (lambda x: spectrogram(x, 8, 2, 5, center=False), torch.randn(2, 23, dtype=F64)),
    "complex spectrogram": (lambda z: spectrogram(torch.view_as_complex(z), 4, center=False, window=torch.hann_window(4, dtype=F64)), torch.randn(3, 11, 2, dtype=F64)),
    "centred complex spectrogram": (lambda z: spectrogram(torch.view_as_complex(z), 4), torch.randn(3, 11, 2, dtype=F64)),
    "spectrogram with a complex window": (lambda x: spectrogram(x, 8, 3, 5, window=torch.polar(torch.ones(5, dtype=F64), torch.arange(5, dtype=F64)), onesided=False), torch.randn(2, 23, dtype=F64)),
    "complex signal of a complex window": (of_pairs(lambda z: torch.istft(z, 8, 2, window=torch.polar(torch.arange(1, 9, dtype=F64), 0.1 * torch.arange(8, dtype=F64)), onesided=False, return_complex=True)), torch.randn(2, 8, 7, 2, dtype=F64)),
    "complex pads": (of_pairs(lambda z: sum(F.pad(z, (2, 1), mode=mode) for mode in ("reflect", "replicate", "circular", "constant"))), torch.randn(3, 11, 2, dtype=F64)),
    "complex pads of images": (of_pairs(lambda z: F.pad(z, (1, 2, 3, 0), mode="reflect") * F.pad(z, (1, 2, 3, 0), value=2.5)), torch.randn(2, 3, 4, 5, 2, dtype=F64)),
    "signal": (lambda x: heard(x, 8, 3), torch.randn(3, 23, dtype=F64)),
    "signal of known length": (lambda x: torch.istft(torch.view_as_complex(x), 6, 2, length=13), torch.randn(2, 4, 5, 2, dtype=F64)),
    "signal in two sides": (lambda x: heard(x, 8, 2, onesided=False, normalized=True), torch.randn(23, dtype=F64)),
    "complex signal": (lambda z: torch.view_as_real(torch.istft(torch.view_as_complex(z), 4, 3, center=False, onesided=False, return_complex=True)),
                       torch.randn(3, 4, 5, 2, dtype=F64)),
    "affine grid": (lambda x: F.affine_grid(x, [3, 2, 4, 5], align_corners=False), torch.randn(3, 2, 3, dtype=F64)),
    "affine grid of corners": (lambda x: F.affine_grid(x, [3, 2, 1, 4, 5], align_corners=True), torch.randn(3, 3, 4, dtype=F64)),
    "fake quantised": (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7), torch.tensor([-2, -1.1, -0.43, 0.05, 0.15, 0.31, 0.46, 3])),
    "fake quantised rows": (lambda x: torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.3, 0.2]), torch.tensor([0, 3, -1], dtype=torch.int32), 1, -8, 7),
                            torch.randn(4, 3, 2, dtype=F64)),
    "sequences": (lambda x, y: torch.cat([nn.utils.rnn.pad_sequence([x, y], padding_value=0.5), nn.utils.rnn.pad_sequence([x, y], True, padding_side="left").transpose(0, 1)]),
                  torch.randn(5, 2, dtype=F64), torch.randn(3, 2, dtype=F64)),
    "differences of differences": (lambda x, y: x.diff(n=3, prepend=y), torch.randn(3, 6, dtype=F64), torch.randn(3, 2, dtype=F64)),
    "slopes": (lambda x: torch.cat(torch.gradient(x, spacing=(0.5, 2.0))), torch.randn(3, 6, dtype=F64)),
    "slopes between places": (lambda x, t: torch.gradient(x, spacing=(t.cumsum(0),), dim=1, edge_order=2)[0], torch.randn(3, 6, dtype=F64), torch.rand(6, dtype=F64) + 0.5),
    "margins": (lambda x: F.multi_margin_loss(x, torch.tensor([3, 0, 4]), p=2, margin=0.7, weight=k(0.5, 2, 1, 0, 3), reduction="none"), torch.randn(3, 5, dtype=F64)),
    "margins of labels": (lambda x: F.multilabel_margin_loss(x, ROWS), torch.randn(3, 5, dtype=F64)),
    "distances of pairs": (torch.pdist, torch.randn(5, 3, dtype=F64)),
    "norms that are limited": (lambda x: torch.renorm(x, 2, 1, 1.5), torch.randn(4, 5, dtype=F64)),
    "put": (lambda x, y: x.put(torch.tensor([[3, 1, 3], [-1, 0, 1]]), y, accumulate=True), torch.randn(4, 5, dtype=F64), torch.randn(2, 3, dtype=F64)),
    "softmax of nothing": (lambda x: torch.ops.aten._safe_softmax(x.masked_fill(torch.arange(4)[:, None] == 2, -INF), -1), torch.randn(4, 3, dtype=F64)),
    "batches added up": (lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2), torch.randn(2, 4, dtype=F64), torch.randn(3, 2, 5, dtype=F64), torch.randn(3, 5, 4, dtype=F64)),
    "erfc": (torch.erfc, k(-7, -1, -0.5, 0, 0.1, 0.5, 1, 3, 9, 26)),
    "erfcx": (torch.special.erfcx, k(-3, -0.5, 0, 0.1, 2, 9, 26, 300)),
    "logarithm of the normal distribution": (torch.special.log_ndtr, k(-30, -9, -1, 0, 0.5, 3, 8)),
    "quantile of the normal distribution": (torch.special.ndtri, k(1e-200, 1e-9, 0.05, 0.1, 0.5, 0.77, 1 - 1e-9)),
    "modified Bessel functions": (lambda x: torch.cat([torch.special.i0(x), torch.special.i0e(x), torch.special.i1(x), torch.special.i1e(x)]), k(-30, -3, -0.1, 0.2, 7.9, 8.1, 20)),
    "polygamma": (lambda x: torch.polygamma(2, x), k(0.1, 1, 9.99, 10, 300, -0.5, -2.25)),
    "multivariate gamma": (lambda x: torch.mvlgamma(x, 3), k(1.5, 2, 17)),
    "kaiser window": (lambda x: x * torch.kaiser_window(9, dtype=F64), torch.randn(2, 9, dtype=F64)),
    "margins that are met": (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2]), reduction="none"), torch.tensor([[1.0, 0, 0], [2, 1, 0], [0, 0, 3]], dtype=F64)),
    "margins of labels that are met": (lambda x: F.multilabel_margin_loss(x, torch.tensor([[1, 0, -1], [0, -1, 2], [2, 1, 0]])), torch.tensor([[1.0, 0, 0], [2, 1, 0], [0, 0, 3]], dtype=F64)),
    "steps from a tensor": (lambda x: torch.linspace(x[0], x[1], 4, dtype=F64) * x[0], k(2, -3)),
    "fake quantised with fractions": (lambda x: torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.3]), torch.tensor([0.5, -0.25]), 0, -8, 7),
                                      torch.tensor([[-0.83, -0.67, -0.31], [0.4, 1.7, NAN]])),
    "last row of bags": (lambda w: F.embedding_bag(torch.tensor([3, 1, 3, 0, 3]), w, torch.tensor([0, 2, 4]), mode="mean", padding_idx=-1), torch.randn(4, 3, dtype=F64)),
    "weight norm": (lambda v, g: torch._weight_norm(v, g, 0), torch.randn(4, 3, dtype=F64), torch.randn(4, 1, dtype=F64)),
}
# Formulas of a hundred ops and more for each element: shards are no other case.
ALONE = {"lgamma", "lgamma of large numbers", "digamma", "erfc", "erfcx", "logarithm of the normal distribution", "quantile of the normal distribution",
         "modified Bessel functions", "polygamma", "multivariate gamma"}
SHORT = torch.cat([torch.linspace(-1.2, 1.3, 22), torch.tensor([0.3, -0.3])]).reshape(4, 6).to(F16)
ONLY_VALUES = {
    "one of two numbers": (lambda x: torch.where(x > 0, 1.0, 2.0) + torch.where(x > 0, 1, 0.5), k(-1, 2, 0)),
    "one of two integers": (lambda x: torch.where(x > 0, 3, -2), k(-1, 2, 0)),
    "one of two truths": (lambda x: torch.where(x > 0, False, True), k(-1, 2, 0)),
    "checked": (checked, torch.randn(4, 2, dtype=F64)),
    "nearest of two": (lambda x: torch.cat([y.flatten() for y in nearest(2.3)(x)]), torch.randn(2, 3, 2, dtype=F64)),
    "nearest of three": (lambda x: torch.cat([y.flatten() for y in nearest(2.3)(x)]), torch.randn(2, 3, 3, dtype=F64)),
    "nearest of a wide image": (lambda x: F.interpolate(x, scale_factor=(2.3, 40)), torch.randn(1, 2, 2, 4, dtype=F64)),
    "nearest, channels last": (lambda x: F.interpolate(x, scale_factor=(2.3, 1, 1)), torch.randn(1, 5, 2, 3, 3, dtype=F64).to(memory_format=torch.channels_last_3d)),
    "nearest in f32": (lambda x: F.interpolate(x, size=41, mode="nearest-exact"), torch.randn(1, 2, 2)),
    "nearest in f64": (lambda x: F.interpolate(x, size=98), torch.randn(1, 2, 2, dtype=F64)),
    "few rows of many": (lambda x: x.index_select(0, torch.tensor([3, 70])), torch.randn(100, 2, dtype=F64)),
    "nearest of nineteen": (lambda x: F.interpolate(x, scale_factor=2.3, mode="nearest-exact"), torch.randn(2, 3, 19, dtype=F64)),
    "lgamma": (torch.lgamma, k(0, -0.0, -1, -3, INF, -INF, NAN)),
    "lgamma of short numbers": (torch.lgamma, torch.tensor([0.1, 1, 3.5, -0.5, 200], dtype=F16)),
    "lgamma of integers": (torch.lgamma, torch.tensor([1, 2, 9, 40])),
    "digamma": (torch.digamma, k(0.5, 1, 1.4616321, 3.25, 0, -0.0, -1, -3, INF, -INF, NAN)),
    "entropy": (torch.special.entr, k(0, -0.0, -1, INF, -INF, NAN)),
    "xlogy": (torch.xlogy, k(0, 0, 0, 0, 0, 1), k(0, -1, INF, NAN, -INF, 0)),
    "xlog1py": (torch.special.xlog1py, k(0, 0, 0, 0, 1), k(-1, -2, INF, NAN, -1)),
    "fmax": (torch.fmax, k(NAN, INF, -INF), k(NAN, NAN, 1)),
    "fmin of integers": (torch.fmin, torch.tensor([1, 5, 3]), torch.tensor([2, 4, 3])),
    "fmax of both": (torch.fmax, torch.tensor([1, 5, 3]), torch.tensor([2, NAN, 3])),
    "nan_to_num": (lambda x: torch.nan_to_num(x, nan=INF, posinf=1, neginf=NAN), k(NAN, INF, -INF, 1)),
    "angle of real numbers": (torch.angle, k(-1, -0.0, 0, 2, NAN, -INF)),
    "real": (torch.isreal, k(1, NAN)),
    "among": (lambda x: torch.isin(x, torch.tensor([1, 3, 5]), invert=True), LONG),
    "lookups at other positions": (lambda x: (x.index_select(0, torch.tensor([0, 1, 1, 2, 3, 4, 5, 6, 6, 7])) * 2
                                              + x.index_select(0, torch.tensor([7, 1, 5, 2, 0, 4, 3, 6, 0, 1])) * 2), torch.randn(8, 3)),
    "integers between tensors": (lambda n: torch.linspace(n, 100, 101, dtype=torch.int64), torch.tensor(0)),
    "a power between tensors": (lambda x: torch.logspace(x, 3.0, 1, dtype=torch.int64), torch.tensor(1.5)),
    "slopes of integers": (lambda n: torch.gradient(n)[0], torch.tensor([16777217, 16777218, 16777220, 16777223])),
    "a number of nothing": (lambda x: torch.ops.aten._safe_softmax(x, 0), torch.tensor(-INF)),
    "integers among fractions": (lambda n: torch.isin(n, 16777216.0), torch.tensor([16777216, 16777217, 5])),
    "kaiser windows": (lambda x: torch.kaiser_window(5, True, -3.0) * x + torch.kaiser_window(1), torch.randn(5)),
    "fake quantised by tensors": (lambda x: torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(2, dtype=torch.int32), -8, 7), torch.randn(9)),
    "steps between tensors": (lambda x: torch.linspace(x[0], x[1], 7), k(-1, 4)),
    "powers between tensors": (lambda x: torch.logspace(x[0], 2.0, 5, base=2), k(-1, 4)),
    "copies of views": (lambda x: (torch.ops.aten.permute_copy(x, [1, 0]) + torch.ops.aten.unbind_copy(x[:, None], 1)[0].t()) * torch.ops.aten.narrow_copy(x, 0, 1, 1)[0, 0],
                        torch.randn(3, 4)),
    "batches beside no numbers": (lambda x: torch.addbmm(x, torch.ones(3, 2, 5), torch.ones(3, 5, 2), beta=0), torch.full((2, 2), NAN)),
    "heaviside": (torch.heaviside, k(0, -1, 2, NAN), k(0.5, 7, 7, 7)),
    "margin of integers": (lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=0.5), torch.tensor([1, 2]), torch.tensor([2, 3]), torch.tensor([1, -1])),
    "poisson of integers": (lambda x, t: F.poisson_nll_loss(x, t, full=True), torch.tensor([1, 2]), torch.tensor([3, 4])),
    "threshold of f16": (lambda x: F.threshold(x, 0.3, 9), SHORT),
    "softshrink of f16": (lambda x: F.softshrink(x, 0.3), SHORT),
    "hardshrink of f16": (lambda x: F.hardshrink(x, 0.3), SHORT),
    "weight norm of f16": (lambda v, g: torch._weight_norm(v, g, 0), SHORT, SHORT[:, :1] + 2),
    "no elements": (lambda x: torch.trapezoid(x, dim=1), torch.zeros(3, 0)),
    "no sums": (lambda x: torch.cumulative_trapezoid(x, dim=1), torch.zeros(3, 1)),
    "one-hot": (lambda x: F.one_hot(x, 7), LONG),
    "repeats of a number": (lambda x: torch.repeat_interleave(x, torch.tensor(3), output_size=3), torch.tensor(4)),
    "positions": (lambda n: torch.repeat_interleave(n, output_size=9), torch.tensor([2, 0, 4, 3])),
}


class Rows(nn.Module):
    """All rows of a table. Its first output is the sum of what they compute times fixed numbers."""

    def __init__(self, table, differentiates):
        super().__init__()
        self.table, self.differentiates = table, differentiates
        self.operands = [[f"x{n}_{i}" for i in range(len(row) - 1)] for n, row in enumerate(table.values())]
        for names, (_, *values) in zip(self.operands, table.values()):
            for name, value in zip(names, values):
                if self.differentiates:
                    self.register_parameter(name, nn.Parameter(value.clone()))
                else:
                    self.register_buffer(name, value)

    def forward(self, one):
        outputs = [row[0](*(getattr(self, name) for name in names)) for names, row in zip(self.operands, self.table.values())]
        if not self.differentiates:
            return tuple(outputs)
        total = sum((y * torch.arange(1, y.numel() + 1, dtype=F64).reshape(y.shape).sin()).sum() for y in outputs)
        return total * one, *outputs


@pytest.mark.parametrize("mesh", ["r=1", "tp=2"], ids=["whole", "sharded"])
@pytest.mark.parametrize("table", [DIFFERENTIABLE, ONLY_VALUES], ids=["gradients", "values"])
def test_against_pytorch(table, mesh, tmp_path):
    differentiates = table is DIFFERENTIABLE
    if differentiates and mesh != "r=1":
        table = {name: row for name, row in table.items() if name not in ALONE}
    model, one = Rows(table, differentiates), torch.ones((), dtype=F64)
    torch.export.save(torch.export.export(model, (one,)), tmp_path / "m.pt2")
    want = model(one)
    kind = "param"
    plan = places(*(f"{kind}:{name}=tp:S(0)" for name, x in model.state_dict().items() if x.dim() and len(x) > 1)) if mesh != "r=1" else []
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *plan, *(["--gradients", 0] if differentiates else []), "-o",
        tmp_path / "m.so")
    save_file({"one": one}, tmp_path / "in.safetensors")
    run(tool("shard-run"), tmp_path / "m.so", *(["--entry", "gradients"] if differentiates else []), "--weights", tmp_path / "m.pt2", "--inputs",
        tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    entry = json.loads(run(tool("shard-run"), tmp_path / "m.so", "--manifest").stdout)["entries"][-1]
    got = load_file(tmp_path / "out.safetensors")
    names = [output["name"] for output in entry["outputs"] if output["kind"] == "user" and output["name"] not in model.state_dict()]
    problems = []

    def compare(what, value, answer):
        try:
            limits = {"rtol": 2**-10, "atol": 2**-12} if answer.dtype == F16 else {"rtol": 1e-10, "atol": 1e-10} if answer.dtype == F64 else {}
            torch.testing.assert_close(value, answer.detach(), equal_nan=True, **limits)
            assert "copysign" not in what or torch.equal(value.signbit(), answer.signbit()), "the signs of zeros"
        except AssertionError as error:
            problems.append(f"{what}: {error}")

    rows = list(table) if not differentiates else ["loss", *table]
    for row, name, answer in zip(rows, names, want, strict=True):
        compare(row, got[name], answer)
    if differentiates:
        parameters = dict(model.named_parameters())
        gradients = torch.autograd.grad(want[0], list(parameters.values()))
        by_row = {name: row for row, names in zip(table, model.operands) for name in names}
        for name, gradient in zip(parameters, gradients):
            compare(f"{by_row[name]}: gradient of {name}", got[name], gradient)
    assert not problems, "\n".join(problems)


class Choices(nn.Module):
    def forward(self, n, x):
        return F.one_hot(n, 5), x.repeat_interleave(n, 0, output_size=4)


@pytest.mark.parametrize("mesh", ["r=1", "tp=2"], ids=["whole", "sharded"])
def test_values_that_have_no_place(mesh, tmp_path):
    """A class that is none of them, and repeats of another sum than the result has elements, are errors of the run."""
    n, x = torch.tensor([1, 0, 3]), torch.randn(3, 2)
    torch.export.save(torch.export.export(Choices(), (n, x)), tmp_path / "m.pt2")
    plan = places("input:n=tp:S(0)") if mesh != "r=1" else []
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *plan, "-o", tmp_path / "m.so")
    for numbers, fits in (([1, 0, 3], True), ([4, 0, 0], True), ([5, -1, 0], False), ([1, 1, 3], False), ([1, 0, 1], False)):
        save_file({"n": torch.tensor(numbers), "x": x}, tmp_path / "in.safetensors")
        done = run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors",
                   check=False)
        assert (done.returncode == 0) == fits, (numbers, done.stderr)
        assert fits or "out of range" in done.stderr
        if fits:
            want = Choices()(torch.tensor(numbers), x)
            assert all(torch.equal(got, answer) for got, answer in zip(load_file(tmp_path / "out.safetensors").values(), want, strict=True))
