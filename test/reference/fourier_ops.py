# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that are Fourier transforms (see aten_ops.py). PyTorch refuses some empty shards."""
import torch

from aten_ops import aten, mixed

NORMS = ("backward", "ortho", "forward")


def _whole(function):
    def transform(o, a, t):
        if o["self"].numel() == 0:
            return torch.zeros(t[0].shape, dtype=t[0].dtype)
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
    if x.numel() == 0:
        return torch.zeros(t[0].shape, dtype=t[0].dtype)
    size = mixed(a["static_last_dim_size"], o["last_dim_size"])[0]
    return torch.fft.irfft(_to_complex(x), n=size, dim=a["dim"], norm=NORMS[2 - n])
