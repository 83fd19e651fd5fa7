# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that add at positions (see aten_ops.py). A rank that holds nothing adds nothing."""
import torch

from aten_ops import aten


@aten("scatter_add", "self", "index", "src")
def scatter_add(o, a, t):
    if o["self"].numel() == 0:
        return o["self"].clone()
    return torch.scatter_add(o["self"], a["dim"], o["index"], o["src"])


@aten("index_put", "self", "*indices", "values")
def index_put(o, a, t):
    if o["self"].numel() == 0:
        return o["self"].clone()
    at = dict(zip(a["indices_at"], o["indices"]))
    return torch.ops.aten.index_put(o["self"], [at.get(d) for d in range(o["self"].dim())], o["values"], True)
