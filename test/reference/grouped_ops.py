# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that multiply rows with the matrices that they name (see aten_ops.py): row by row."""
import torch

from aten_ops import aten, mixed


@aten("indexed_mm", "self", "mat2", "index")
def indexed_mm(o, a, t):
    result = o["self"].new_zeros(o["self"].shape[0], o["mat2"].shape[2])
    for row, group in enumerate(o["index"].tolist()):
        if 0 <= group < o["mat2"].shape[0]:
            result[row] = o["self"][row] @ o["mat2"][group]
    return result


@aten("indexed_outer", "self", "other", "index", "*groups")
def indexed_outer(o, a, t):
    groups, = mixed(a["static_groups"], o["groups"])
    result = o["self"].new_zeros(groups, o["self"].shape[1], o["other"].shape[1])
    for row, group in enumerate(o["index"].tolist()):
        if 0 <= group < groups:
            result[group] += torch.outer(o["self"][row], o["other"][row])
    return result
