# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs of two stages with PyTorch's own ops, to say what they mean.

`run_global` runs an imported or placed function on global tensors; a redistribute is the identity.
`run_local` runs a function of the local stage for all ranks of a mesh in lock step: a value is one
tensor per position of the mesh, and a collective sees those of its whole group. Every value is held
against its type: a wrong static extent is an error here, not a wrong number later."""
import torch

import aten_ops
import attention_ops  # noqa: F401, adds to aten_ops.OPS
import dist_ops
import fourier_ops  # noqa: F401, adds to aten_ops.OPS
import grouped_ops  # noqa: F401, likewise
import neighborhood_ops  # noqa: F401, likewise
import image_ops  # noqa: F401, adds to aten_ops.OPS
import index_ops
import random_ops  # noqa: F401, likewise
import scatter_ops  # noqa: F401, likewise
from layout import Mesh, parse_layout


class InterpretationError(Exception):
    pass


def _fail(op, why):
    raise InterpretationError(f"{op.name} at {op.loc}: {why}")


def _one(op, values):
    """One execution of an op that has nothing to do with other ranks."""
    if op.name in aten_ops.OPS:
        result = aten_ops.OPS[op.name](aten_ops.bind(op, values), op.attrs, op.types)
    elif op.name in index_ops.OPS:
        result = index_ops.OPS[op.name](values, op.attrs, op.types)
    else:
        _fail(op, "the interpreter does not know this op")
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _check(op, results):
    if len(results) != len(op.types):
        _fail(op, f"{len(results)} results where {len(op.types)} are due")
    for type_, value in zip(op.types, results):
        if why := type_.mismatch(value):
            _fail(op, why)


def run_global(function, inputs):
    """Values of the results for global inputs."""
    values = dict(zip(function.args, inputs))
    symbols = dist_ops.bind_symbols(function, inputs)
    for op in function.ops:
        operands = [values[i] for i in op.operands]
        if op.name == "func.return":
            return operands
        if op.name in ("dist.redistribute", "dist.constrain"):
            results = operands
        elif op.name == "dist.extent":
            results = [dist_ops.extent(op.attrs, None, symbols)]
        else:
            try:
                results = _one(op, operands)
            except (RuntimeError, IndexError, ValueError) as error:
                _fail(op, str(error))
        _check(op, results)
        values.update(zip(op.results, results))
    raise InterpretationError(f"{function.name} does not return")


class Absent:
    """What a rank does not have: a tensor on a mesh that it is outside of (L5), and what is made of it."""

    def __init__(self, why):
        self.why = why


def world_of(function):
    """The mesh of all layouts of a function, or a line of the ranks of all of their meshes."""
    meshes = []
    for attrs in [*function.arg_attrs, *function.result_attrs]:
        if "dist.layout" in attrs:
            mesh = parse_layout(attrs["dist.layout"]["attr"]).mesh
            if mesh not in meshes:
                meshes.append(mesh)
    if len(meshes) == 1:
        return meshes[0]
    return Mesh.of_ranks({rank for mesh in meshes for rank in mesh.devices})


def _each(op, operands, positions, several):
    """One execution for each rank. With several meshes, a rank does not have what its ops cannot make."""
    results = []
    for p in positions:
        held = [v[p] for v in operands]
        absent = next((v for v in held if isinstance(v, Absent)), None)
        try:
            made = [absent] * len(op.types) if absent else _one(op, held)
        except (RuntimeError, IndexError, ValueError, KeyError) as error:
            if not several:
                raise
            made = [Absent(f"{op.name} at {op.loc}: {error!r}")] * len(op.types)
        results.append(made)
    return [list(v) for v in zip(*results)]


def run_local(function, mesh, inputs, symbols=None, several=False):
    """`inputs[i][p]` is argument i at position p; the results come in the same form. With `several` meshes, `mesh` is
    that of all ranks (world_of); None is what a rank outside of a tensor's mesh has, and such results are `Absent`."""
    values = {}
    positions = range(mesh.size)
    for arg, type_, held in zip(function.args, function.arg_types, inputs):
        values[arg] = [Absent(f"argument {arg}") if v is None and several else v for v in held]
        for p in positions:
            if not isinstance(values[arg][p], Absent) and (why := type_.mismatch(held[p])):
                raise InterpretationError(f"argument {arg} of {function.name} at position {p}: {why}")
    for op in function.ops:
        operands = [values[i] for i in op.operands]
        if op.name == "func.return":
            return operands
        try:
            if op.name in dist_ops.OPS:
                results = dist_ops.OPS[op.name](op, operands, mesh, symbols or {})
            else:
                results = _each(op, operands, positions, several)
        except (RuntimeError, IndexError, ValueError, KeyError, AttributeError) as error:
            _fail(op, repr(error))
        for result, type_ in zip(results, op.types):
            for p in positions:
                if several and result[p] is None:
                    result[p] = Absent(f"{op.name} at {op.loc}")
                elif several and not isinstance(result[p], Absent) and (why := type_.mismatch(result[p])):
                    result[p] = Absent(f"{op.name} at {op.loc}: {why}")
        if not several:
            for p in positions:
                _check(op, [v[p] for v in results])
        values.update(zip(op.results, results))
    raise InterpretationError(f"{function.name} does not return")


def same_tensor(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
