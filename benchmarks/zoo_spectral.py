# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models with complex numbers and Fourier transforms for zoo.py, written as their papers' code has them."""
import torch
from torch import nn
from torch.nn import functional as F


class SpectralConv(nn.Module):
    """A layer of a Fourier neural operator."""

    def __init__(self, channels=8, modes=(4, 3)):
        super().__init__()
        self.modes = modes
        self.low, self.high = (nn.Parameter(torch.randn(channels, channels, *modes, dtype=torch.cfloat) / channels) for _ in range(2))
        self.beside = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        m, n = self.modes
        ft = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:2], x.shape[2], x.shape[3] // 2 + 1, dtype=torch.cfloat)
        out[:, :, :m, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, :m, :n], self.low)
        out[:, :, -m:, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, -m:, :n], self.high)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.beside(x))


class NeuralOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.layers, self.project = nn.Conv2d(3, 8, 1), nn.Sequential(SpectralConv(), SpectralConv()), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        return self.project(self.layers(self.lift(x)))


class GlobalFilter(nn.Module):
    """GFNet's mixer of patches."""

    def __init__(self, h, w, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(h, w // 2 + 1, channels, 2) * 0.02)

    def forward(self, x):
        z = torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(self.weight)
        return torch.fft.irfft2(z, s=x.shape[1:3], dim=(1, 2), norm="ortho")


class FilterBlock(nn.Module):
    def __init__(self, h=14, w=14, channels=16):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(channels), GlobalFilter(h, w, channels)
        self.mlp = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, 48), nn.GELU(), nn.Linear(48, channels))

    def forward(self, x):
        return x + self.mlp(self.mix(self.norm(x)))


class FourierMixing(nn.Module):
    """A layer of FNet: the real part of a transform over sequence and channels."""

    def __init__(self, channels=24):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.mlp = nn.Sequential(nn.Linear(channels, 48), nn.GELU(), nn.Linear(48, channels))

    def forward(self, x):
        y = self.norm(x + torch.fft.fft2(x).real)
        return y + self.mlp(y)


class ComplexRotary(nn.Module):
    """Attention with rotary embeddings as in Llama's original code."""

    def __init__(self, heads=4, size=8, length=32):
        super().__init__()
        self.heads, self.size = heads, size
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(heads * size, heads * size, bias=False) for _ in range(4))
        angles = torch.outer(torch.arange(length), 1.0 / 10000 ** (torch.arange(0, size, 2) / size))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def turned(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.freqs_cis[:x.shape[1], None, :]).flatten(3).type_as(x)

    def forward(self, x):
        q, k, v = (w(x).view(*x.shape[:2], self.heads, self.size) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (self.turned(q), self.turned(k), v)), is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Spectrogram(nn.Module):
    def __init__(self, size=32, step=8):
        super().__init__()
        self.size, self.step = size, step
        self.register_buffer("window", torch.hann_window(size))
        self.head = nn.Linear(size // 2 + 1, 10)

    def forward(self, x):
        z = torch.stft(x, self.size, self.step, window=self.window, return_complex=True)
        return self.head(torch.log1p(z.abs() ** 2).transpose(1, 2))


def layers():
    return {
        "neural_operator": lambda: (NeuralOperator(), torch.randn(4, 3, 16, 12)), "global_filter": lambda: (FilterBlock(), torch.randn(4, 14, 14, 16)),
        "fourier_mixing": lambda: (FourierMixing(), torch.randn(4, 15, 24)), "complex_rotary": lambda: (ComplexRotary(), torch.randn(4, 9, 32)),
        "spectrogram": lambda: (Spectrogram(), torch.randn(4, 200)),
    }
