# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products that are computed before a gather, on every rank's own rows: the same answers, fewer bytes."""
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool

# Fourteen rows over four ranks: 4, 4, 4 and 2.
PROGRAM = """#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(
      %w: tensor<8x64xf32> {dist.global_type = tensor<8x64xf32>, dist.kind = "parameter", dist.layout = #R, dist.name = "w"},
      %x: tensor<?x64xf32> {dist.global_type = tensor<14x64xf32>, dist.kind = "input", dist.layout = #S0, dist.name = "x"})
      -> (tensor<14x8xf32> {dist.global_type = tensor<14x8xf32>, dist.kind = "output", dist.layout = #R, dist.name = "y"}) {
    %g = dist.all_gather over #tp %x dim 0 : (tensor<?x64xf32>) -> tensor<14x64xf32>
    %y = aten.linear %g, %w : (tensor<14x64xf32>, tensor<8x64xf32>) -> tensor<14x8xf32>
    return %y : tensor<14x8xf32>
  }
}
"""


def test_same_answers_for_fewer_bytes(tmp_path):
    random = np.random.default_rng(0)
    w, x = (random.standard_normal(shape).astype(np.float32) for shape in ((8, 64), (14, 64)))
    save_file({"w": w}, tmp_path / "weights")
    save_file({"x": x}, tmp_path / "inputs")
    (tmp_path / "whole.mlir").write_text(PROGRAM)
    run(tool("shard-opt"), tmp_path / "whole.mlir", "--shardc-optimize-collectives=move-products", "-o", tmp_path / "moved.mlir")
    sent = {}
    for name in ("whole", "moved"):
        source, program = tmp_path / f"{name}.mlir", tmp_path / f"{name}.so"
        run(tool("shardc"), "compile", source, "-o", program)
        run(tool("shard-run"), "-n", 4, program, "--weights", tmp_path / "weights", "--inputs", tmp_path / "inputs", "--outputs",
            tmp_path / "out")
        np.testing.assert_allclose(load_file(tmp_path / "out")["y"], x.astype(np.float64) @ w.T, rtol=1e-4, atol=1e-4)
        report = json.loads(run(tool("shardc"), "explain", source, "--format", "json").stdout)
        sent[name] = report["totals"]["all_gather"]["bytes_per_rank"]
    assert sent["moved"] == pytest.approx(sent["whole"] * 8 / 64)


def test_contradicting_options(model, tmp_path):
    done = run(tool("shardc"), "compile", model("mlp").path, "--mesh", "tp=2", "--move-products", "--keep-collectives", "-o",
               tmp_path / "m.so", check=False)
    assert done.returncode != 0 and "--keep-collectives and --move-products exclude each other" in done.stderr
    (tmp_path / "p.mlir").write_text(PROGRAM)
    done = run(tool("shardc"), "compile", tmp_path / "p.mlir", "--move-products", "-o", tmp_path / "m.so", check=False)
    assert done.returncode != 0 and "--move-products is for models that are not" in done.stderr
