# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many single ops as one program: each op is a kernel of its own, compiled and run together, and compared with
PyTorch's answer for the same tensors."""
import dataclasses
import sys
from typing import Callable

import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "test/dialects/aten/Inputs"))
from pytorch_cases import NAMES  # noqa: E402

# Distance of floats that do not come from sums, in units of the last place, and of sums, of what they add up to.
ROUNDING = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}
SUMS = 16  # multiple of it that sums may be off


@dataclasses.dataclass
class Case:
    """`text` is the op with {0}, {1} ... for its operands; `call` the same in PyTorch. `constant`: operands that
    the op gets as aten.constant. `loose`: multiple of the rounding error that is allowed."""
    operands: list
    text: str
    call: Callable
    constant: tuple = ()
    loose: float = 1
    strided: str = ""

    @property
    def name(self):
        return f"{self.text} of " + ", ".join(f"{list(x.shape)} {NAMES[x.dtype]}" for x in self.operands)


def mlir_type(tensor):
    return f"tensor<{''.join(f'{n}x' for n in tensor.shape)}{NAMES[tensor.dtype]}>"


def dense(tensor):
    """An elements attribute of a tensor with one element."""
    value = tensor.item()
    if tensor.dtype.is_floating_point:
        bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[tensor.element_size()]
        number = tensor.reshape(1).view(bits).item() % (1 << 8 * tensor.element_size())
        return f"dense<0x{number:0{2 * tensor.element_size()}X}>"
    return f"dense<{str(value).lower()}>"


def as_view(name, tensor, how, number):
    """Text that makes `tensor` as a view of a new argument, and what to pass for the argument."""
    at = mlir_type(tensor)
    if how == "permuted" and tensor.dim() > 1:
        order = [*range(1, tensor.dim()), 0]
        base = tensor.permute([order.index(d) for d in range(tensor.dim())]).contiguous()
        return f"{name} = aten.permute %x{number} {order} : ({mlir_type(base)}) -> {at}", base
    if how == "sliced" and tensor.dim():
        wide = torch.stack([tensor, torch.zeros_like(tensor)], -1).flatten(-2)
        dim, end = tensor.dim() - 1, 2 * tensor.shape[-1]
        return f"{name} = aten.slice %x{number} dim {dim} [0 : {end} : 2] : ({mlir_type(wide)}) -> {at}", wide
    if how == "expanded" and tensor.dim() and tensor.shape[0] and bool((tensor[:1] == tensor).all()):
        base = tensor[:1].contiguous()
        return f"{name} = aten.expand %x{number} {list(tensor.shape)} : ({mlir_type(base)}) -> {at}", base
    return None


class Program:
    """Text of a function that runs all cases, with its arguments."""

    def __init__(self):
        self.arguments, self.lines, self.results, self.labels = [], [], [], []

    def operand(self, tensor, name, constant, strided):
        if constant:
            self.lines.append(f"{name} = aten.constant {dense(tensor)} : {mlir_type(tensor)}")
            return name
        number = len(self.arguments)
        view = as_view(name, tensor, strided, number)
        self.arguments.append(view[1] if view else tensor.contiguous())
        if not view:
            return f"%x{number}"
        self.lines.append(view[0])
        return name

    def add(self, case, want):
        label = len(self.labels)
        names = [self.operand(t, f"%a{label}_{i}", i in case.constant, case.strided)
                 for i, t in enumerate(case.operands)]
        many = isinstance(want, (list, tuple))
        types = [mlir_type(t) for t in (want if many else [want])]
        out = f"({', '.join(types)})" if many else types[0]
        form = "" if not names else f"({', '.join(mlir_type(t) for t in case.operands)}) -> "
        count = f":{len(types)}" if len(types) > 1 else ""
        self.lines.append(f'%r{label}{count} = {case.text.format(*names)} : {form}{out} loc("case {label}")')
        self.results += [(f"%r{label}" + (f"#{i}" if count else ""), t, label) for i, t in enumerate(types)]
        self.labels.append(case)

    def text(self):
        arguments = ", ".join(f"%x{i}: {mlir_type(t)}" for i, t in enumerate(self.arguments))
        body = "\n  ".join(self.lines)
        values, types = (", ".join(r[i] for r in self.results) for i in (0, 1))
        return f"func.func @forward({arguments}) -> ({types}) {{\n  {body}\n  return {values} : {types}\n}}\n"


def largest(tensors):
    """Largest finite magnitude in tensors of floats."""
    finite = [t[t.isfinite()].abs().double() for t in tensors if t.dtype.is_floating_point]
    return max([float(t.max()) for t in finite if t.numel()], default=0.0)


def difference(got, want, operands, loose):
    """What is wrong with `got`, or nothing."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {mlir_type(got)}, not {mlir_type(want)}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(got, want) else f"{int((got != want).sum())} elements differ"
    limit, rounding = torch.finfo(want.dtype).tiny, ROUNDING[want.dtype] * loose
    # Sums cancel: their error is one of what they add up.
    scale = largest([want, *operands]) if loose >= SUMS else largest([want]) if loose > 1 else 0
    got, want = got.double(), want.double()
    same = (got == want) | (got.isnan() & want.isnan())
    near = (got - want).abs() <= rounding * want.abs().clamp(min=scale) + limit
    wrong = ~(same | near)
    if not wrong.any():
        return ""
    at = wrong.flatten().nonzero()[0].item()
    return f"{int(wrong.sum())} of {wrong.numel()} differ, e.g. {got.flatten()[at]:.9g} for {want.flatten()[at]:.9g}"


EMULATED = {"compile": ("--target", "cuda:emulated"), "run": ("--device", "emulated")}  # `tools` of the emulated device


def compile_and_run(text, arguments, folder, *options, tools={}):
    """`tools`: further options of each of the two tools."""
    (folder / "kernels.mlir").write_text(text)
    save_file({f"input_{i}": t.clone() for i, t in enumerate(arguments)}, folder / "inputs.safetensors")
    run(tool("shardc"), "compile", folder / "kernels.mlir", "--mesh", "r=1", "-o", folder / "kernels.so",
        *tools.get("compile", ()))
    return run(tool("shard-run"), folder / "kernels.so", "--inputs", folder / "inputs.safetensors", "--outputs",
               folder / "outputs.safetensors", *options, *tools.get("run", ()), check=False)


def answered(cases):
    """The cases that PyTorch does not refuse, with its answer and the list of the tensors in it."""
    for case in cases:
        try:
            want = case.call(*case.operands)
        except (RuntimeError, IndexError, NotImplementedError, ZeroDivisionError, ValueError):
            continue
        yield case, want, list(want) if isinstance(want, (list, tuple)) else [want]


def check(cases, folder, tools={}):
    """Runs the cases that PyTorch can answer, and fails with a list of all wrong answers. Returns their number."""
    program, wants = Program(), []
    for case, want, tensors in answered(cases):
        program.add(case, want)
        wants += tensors
    assert wants, "PyTorch refuses all cases"
    done = compile_and_run(program.text(), program.arguments, folder, tools=tools)
    assert done.returncode == 0, done.stderr[-4000:]
    got, problems = load_file(folder / "outputs.safetensors"), []
    for i, ((_, _, label), want) in enumerate(zip(program.results, wants, strict=True)):
        case = program.labels[label]
        if wrong := difference(got[f"output_{i}"], want.contiguous(), case.operands, case.loose):
            problems.append(f"{case.name} {case.strided}: {wrong}")
    assert not problems, f"{len(problems)} of {len(wants)} are wrong:\n" + "\n".join(problems[:60])
    return len(program.labels)
