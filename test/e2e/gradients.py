# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of single ops: many ops as one program, which is differentiated with a random cotangent for each result,
compiled and run. Its gradients are compared with PyTorch's, and with finite differences of the program's own outputs."""
import dataclasses
from typing import Callable

import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from kernels import dense, mlir_type
from plans import places

F64 = torch.float64
STEP = 1e-6


@dataclasses.dataclass
class Case:
    """`text` is the op with {0}, {1} ... for its operands, `call` the same in PyTorch. Operands of floats are
    differentiated, but for those in `constant` (which the op gets as aten.constant) and `fixed`."""
    operands: list
    text: str
    call: Callable
    constant: tuple = ()
    fixed: tuple = ()
    smooth: bool = True  # finite differences exist at the operands
    tolerance: float = 1e-11

    @property
    def wrt(self):
        return [i for i, x in enumerate(self.operands)
                if x.dtype.is_floating_point and i not in self.constant and i not in self.fixed]


class Program:
    def __init__(self, cases):
        self.cases, self.inputs, lines, self.results, self.where = cases, {}, [], [], {}
        for n, case in enumerate(cases):
            names = []
            for i, x in enumerate(case.operands):
                if i in case.constant:
                    lines.append(f"%c{n}_{i} = aten.constant {dense(x)} : {mlir_type(x)}")
                    names.append(f"%c{n}_{i}")
                    continue
                # What is not differentiated has another name than what is.
                name = f"{'x' if i in case.wrt else 'k'}{n}_{i}"
                self.inputs[name] = x.contiguous()
                names.append("%" + name)
            want = case.call(*case.operands)
            want = list(want) if isinstance(want, (list, tuple)) else [want]
            types = [mlir_type(t) for t in want]
            count = f":{len(want)}" if len(want) > 1 else ""
            form = f"({', '.join(types)})" if count else types[0]
            lines.append(f'%r{n}{count} = {case.text.format(*names)} : '
                         f'({", ".join(mlir_type(x) for x in case.operands)}) -> {form} loc("case {n}")')
            self.where[n] = range(len(self.results), len(self.results) + len(want))
            self.results += [(f"%r{n}" + (f"#{i}" if count else ""), t.detach()) for i, t in enumerate(want)]
        arguments = ", ".join(f'%{name}: {mlir_type(x)} {{dist.kind = "input", dist.name = "{name}"}}'
                              for name, x in self.inputs.items())
        results = ", ".join(f'{mlir_type(t)} {{dist.kind = "output", dist.name = "y{i}"}}'
                            for i, (_, t) in enumerate(self.results))
        body, values, types = ("\n  ".join(lines), ", ".join(r[0] for r in self.results),
                               ", ".join(mlir_type(r[1]) for r in self.results))
        self.text = (f"func.func @forward({arguments}) -> ({results}) {{\n  {body}\n  "
                     f"return {values} : {types}\n}}\n")

    def sharded(self, mesh):
        """A plan in which every axis shards some dim of every input."""
        axes = [axis.split("=")[0] for axis in mesh.split(",")]
        return places(*(f"input:{name}=" + ",".join(f"{axis}:S({(n + k) % x.dim()})" for k, axis in enumerate(axes))
                        for n, (name, x) in enumerate(self.inputs.items()) if x.dim()))

    def differentiate(self, folder, mesh="r=1"):
        (folder / "forward.mlir").write_text(self.text)
        asked = [str(i) for i, (_, t) in enumerate(self.results) if t.dtype.is_floating_point]
        run(tool("shard-opt"), folder / "forward.mlir",
            f"--aten-differentiate=into=forward cotangents={','.join(asked)} wrt=x*", "-o", folder / "backward.mlir")
        plan = self.sharded(mesh) if mesh != "r=1" else []
        run(tool("shardc"), "compile", folder / "backward.mlir", "--mesh", mesh, *plan, "-o", folder / "backward.so")
        self.cotangents = {f"cotangent_y{i}": torch.randn(self.results[int(i)][1].shape).to(self.results[int(i)][1].dtype) for i in asked}

    def run(self, folder, inputs):
        save_file({k: v.clone() for k, v in (inputs | self.cotangents).items()}, folder / "in.safetensors")
        run(tool("shard-run"), folder / "backward.so", "--inputs", folder / "in.safetensors",
            "--outputs", folder / "out.safetensors")
        return load_file(folder / "out.safetensors")

    def loss(self, outputs, n):
        """Of one case: its results times their cotangents, summed."""
        return sum(float((outputs[f"y{i}"] * self.cotangents[f"cotangent_y{i}"]).sum()) for i in self.where[n]
                   if f"cotangent_y{i}" in self.cotangents)


def differs(got, want, limit):
    scale = max(float(want.abs().max()) if want.numel() else 0.0, 1.0)
    error = float((got - want).abs().max()) if want.numel() else 0.0
    return "" if error <= limit * scale else f"differs by {error:.3g} of {scale:.3g}"


def check(cases, folder, mesh="r=1"):
    """A list of all gradients that are wrong. Finite differences are taken on one rank only."""
    program = Program(cases)
    program.differentiate(folder, mesh)
    outputs = program.run(folder, program.inputs)
    problems = []
    for n, case in enumerate(cases):
        operands = [x.clone().requires_grad_() if i in case.wrt else x for i, x in enumerate(case.operands)]
        results = case.call(*operands)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        pairs = [(r, program.cotangents[f"cotangent_y{i}"]) for i, r in zip(program.where[n], results)
                 if f"cotangent_y{i}" in program.cotangents and r.requires_grad]
        wants = [None] * len(case.wrt)
        if pairs:
            loss = sum((r * c).sum() for r, c in pairs)
            wants = torch.autograd.grad(loss, [operands[i] for i in case.wrt], allow_unused=True)
        for i, want in zip(case.wrt, wants, strict=True):
            got = outputs.get(f"x{n}_{i}")
            if got is None or want is None:
                # No gradient is not zero.
                if got is not want:
                    problems.append(f"{case.text}: gradient {i} is {'there' if want is None else 'missing'}")
            elif got.shape != want.shape or got.dtype != want.dtype:
                problems.append(f"{case.text}: gradient {i} is {mlir_type(got)}, not {mlir_type(want)}")
            elif wrong := differs(got, want, case.tolerance):
                problems.append(f"{case.text} of {[list(x.shape) for x in case.operands]}: gradient {i} {wrong}")
    return problems + (finite_differences(program, outputs, folder) if mesh == "r=1" else [])


def finite_differences(program, outputs, folder):
    """Along a random direction for each case, all cases at once."""
    direction = {k: torch.randn_like(x) for k, x in program.inputs.items() if k.startswith("x")}
    ends = [program.run(folder, program.inputs | {k: program.inputs[k] + s * STEP * v for k, v in direction.items()})
            for s in (1, -1)]
    problems = []
    for n, case in enumerate(program.cases):
        if not case.smooth:
            continue
        want = (program.loss(ends[0], n) - program.loss(ends[1], n)) / (2 * STEP)
        got = sum(float((outputs[f"x{n}_{i}"] * direction[f"x{n}_{i}"]).sum()) for i in case.wrt
                  if f"x{n}_{i}" in outputs)
        if abs(got - want) > 1e-6 * max(abs(want), abs(program.loss(outputs, n)), 1):
            problems.append(f"{case.text}: along a line the gradient is {got:.9g}, finite differences say {want:.9g}")
    return problems
