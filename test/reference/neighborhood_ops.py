# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops of neighborhood attention (see aten_ops.py)."""
import pathlib
import sys

from aten_ops import aten, mixed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "dialects/aten/Inputs"))
from neighborhood_cases import Products  # noqa: E402


def products(o, a):
    place = mixed(a["static_place"], o["place"])
    cut = a.get("cut") or [-1] * len(a["kernel_size"])
    return Products(zip(a["kernel_size"], a["stride"], a["dilation"], a["is_causal"], cut, strict=True),
                    [tuple(place[i:i + 4]) for i in range(0, len(place), 4)])


@aten("neighborhood_qk", "query", "key", "*place")
def neighborhood_qk(o, a, t):
    return products(o, a).qk(o["query"], o["key"])


@aten("neighborhood_av", "weights", "value", "*place")
def neighborhood_av(o, a, t):
    return products(o, a).av(o["weights"], o["value"])


@aten("neighborhood_adjoint", "weights", "rows", "*place")
def neighborhood_adjoint(o, a, t):
    return products(o, a).adjoint(o["weights"], o["rows"])
