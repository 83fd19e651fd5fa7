# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products that benchmarks/training_products.py reads from a program are those that the step computes."""
import sys

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "benchmarks"))
import training_products  # noqa: E402

MODEL = """
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"}, %w: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "w"},
                   %v: tensor<3x6xf32> {dist.kind = "parameter", dist.name = "v"}) -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %t = aten.permute %w [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %h = aten.linear %x, %t : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %r = aten.tanh %h : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %y = aten.linear %r, %v : (tensor<8x6xf32>, tensor<3x6xf32>) -> tensor<8x3xf32>
  %s = aten.tanh %y : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %l = aten.mean %s : (tensor<8x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
"""


def test_products_of_two_ranks(tmp_path):
    (tmp_path / "m.mlir").write_text(MODEL)
    run(tool("shardc"), "compile", tmp_path / "m.mlir", "--mesh", "dp=2", "--place", "input:*=dp:S(0)", "--train", "loss=loss", "--save-stages", tmp_path / "stages",
        "-o", tmp_path / "m.so")
    found = training_products.products(next((tmp_path / "stages").glob("*-planned.mlir")))
    # Half of the rows: x w, r v', the gradients of r, of w (as w lies: [inputs, outputs]) and of v.
    assert sorted(found) == [(3, 6, 4, True, False, 1), (4, 3, 6, False, True, 1), (4, 6, 3, False, False, 1), (4, 6, 4, False, False, 1),
                             (4, 6, 4, True, False, 1)]
    assert training_products.flops(found) == 2 * (3 * 4 * 6 * 3 + 2 * 4 * 4 * 6)
