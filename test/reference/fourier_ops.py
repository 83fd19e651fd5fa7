# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that are Fourier transforms (see aten_ops.py). PyTorch refuses some empty shards."""
import torch

from aten_ops import aten, mixed

NORMS = ("backward", "ortho", "forward")


def _empty(x, dim, size, pair):
    """What an empty shard becomes; the transformed dim is whole on each rank."""
    shape = list(x.shape)
    shape[dim] = size
    return torch.zeros(shape + pair, dtype=x.dtype)


def _whole(function):
    def transform(o, a, t):
        x = o["self"]
        if x.numel() == 0:
            size = x.shape[a["dim"]]
            return _empty(x, a["dim"], size // 2 + 1 if "onesided" in a else size, [2] if function is _r2c else [])
        return function(o["self"], a, int(a.get("normalization", 0)))
    return transform


def _to_complex(x):
    return torch.view_as_complex(x.contiguous())


def _c2c(x, a, n):
    if "forward" in a:
        return torch.view_as_real(torch.fft.fft(_to_complex(x), dim=a["dim"], norm=NORMS[n]))
    return torch.view_as_real(torch.fft.ifft(_to_complex(x), dim=a["dim"], norm=NORMS[2 - n]))


def _r2c(x, a, n):
    function = torch.fft.rfft if "onesided" in a else torch.fft.fft
    return torch.view_as_real(function(x, dim=a["dim"], norm=NORMS[n]))


aten("fft_c2c", "self")(_whole(_c2c))
aten("fft_r2c", "self")(_whole(_r2c))


@aten("fft_c2r", "self", "*last_dim_size")
def _c2r(o, a, t):
    x, n = o["self"], int(a.get("normalization", 0))
    size = mixed(a["static_last_dim_size"], o["last_dim_size"])[0]
    if x.numel() == 0:
        return _empty(x[..., 0], a["dim"], size, [])
    return torch.fft.irfft(_to_complex(x), n=size, dim=a["dim"], norm=NORMS[2 - n])
