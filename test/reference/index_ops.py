# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `arith` and `tensor` ops that local programs use for extents, offsets and choices by rank."""
import torch

OPS = {}

_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
_COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}


def _binary(name, function):
    OPS["arith." + name] = lambda v, a, t: function(v[0], v[1])


for _name, _function in {
        "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b,
        "floordivsi": lambda a, b: a // b, "ceildivsi": lambda a, b: -(-a // b),
        "divsi": lambda a, b: int(a / b), "divui": lambda a, b: a // b, "remsi": lambda a, b: a % b,
        "remui": lambda a, b: a % b, "minsi": min, "maxsi": max, "minui": min, "maxui": max}.items():
    _binary(_name, _function)


def constant(v, a, t):
    value = a["value"]
    if t[0].is_tensor:
        data = [float(x) if isinstance(x, str) else x for x in value["dense"]]
        values = torch.tensor(data, dtype=t[0].dtype)
        return values.reshape(t[0].shape) if len(data) > 1 else values.expand(t[0].shape).clone()
    return float(value) if isinstance(value, str) else value


OPS["arith.constant"] = constant
OPS["arith.index_cast"] = lambda v, a, t: v[0]


def compare(v, a, t):
    predicate = _PREDICATES[a["predicate"]]
    return _COMPARE[predicate if predicate in _COMPARE else predicate[1:]](v[0], v[1])


OPS["arith.cmpi"] = compare
OPS["arith.select"] = lambda v, a, t: v[1] if v[0] else v[2]
OPS["tensor.dim"] = lambda v, a, t: v[0].shape[v[1]]
OPS["tensor.from_elements"] = lambda v, a, t: torch.tensor(v, dtype=t[0].dtype).reshape(t[0].shape)
