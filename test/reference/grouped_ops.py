# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that multiply rows with the matrices that they name, or take them to what owns these (see aten_ops.py)."""
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


def places(owner, batches, parts):
    """Of each row, where it is among the rows of all parts; what no part owns is behind them."""
    blocks = owner.reshape(batches, -1)
    size, found = blocks.shape[1], []
    for block, owners in enumerate(blocks.tolist()):
        taken = [0] * parts
        for part in owners:
            if not 0 <= part < parts:
                found.append(len(owner) * parts)
                continue
            found.append((block * parts + part) * size + taken[part])
            taken[part] += 1
    return torch.tensor(found, dtype=torch.int64)


@aten("dispatch_rows", "self", "owner")
def dispatch_rows(o, a, t):
    rows = o["self"]
    held = rows.new_zeros(len(rows) * a["parts"] + 1, *rows.shape[1:])
    held[places(o["owner"], a["batches"], a["parts"])] = rows
    return held[:-1]


@aten("collect_rows", "self", "owner")
def collect_rows(o, a, t):
    held = o["self"]
    return torch.cat([held, held.new_zeros(1, *held.shape[1:])])[places(o["owner"], a["batches"], a["parts"])]
