# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scheduled programs on real ranks: what a collective in flight reads and writes stays its own."""
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool

WORLD = 4
# The second collective waits behind the first on a slow link; meanwhile its operand's last reader is done, and as many
# results of the same size are computed as fit between. The operand's memory would suit each of them.
SCHEDULED = """
#mesh = #dist.mesh<["dp" = 4]>
#S0 = #dist.layout<#mesh, [S(0)]>
#R = #dist.layout<#mesh, [R]>
#dp = #dist.axes<#mesh, ["dp"]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(
      %w: tensor<16x16xf32> {dist.global_type = tensor<16x16xf32>, dist.kind = "parameter", dist.layout = #R, dist.name = "w"},
      %x: tensor<8x16xf32> {dist.global_type = tensor<32x16xf32>, dist.kind = "input", dist.layout = #S0, dist.name = "x"})
      -> (tensor<8x16xf32> {dist.global_type = tensor<32x16xf32>, dist.kind = "output", dist.layout = #S0, dist.name = "chain"},
          tensor<8x16xf32> {dist.global_type = tensor<8x16xf32>, dist.kind = "output", dist.layout = #R, dist.name = "sum"},
          tensor<32x16xf32> {dist.global_type = tensor<32x16xf32>, dist.kind = "output", dist.layout = #R, dist.name = "all"}) {
    %first = dist.all_gather over #dp %x dim 0 : (tensor<8x16xf32>) -> !dist.future<tensor<32x16xf32>>
    %y = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %second = dist.all_reduce sum over #dp %y : (tensor<8x16xf32>) -> !dist.future<tensor<8x16xf32>>
    %a = aten.linear %y, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %d = aten.linear %c, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %e = aten.linear %d, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    WAIT
    return %e, %sum, %all : tensor<8x16xf32>, tensor<8x16xf32>, tensor<32x16xf32>
  }
}
"""
WAITS = {
    "in_order": """%all = dist.wait %first : !dist.future<tensor<32x16xf32>>
    %sum = dist.wait %second : !dist.future<tensor<8x16xf32>>""",
    "in_reverse": """%sum = dist.wait %second : !dist.future<tensor<8x16xf32>>
    %all = dist.wait %first : !dist.future<tensor<32x16xf32>>""",
}


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("options", [(), ("--no-overlap",)], ids=["overlap", "no_overlap"])
def test_operands_in_flight_are_kept(tmp_path, monkeypatch, waits, options):
    program, artifact = tmp_path / "program.mlir", tmp_path / "program.so"
    program.write_text(SCHEDULED.replace("WAIT", WAITS[waits]))
    run(tool("shardc"), "compile", program, "-o", artifact)
    random = np.random.default_rng(7)
    w, x = (random.standard_normal(shape).astype(np.float32) for shape in ((16, 16), (32, 16)))
    save_file({"w": w}, tmp_path / "w")
    save_file({"x": x}, tmp_path / "x")
    monkeypatch.setenv("SHARDRT_LINK", "30000,1")
    run(tool("shard-run"), artifact, "--weights", tmp_path / "w", "--inputs", tmp_path / "x", "--outputs",
        tmp_path / "out", "--steps", "3", *options)
    out = load_file(tmp_path / "out")
    y = x.astype(np.float64) @ w.T.astype(np.float64)
    chain = y
    for _ in range(5):
        chain = chain @ w.T.astype(np.float64)
    np.testing.assert_array_equal(out["all"], x)
    np.testing.assert_allclose(out["sum"], y.reshape(4, 8, 16).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out["chain"], chain, rtol=1e-4, atol=1e-4 * np.abs(chain).max())


@pytest.mark.parametrize("count", [1, 14, 23, 47])
def test_many_futures(tmp_path, count):
    """All gathers of a chain in flight from the start: every one arrives, in whatever order they are used."""
    header, signature = SCHEDULED.split("module", 1)[0], "tensor<4x16xf32>"
    arguments = ", ".join(
        f'%w{i}: {signature} {{dist.global_type = tensor<16x16xf32>, dist.kind = "parameter", dist.layout = #S0, dist.name = "w{i}"}}'
        for i in range(count))
    body = "".join(f"%f{i} = dist.all_gather over #dp %w{i} dim 0 : ({signature}) -> !dist.future<tensor<16x16xf32>>\n"
                   for i in range(count))
    last = "%x"
    for i in reversed(range(count)):
        body += f"%g{i} = dist.wait %f{i} : !dist.future<tensor<16x16xf32>>\n"
        body += f"%y{i} = aten.linear {last}, %g{i} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>\n"
        last = f"%y{i}"
    program = tmp_path / "program.mlir"
    program.write_text(f"""{header}module attributes {{dist.mesh = #mesh}} {{ func.func @forward({arguments},
        %x: tensor<8x16xf32> {{dist.global_type = tensor<32x16xf32>, dist.kind = "input", dist.layout = #S0, dist.name = "x"}})
        -> (tensor<8x16xf32> {{dist.global_type = tensor<32x16xf32>, dist.kind = "output", dist.layout = #S0, dist.name = "y"}}) {{
        {body} return {last} : tensor<8x16xf32> }} }}""")
    run(tool("shardc"), "compile", program, "-o", tmp_path / "program.so")
    random = np.random.default_rng(count)
    w = {f"w{i}": (random.standard_normal((16, 16)) / 4).astype(np.float32) for i in range(count)}
    x = random.standard_normal((32, 16)).astype(np.float32)
    save_file(w, tmp_path / "w")
    save_file({"x": x}, tmp_path / "x")
    run(tool("shard-run"), tmp_path / "program.so", "--weights", tmp_path / "w", "--inputs", tmp_path / "x", "--outputs",
        tmp_path / "out", "--steps", "2")
    expected = x.astype(np.float64)
    for i in reversed(range(count)):
        expected = expected @ w[f"w{i}"].T.astype(np.float64)
    np.testing.assert_allclose(load_file(tmp_path / "out")["y"], expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_a_partitioned_program_takes_no_plan(tmp_path):
    program = tmp_path / "program.mlir"
    program.write_text(SCHEDULED.replace("WAIT", WAITS["in_order"]))
    done = run(tool("shardc"), "compile", program, "--mesh", "dp=4", "-o", tmp_path / "out.so", check=False)
    assert done.returncode == 1 and "is partitioned already" in done.stderr
    program.write_text(SCHEDULED.replace("WAIT", WAITS["in_order"] + "\n    %twice = dist.wait %first : !dist.future<tensor<32x16xf32>>"))
    done = run(tool("shardc"), "compile", program, "-o", tmp_path / "out.so", check=False)
    assert done.returncode == 1 and "future" in done.stderr
