# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The random programs of random_programs.py with sizes that the program learns when it runs: some dims of the inputs are exported
as symbols, in the ranges that PyTorch finds, and the same artifact runs with the sizes of the export and with others."""
import dataclasses
import random
import warnings

import torch

from broad_source import BROAD
from program_source import MANNERS, tensor
from random_programs import Program, execute, is_steady, make

MOST = 40  # the largest size that an artifact is made for


@dataclasses.dataclass
class Dynamic(Program):
    """`symbols`: by input and dim, a name and the smallest and largest size. `other`: inputs of other sizes."""
    symbols: dict = ()
    other: dict = ()
    other_wants: list = ()

    def dynamic(self, prefix):
        return [f"{prefix}{name}:{dim}={prefix}{symbol}:{low}:{high}" for name, dims in self.symbols.items()
                for dim, (symbol, low, high) in dims.items()]

    @staticmethod
    def rounds(programs):
        return [programs, [dataclasses.replace(p, inputs=p.other, wants=p.other_wants) for p in programs]]

    def computed(self):
        if not set(self.inputs) <= set(self.other):
            return None
        kept = dataclasses.replace(self, other={n: self.other[n] for n in self.inputs}, symbols={n: d for n, d in self.symbols.items() if n in self.inputs})
        return dataclasses.replace(kept, wants=execute(kept.source, kept.inputs, kept.weights), other_wants=execute(kept.source, kept.other, kept.weights))


class Alone(torch.nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, inputs):
        return execute(self.program.source, inputs, self.program.weights)


def symbols_of(program, dims):
    """Names and ranges of the dims that PyTorch can leave open."""
    shapes = {name: {d: torch.export.Dim.AUTO for d in dims.get(name, ())} for name in program.inputs}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        exported = torch.export.export(Alone(program), (dict(program.inputs),), dynamic_shapes=(shapes,), strict=False)
    values = [node.meta["val"] for node in exported.graph.nodes if node.op == "placeholder"][-len(program.inputs):]
    found = {}
    for name, value in zip(sorted(program.inputs), values, strict=True):
        for d in dims.get(name, ()):
            size = value.shape[d]
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                limits = exported.range_constraints[size.node.expr]
                high = int(limits.upper) if limits.upper < MOST else MOST
                found.setdefault(name, {})[d] = (str(size.node.expr), max(int(limits.lower), 2), high)
    return found


def make_dynamic(seed, mesh):
    """The program of a seed, or nothing where it takes no other sizes."""
    program = make(seed, mesh, manners=MANNERS * 3 + BROAD, most=6)
    if not program:
        return None
    chosen = random.Random(f"{seed} sizes")
    used = {name for line in program.source.lines for name in line.inputs}
    for _ in range(3):
        dims = {name: [d for d, n in enumerate(t.shape) if n > 2 and chosen.random() < 0.6] for name, t in program.inputs.items() if name in used}
        more = chosen.choice([-1, 1, 3, 6])
        try:
            symbols = symbols_of(program, dims)
            other = {}
            for name, value in program.inputs.items():
                shape = [n + more if d in symbols.get(name, ()) else n for d, n in enumerate(value.shape)]
                if any(not low <= shape[d] <= high for d, (_, low, high) in symbols.get(name, {}).items()):
                    raise ValueError("out of the range")
                other[name] = tensor(shape, value.dtype, torch.Generator().manual_seed(seed + 1))
            wants = execute(program.source, other, program.weights)
        except Exception:  # noqa: BLE001 (PyTorch's own, of any kind)
            continue
        if symbols and all(bool(w.isfinite().all()) for w in wants) and is_steady(program.source, other, program.weights, wants):
            return Dynamic(**vars(program), symbols=symbols, other=other, other_wants=wants)
    return None
