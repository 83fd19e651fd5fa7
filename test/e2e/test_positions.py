# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lookups in a table that is sharded where they look: every position of the whole table, and no other."""
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool
from plans import places, tensor_parallel
from test_bad_input import refused

WORLD = 4
# Five rows over four ranks: the last one has none. Parameters stay where a plan puts them, so nothing is gathered.
LOOKUP = """
func.func @forward(%x: tensor<5x3xf32> {dist.kind = "parameter", dist.name = "x"},
                   %i: tensor<INDEXxi64> {dist.kind = "input", dist.name = "i"}) -> (tensor<4x3xf32> {dist.name = "y"}) {
  %y = aten.OP : (tensor<5x3xf32>, tensor<INDEXxi64>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
"""
# Each op, the shape of its positions, and what NumPy makes of them.
OPS = {
    "embedding": ("embedding %x at %i", "4", lambda x, i: x[i]),
    "index_select": ("index_select %x dim 0 at %i", "4", lambda x, i: x[i]),
    "gather": ("gather %x dim 0 at %i", "4x3", lambda x, i: np.take_along_axis(x, i, 0)),
    "index": ("index %x[%i, :]", "4", lambda x, i: x[i]),
}


@pytest.fixture(scope="module", params=[(op, mesh) for op in OPS for mesh in ("tp=1", f"tp={WORLD}")], ids=lambda p: "-".join(p))
def lookup(request, tmp_path_factory):
    """Gives the command that looks positions up, where it writes, and the table."""
    op, mesh = request.param
    text, shape, reference = OPS[op]
    folder = tmp_path_factory.mktemp(op)
    (folder / "p.mlir").write_text(LOOKUP.replace("OP", text).replace("INDEX", shape))
    plan = ("--mesh", mesh, *places("param:x=tp:S(0)", "output:y=R"))
    run(tool("shardc"), "compile", folder / "p.mlir", *plan, "-o", folder / "p.so")
    totals = json.loads(run(tool("shardc"), "explain", folder / "p.mlir", *plan, "--format", "json").stdout)["totals"]
    assert mesh == "tp=1" or {kind: entry["count"] for kind, entry in totals.items() if entry["count"]} == {"all_reduce": 1}
    x = np.random.default_rng(3).standard_normal((5, 3)).astype(np.float32)
    save_file({"x": x}, folder / "weights")

    def command(positions):
        positions = np.array(positions, np.int64)
        if shape == "4x3":
            positions = np.stack([positions, positions[::-1], np.roll(positions, 1)], 1)
        save_file({"i": positions}, folder / "in")
        return (tool("shard-run"), folder / "p.so", "--weights", folder / "weights", "--inputs", folder / "in",
                "--outputs", folder / "out"), positions

    command.op, command.folder, command.reference = op, folder, lambda positions: reference(x, positions)
    return command


def test_positions_in_the_table(lookup):
    for positions in ([0, 1, 2, 3], [4, 4, 0, 3], *([[-1, -5, 4, -2]] if lookup.op == "index" else [])):
        command, whole = lookup(positions)
        run(*command)
        np.testing.assert_array_equal(load_file(lookup.folder / "out")["y"], lookup.reference(whole))


def test_positions_outside_the_table(lookup):
    for bad in (5, 6, 999, -6, -7, 2**63 - 1, -2**63, *([] if lookup.op == "index" else [-1])):
        command, _ = lookup([0, 3, bad, 1])
        refused(*command, says=f"index out of range in aten.{lookup.op} (dim 0 of the table, of size 5)")


@pytest.mark.parametrize("mesh, plan", [
    ("tp=1", []), ("tp=4", [*tensor_parallel("llama"), *places("module:*embed_tokens=embedding_rowwise")])], ids=["one", "tp4"])
def test_tokens_outside_the_vocabulary(compile_model, tmp_path, mesh, plan):
    program = compile_model("llama", mesh, *plan)
    program.run(tmp_path)
    inputs = load_file(program.source.inputs)
    name = next(n for n, value in inputs.items() if value.dtype == np.int64)
    for bad in (256, 999, -1):
        inputs[name][-1, -1] = bad
        save_file(inputs, tmp_path / "bad")
        refused(tool("shard-run"), program.path, "--weights", program.source.path, "--inputs", tmp_path / "bad", "--outputs",
                tmp_path / "out", says="index out of range in aten.embedding (dim 0 of the table, of size 256)")
