# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions that are out of range where nothing, or not everything, is computed from them: a run fails where PyTorch raises an error,
and nowhere else, on CPUs and on the emulated device, with sizes that are known when compiling and when running."""
import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from kernels import EMULATED, mlir_type

A = torch.ops.aten


def at(*values, shape=None):
    return torch.tensor(values, dtype=torch.int64).reshape(shape or [len(values)])


# The op, its operands, the same in PyTorch, and whether that is an error.
CASES = {
    "embedding": ("embedding %a at %b", [torch.randn(7, 0), at(0, 9, 1)], A.embedding, True),
    "embedding_good": ("embedding %a at %b", [torch.randn(7, 0), at(0, 6, 1)], A.embedding, False),
    "embedding_of_none": ("embedding %a at %b", [torch.randn(7, 5), at()], A.embedding, False),
    "embedding_no_rows": ("embedding %a at %b", [torch.randn(0, 5), at(0)], A.embedding, True),
    "select": ("index_select %a dim 0 at %b", [torch.randn(7, 0), at(0, 9, 1)], lambda x, i: x.index_select(0, i), True),
    "select_negative": ("index_select %a dim 1 at %b", [torch.randn(0, 5), at(0, -1, 1)], lambda x, i: x.index_select(1, i), True),
    "select_good": ("index_select %a dim 1 at %b", [torch.randn(0, 5), at(0, 4, 1)], lambda x, i: x.index_select(1, i), False),
    "index": ("index %a[%b, :]", [torch.randn(7, 0), at(0, 9, 1)], lambda x, i: x[i], False),
    "index_rows": ("index %a[:, %b]", [torch.randn(0, 5), at(0, 9, 1)], lambda x, i: x[:, i], False),
    "index_no_rows": ("index %a[%b, :]", [torch.randn(0, 0), at(0)], lambda x, i: x[i], True),
    "index_some": ("index %a[%b, :]", [torch.randn(7, 2), at(0, 9, 1)], lambda x, i: x[i], True),
    "index_two": ("index %a[%b, %c]", [torch.randn(7, 5), at(shape=[0, 1]), at(9, 9, 9)], lambda x, i, j: x[i, j], False),
    "gather": ("gather %a dim 0 at %b", [torch.randn(7, 0), at(shape=[3, 0])], lambda x, i: x.gather(0, i), False),
    "gather_no_rows": ("gather %a dim 0 at %b", [torch.randn(0, 5), at(*[0] * 10, shape=[2, 5])], lambda x, i: x.gather(0, i), True),
    "scatter": ("scatter_add %a dim 0 at %b of %c", [torch.randn(7, 0), at(shape=[2, 0]), torch.randn(2, 0)],
                lambda x, i, v: x.scatter_add(0, i, v), False),
    "scatter_no_rows": ("scatter_add %a dim 0 at %b of %c", [torch.randn(0, 5), at(*[0] * 10, shape=[2, 5]), torch.randn(2, 5)],
                        lambda x, i, v: x.scatter_add(0, i, v), True),
}

# A table that is known to have no rows when compiling gets no additions: a rank's part of a larger one looks the same.
DYNAMIC_ALONE = ["scatter_no_rows"]


def shape_of_result(text, operands):
    table, index = operands[0], operands[1]
    if text.startswith("index_select"):
        dim = int(text.split("dim ")[1].split()[0])
        return [*table.shape[:dim], len(index), *table.shape[dim + 1:]]
    if "[:, " in text:
        return [table.shape[0], *index.shape]
    if "%c]" in text:
        return list(torch.broadcast_shapes(index.shape, operands[2].shape))
    if text.startswith("gather"):
        return list(index.shape)
    return list(table.shape) if text.startswith("scatter") else [*index.shape, *table.shape[1:]]


def program(text, operands, shape, dynamic):
    """A function of the operands; all sizes but 1 are known when it runs only if `dynamic`."""
    symbols = {}

    def typed(tensor_shape, kind):
        if not dynamic:
            return f"tensor<{''.join(f'{n}x' for n in tensor_shape)}{kind}>", ""
        sizes = [n if n == 1 else "?" for n in tensor_shape]
        names = ["#dist.size<1>" if n == 1 else f"#dist.size<{symbols.setdefault(n, f's{n}')}>" for n in tensor_shape]
        return f"tensor<{''.join(f'{n}x' for n in sizes)}{kind}>", ", ".join(names)

    takes, types = [], []
    for name, tensor in zip("abc", operands):
        kind = mlir_type(tensor).split("x")[-1].strip("<>").removeprefix("tensor<")
        form, names = typed(tensor.shape, kind)
        types.append(form)
        sizes = f", dist.sizes = [{names}]" if names else ""
        takes.append(f'%{name}: {form} {{dist.name = "{name}"{sizes}}}')
    form, names = typed(shape, "f32")
    sizes = f" {{dist.sizes = [{names}]}}" if names else ""
    listed = ", ".join(f"#dist.symbol<{name} in [0, ?]>" for name in symbols.values())
    attributes = f" attributes {{dist.symbols = [{listed}]}}" if symbols else ""
    return (f"func.func @forward({', '.join(takes)}) -> ({form}{sizes}){attributes} {{\n"
            f"  %r = aten.{text} : ({', '.join(types)}) -> {form}\n  return %r : {form}\n}}\n")


@pytest.mark.parametrize("tools", [{}, EMULATED], ids=["cpu", "emulated"])
@pytest.mark.parametrize("name, dynamic", [(name, dynamic) for name in CASES for dynamic in (False, True)
                                           if dynamic or name not in DYNAMIC_ALONE])
def test_as_pytorch(name, dynamic, tools, tmp_path):
    text, operands, call, is_error = CASES[name]
    if is_error:
        with pytest.raises((RuntimeError, IndexError)):
            call(*operands)
    shape = shape_of_result(text, operands)
    (tmp_path / "p.mlir").write_text(program(text, operands, shape, dynamic))
    save_file({name: t.contiguous() for name, t in zip("abc", operands)}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", tmp_path / "p.mlir", "--mesh", "r=1", "-o", tmp_path / "p.so", *tools.get("compile", ()))
    done = run(tool("shard-run"), tmp_path / "p.so", "--inputs", tmp_path / "in.safetensors", "--outputs",
               tmp_path / "out.safetensors", *tools.get("run", ()), check=False)
    if is_error:
        op = text.split()[0]
        assert done.returncode == 1 and f"index out of range in aten.{op}" in done.stderr, done.stderr
        return
    assert done.returncode == 0, done.stderr
    want = call(*operands)
    assert torch.equal(load_file(tmp_path / "out.safetensors")["output_0"], want)


@pytest.mark.parametrize("tools", [{}, EMULATED], ids=["cpu", "emulated"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("columns, wrong", [(0, True), (0, False), (3, True), (3, False)])
def test_rows_that_two_ops_read(columns, wrong, dynamic, tools, tmp_path):
    """The rows that are looked up have an element; what is computed from them has none where there are no columns."""
    table, scale = torch.randn(9, 1), torch.randn(1, columns)
    positions = torch.arange(300) % 9
    if wrong:
        positions[299] = 9
        with pytest.raises(IndexError):
            A.embedding(table, positions)
    size, symbols = ("?", " attributes {dist.symbols = [#dist.symbol<n in [0, ?]>]}") if dynamic else (columns, "")
    takes, gives = [f", dist.sizes = [#dist.size<{first}>, #dist.size<n>]" if dynamic else "" for first in (1, 300)]
    result = f"tensor<300x{size}xf32>"
    (tmp_path / "p.mlir").write_text(
        f'func.func @forward(%w: tensor<9x1xf32> {{dist.name = "w"}}, %i: tensor<300xi64> {{dist.name = "i"}}, '
        f'%s: tensor<1x{size}xf32> {{dist.name = "s"{takes}}}) -> '
        f'({result} {{dist.name = "m"{gives}}}, {result} {{dist.name = "n"{gives}}}){symbols} {{\n'
        f"  %r = aten.embedding %w at %i : (tensor<9x1xf32>, tensor<300xi64>) -> tensor<300x1xf32>\n"
        f"  %m = aten.mul %r, %s : (tensor<300x1xf32>, tensor<1x{size}xf32>) -> {result}\n"
        f"  %n = aten.add %r, %s : (tensor<300x1xf32>, tensor<1x{size}xf32>) -> {result}\n"
        f"  return %m, %n : {result}, {result}\n}}\n")
    save_file({"w": table, "i": positions, "s": scale}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", tmp_path / "p.mlir", "--mesh", "r=1", "-o", tmp_path / "p.so", *tools.get("compile", ()))
    done = run(tool("shard-run"), tmp_path / "p.so", "--inputs", tmp_path / "in.safetensors", "--outputs",
               tmp_path / "out.safetensors", *tools.get("run", ()), check=False)
    if wrong:
        assert done.returncode == 1 and "index out of range in aten.embedding" in done.stderr, done.stderr
        return
    assert done.returncode == 0, done.stderr
    got = load_file(tmp_path / "out.safetensors")
    rows = A.embedding(table, positions)
    assert torch.equal(got["m"], rows * scale) and torch.equal(got["n"], rows + scale)
