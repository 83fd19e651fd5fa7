# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers and Fourier transforms in models: rotary embeddings, spectral convolutions, FNet. Values and gradients, whole and
sharded, against PyTorch; a complex tensor of the program's boundary is pairs of real numbers, with a last dim of 2."""
import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import run, tool
from exported import Exported
from plans import places

F64, C128 = torch.float64, torch.complex128


class Rotary(nn.Module):
    """An attention of Llama's original code: positions are complex numbers, which turn pairs of channels."""

    def __init__(self, heads=4, size=6, length=10):
        super().__init__()
        width = heads * size
        self.heads, self.size = heads, size
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))
        angles = torch.outer(torch.arange(length), 1.0 / 100 ** (torch.arange(0, size, 2) / size))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def turned(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.freqs_cis[:x.shape[1], None, :]).flatten(3).type_as(x)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (w(x).view(b, s, self.heads, self.size) for w in (self.wq, self.wk, self.wv))
        q, k = self.turned(q), self.turned(k)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        y = self.wo(y.transpose(1, 2).flatten(2))
        return (y * y).mean(), y


def test_rotary_embeddings(tmp_path):
    torch.manual_seed(1)
    model = Exported(tmp_path, Rotary(), {"x": torch.randn(2, 7, 24)})
    heads = places(*(f"parameter:w{one}.weight=tp:S(0)" for one in "qkv"), "parameter:wo.weight=tp:S(1)")
    for mesh, plan in (("r=1", []), ("tp=2", heads), ("tp=3", heads), ("dp=2,tp=2", [*heads, *places("input:x=dp:S(0)")])):
        model.run(mesh, *plan)
    # As with real numbers, one sum behind each row of products.
    assert model.moved("tp=2", *heads) == {"all_reduce"}


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: complex weights for the lowest frequencies of either sign."""

    def __init__(self, channels=4, modes=(3, 2)):
        super().__init__()
        self.modes = modes
        self.low, self.high = (nn.Parameter(torch.randn(channels, channels, *modes, dtype=C128) / channels) for _ in range(2))
        self.beside = nn.Conv2d(channels, channels, 1, dtype=F64)

    def forward(self, x):
        m, n = self.modes
        ft = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:2], x.shape[2], x.shape[3] // 2 + 1, dtype=C128)
        out[:, :, :m, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, :m, :n], self.low)
        out[:, :, -m:, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, -m:, :n], self.high)
        y = F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.beside(x))
        return (y * y * y).sum(), y


def test_spectral_convolutions(tmp_path):
    torch.manual_seed(2)
    model = Exported(tmp_path, Spectral(), {"x": torch.randn(3, 4, 8, 7, dtype=F64)})
    model.run("r=1")
    batch, rows = places("input:x=dp:S(0)"), places("input:x=tp:S(2)", "output:1=tp:S(2)")
    model.run("dp=2", *batch)
    model.run("tp=2", *rows)
    model.run("tp=3", *rows)
    model.run("dp=2,tp=2", *places("input:x=dp:S(0),tp:S(3)"))


class Filtered(nn.Module):
    """GFNet's mixer: an image times weights, in frequencies."""

    def __init__(self, h, w, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(h, w // 2 + 1, channels, 2, dtype=F64))

    def forward(self, x):
        z = torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(self.weight)
        y = torch.fft.irfft2(z, s=x.shape[1:3], dim=(1, 2), norm="ortho")
        return (y * y).mean(), y


def test_filters_over_sharded_images(tmp_path):
    """A dim that is transformed is whole where it is. Where what comes behind is sharded by another dim, the shards move to that one."""
    torch.manual_seed(3)
    model = Exported(tmp_path, Filtered(8, 12, 6), {"x": torch.randn(2, 8, 12, 6, dtype=F64)})
    for mesh in ("tp=2", "tp=4"):
        model.run(mesh, *places("input:x=tp:S(1)", "output:1=tp:S(1)"))
        assert model.moved(mesh, *places("input:x=tp:S(1)", "output:1=tp:S(3)")) == {"all_reduce", "all_to_all"}
    model.run("dp=2,tp=2", *places("input:x=dp:S(0),tp:S(1)"))
    # Channels are independent.
    assert model.moved("tp=2", *places("input:x=tp:S(3)", "parameter:weight=tp:S(2)", "output:1=tp:S(3)")) <= {"all_reduce"}


class Lengths(nn.Module):
    """Transforms of all kinds of lengths: small, powers of two, products, primes, and products with large primes."""
    SIZES = (1, 2, 3, 7, 16, 60, 64, 77, 131, 143, 257, 360, 514, 625, 1009, 2048)

    def forward(self, zs, xs):
        results = []
        for n, z, x in zip(self.SIZES, zs, xs):
            results += [torch.fft.fft(z), torch.fft.ifft(z), torch.fft.rfft(x), torch.fft.irfft(torch.fft.fft(z)[..., :n // 2 + 1], n),
                        torch.fft.fft(x, norm="ortho")]
        return tuple(torch.view_as_real(r) if r.is_complex() else r for r in results)


@pytest.mark.parametrize("dtype", [torch.complex64, C128])
def test_lengths(tmp_path, dtype):
    torch.manual_seed(4)
    zs = [torch.randn(2, n, dtype=dtype) for n in Lengths.SIZES]
    Exported(tmp_path, Lengths(), {"zs": zs, "xs": [z.real.contiguous() for z in zs]}).run("r=1")


class Families(nn.Module):
    """torch.fft as a user has it: every function, with lengths, dims and norms."""

    def forward(self, x, z):
        f = torch.fft
        results = []
        for norm in (None, "forward", "ortho"):
            results += [f.fft(x, norm=norm), f.ifft(x, 4, norm=norm), f.rfft(x, 8, 1, norm), f.irfft(z, norm=norm), f.hfft(z, 5, 0, norm),
                        f.ihfft(x, norm=norm), f.fftn(z, norm=norm), f.ifftn(x, (3, 7), norm=norm), f.rfftn(x, dim=(0, 2), norm=norm),
                        f.irfftn(z, (4, 9), (2, 1), norm), f.hfftn(z, dim=(1, 2), norm=norm), f.ihfftn(x, norm=norm), f.fft2(x, norm=norm),
                        f.irfft2(z, norm=norm)]
        results += [f.fftshift(x), f.ifftshift(z, (0, 2)), f.fftfreq(7, 0.5), f.rfftfreq(8), f.fftshift(f.fftfreq(6)),
                    f.fft((x * 3).long()), f.irfft(x)]
        return tuple(torch.view_as_real(r.resolve_conj()) if r.is_complex() else r for r in results)


@pytest.mark.parametrize("way", ["decomposed", "as exported"])
def test_functions_of_torch_fft(tmp_path, way):
    torch.manual_seed(5)
    inputs = {"x": torch.randn(3, 5, 6, dtype=F64), "z": torch.randn(3, 4, 5, dtype=C128)}
    model = Exported(tmp_path, Families(), inputs)
    if way == "as exported":
        torch.export.save(torch.export.export(Families(), (), inputs), tmp_path / "m.pt2")
    model.run("r=1")
    if way == "decomposed":
        model.run("tp=2", *places("input:x=tp:S(1)", "input:z=tp:S(2)"))


class Boundary(nn.Module):
    """Complex parameters, buffers, constants, inputs and outputs, of both widths."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4, dtype=C128))
        self.gain = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.register_buffer("table", torch.randn(4, 30, dtype=C128).t())
        self.register_buffer("state", torch.zeros(4, dtype=C128))

    def forward(self, z, ids):
        small = torch.tensor([1 + 2j, 3 - 1j, 0.5j, -2])
        y = z @ self.weight + self.table[ids] * self.gain + small
        self.state.mul_(0.5).add_(y[0])
        return (y.abs() ** 2).sum(), y, self.state * 1j


def test_complex_tensors_at_the_boundary(tmp_path):
    torch.manual_seed(6)
    inputs = {"z": torch.randn(3, 5, dtype=C128), "ids": torch.tensor([3, 29, 0])}
    module = Boundary()
    model = Exported(tmp_path, module, inputs)
    model.run("r=1")
    model.run("tp=2", *places("input:z=tp:S(1)", "parameter:weight=tp:S(0)"))
    # A file with complex elements has the same bytes.
    module = Boundary().requires_grad_(False)
    model = Exported(tmp_path, module, inputs)
    for name, tensor in inputs.items():
        numpy.save(tmp_path / f"{name}.npy", tensor.numpy())
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "r=1", "-o", tmp_path / "m.so")
    model.answer(*(f"--input={n}={tmp_path / n}.npy" for n in inputs))
