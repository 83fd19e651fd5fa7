# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one op as MLIR text, and running shard-opt on them."""

import subprocess
import tempfile

from pytorch_cases import NAMES


def mlir_type(shape, dtype):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{NAMES[dtype]}>"


def function(name, operands, text, results):
    """`operands` and `results` are types."""
    args = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    op = text.format(*(f"%a{i}" for i in range(len(operands))))
    many = len(results) > 1 or text.startswith("aten.split")
    out = f"({', '.join(results)})" if many else results[0]
    form = out if text.startswith("aten.arange") else f"({', '.join(operands)}) -> {out}"
    number = f":{len(results)}" if len(results) > 1 else ""
    values = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    return (f"func.func @{name}({args}) -> ({', '.join(results)}) {{\n"
            f"  %r{number} = {op} : {form}\n  return {values} : {', '.join(results)}\n}}\n")


def shard_opt(text, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        return subprocess.run(["shard-opt", file.name, *flags], capture_output=True, text=True)
