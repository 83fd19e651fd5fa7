# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of one rank, with all-reduces of values that others read, too, or nobody: alone and in buckets, through views and
concatenations, returned and returned twice. Which memory is overwritten decides whether the numbers are right."""
import random

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool

SHAPES = [(4, 3), (12,), (5,), (2, 6), (3, 4), (0,), (1,)]
FORMS = (["--keep-collectives", "--bucket-form=packed"], ["--keep-collectives", "--bucket-form=grouped"], ["--bucket-form=packed"], [])


def type_of(value):
    return "tensor<" + "".join(f"{n}x" for n in value.shape) + "xf32>".removeprefix("x" if value.shape else "")


class Program:
    """Values by name, as both ranks have them: what is reduced over the two is twice itself, or itself."""

    def __init__(self, seed):
        self.random, self.lines = random.Random(seed), []
        numbers = np.random.default_rng(seed)
        self.inputs = {f"x{i}": numbers.standard_normal(self.random.choice(SHAPES)).astype(np.float32) for i in range(3)}
        self.values = [(f"%{name}", value) for name, value in self.inputs.items()]
        for step in range(self.random.randint(6, 16)):
            self.random.choice([self.relu, self.view, self.permute, self.cat, self.reduce, self.reduce])(f"%v{step}")
        made = self.values[3:] or self.values
        self.outputs = [self.random.choice(made) for _ in range(self.random.randint(2, 5))]

    def add(self, name, value, text):
        self.values.append((name, value))
        self.lines.append(f"  {name} = {text} -> {type_of(value)}\n")

    def relu(self, name):
        operand, value = self.random.choice(self.values)
        self.add(name, np.maximum(value, 0), f"aten.relu {operand} : ({type_of(value)})")

    def view(self, name):
        operand, value = self.random.choice(self.values)
        if value.size == 12:
            shape = self.random.choice(SHAPES[:2] + SHAPES[3:5])
            self.add(name, value.reshape(shape), f"aten.view {operand} {list(shape)} : ({type_of(value)})")

    def permute(self, name):
        operand, value = self.random.choice(self.values)
        if value.ndim == 2:
            self.add(name, value.T, f"aten.permute {operand} [1, 0] : ({type_of(value)})")

    def cat(self, name):
        parts = [self.random.choice([v for v in self.values if v[1].ndim == 1] or [None]) for _ in range(2)]
        if None not in parts:
            self.add(name, np.concatenate([value for _, value in parts]),
                     f"aten.cat {', '.join(p for p, _ in parts)} dim 0 : ({', '.join(type_of(v) for _, v in parts)})")

    def reduce(self, name):
        chosen = [self.random.choice(self.values[-6:]) for _ in range(self.random.randint(1, 4))]
        kind, factor = self.random.choice([("sum", 2), ("max", 1)])
        types = ", ".join(type_of(value) for _, value in chosen)
        self.lines.append(f"  {name}:{len(chosen)} = dist.all_reduce {kind} over #dp {', '.join(o for o, _ in chosen)} : ({types}) -> ({types})\n")
        self.values += [(f"{name}#{i}", value * np.float32(factor)) for i, (_, value) in enumerate(chosen)]

    def text(self):
        def attributes(name, value, more=""):
            return f'{{{more}dist.name = "{name}", dist.global_type = {type_of(value)}, dist.layout = #r}}'
        given = ", ".join(f"%{n}: {type_of(v)} " + attributes(n, v, 'dist.kind = "input", ') for n, v in self.inputs.items())
        results = ", ".join(f"{type_of(v)} " + attributes(f"o{i}", v) for i, (_, v) in enumerate(self.outputs))
        returned = f"{', '.join(n for n, _ in self.outputs)} : {', '.join(type_of(v) for _, v in self.outputs)}"
        return ('#mesh = #dist.mesh<["dp" = 2]>\n#dp = #dist.axes<#mesh, ["dp"]>\n#r = #dist.layout<#mesh, [R]>\n'
                "module attributes {dist.mesh = #mesh} {\n"
                f"func.func @forward({given}) -> ({results}) {{\n{''.join(self.lines)}  return {returned}\n}}\n}}\n")


@pytest.mark.parametrize("first", [0, 25])
def test_random_all_reduces(tmp_path, first):
    for seed in range(first, first + 25):
        program = Program(seed)
        (tmp_path / "p.mlir").write_text(program.text())
        save_file({name: np.ascontiguousarray(value) for name, value in program.inputs.items()}, tmp_path / "inputs")
        for form in FORMS:
            run(tool("shardc"), "compile", tmp_path / "p.mlir", *form, "-o", tmp_path / "p.so")
            run(tool("shard-run"), "-n", "2", tmp_path / "p.so", "--inputs", tmp_path / "inputs", "--outputs", tmp_path / "outputs")
            got = load_file(tmp_path / "outputs")
            for i, (name, want) in enumerate(program.outputs):
                np.testing.assert_allclose(got[f"o{i}"], want, rtol=1e-5, err_msg=f"seed {seed}, {form}: {name} of\n{program.text()}")
