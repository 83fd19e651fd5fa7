# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All-to-alls whose counts the program reads from tensors: what arrives is in its place, on a device too, and in runs that follow each other;
numbers that are no sizes, and ranks that disagree, fail the run with a message."""
import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import BUILD, run, tool

# Each rank has six rows, and sends the first `sent[0]` of them to rank 0, the next `sent[1]` to rank 1.
PROGRAM = """
#mesh = #dist.mesh<["ep" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>
#ep = #dist.axes<#mesh, ["ep"]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(
      %x: tensor<6x3xf32> {dist.global_type = tensor<12x3xf32>, dist.kind = "input", dist.layout = #S0, dist.name = "x"},
      %sent: tensor<2xi64> {dist.global_type = tensor<4xi64>, dist.kind = "input", dist.layout = #S0, dist.name = "sent"},
      %due: tensor<2xi64> {dist.global_type = tensor<4xi64>, dist.kind = "input", dist.layout = #S0, dist.name = "due"})
      -> (tensor<12x3xf32> {dist.global_type = tensor<24x3xf32>, dist.kind = "output", dist.layout = #S0, dist.name = "y"}) {
    %one = aten.constant dense<1> : tensor<i64>
    // A kernel computes them.
    %0 = aten.add %sent, %one : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
    %1 = aten.add %due, %one : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
    %s:2 = dist.read_sizes %0 at_most 6 : tensor<2xi64>
    %d:2 = dist.read_sizes %1 at_most 6 : tensor<2xi64>
    %got = dist.all_to_all over #ep %x split 0 extents [%s#0, %s#1] concat 0 extents [%d#0, %d#1] : (tensor<6x3xf32>) -> tensor<12x3xf32>
    %places = aten.arange [0 : 12 : 1] i64 : tensor<12xi64>
    %total = arith.addi %d#0, %d#1 : index
    %next = arith.constant 1 : index
    %end = arith.addi %total, %next : index
    %limit = aten.arange [%total : %end : 1] i64 : tensor<1xi64>
    %there = aten.lt %places, %limit : (tensor<12xi64>, tensor<1xi64>) -> tensor<12xi1>
    %column = aten.unsqueeze %there dim 1 : (tensor<12xi1>) -> tensor<12x1xi1>
    %zero = aten.constant dense<0.0> : tensor<f32>
    %y = aten.where %column, %got, %zero : (tensor<12x1xi1>, tensor<12x3xf32>, tensor<f32>) -> tensor<12x3xf32>
    return %y : tensor<12x3xf32>
  }
}
"""
DEVICES = ["cpu", pytest.param("emulated", marks=pytest.mark.skipif(
    not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built"))]


@pytest.fixture(scope="module", params=DEVICES)
def answer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    device = request.param
    (folder / "p.mlir").write_text(PROGRAM)
    run(tool("shardc"), "compile", folder / "p.mlir", *(["--target", "cuda:emulated"] if device != "cpu" else []), "-o", folder / "p.so")
    x = torch.randn(12, 3, generator=torch.Generator().manual_seed(4))

    def of(sent, due, **how):
        """Counts that each rank computes; they are one less before."""
        save_file({"x": x, "sent": torch.tensor(sent) - 1, "due": torch.tensor(due) - 1}, folder / "in")
        done = run(tool("shard-run"), folder / "p.so", "--inputs", folder / "in", "--outputs", folder / "out", "--timeout", "20", "--steps", "3",
                   *(["--device", device] if device != "cpu" else []), **how)
        return x, done, None if done.returncode else load_file(folder / "out")["y"]
    return of


@pytest.mark.parametrize("a, b, c, d", [(2, 3, 1, 5), (6, 0, 6, 0), (0, 0, 0, 6), (0, 0, 0, 0), (3, 3, 3, 3)])
def test_values(answer, a, b, c, d):
    x, _, y = answer([a, b, c, d], [a, c, b, d])
    first, second = torch.cat([x[:a], x[6:6 + c]]), torch.cat([x[a:a + b], x[6 + c:6 + c + d]])
    for got, want in zip(y.split(12), (first, second)):
        assert torch.equal(got[:len(want)], want) and not got[len(want):].any()


@pytest.mark.parametrize("count", [-1, 7, 2**40])
def test_numbers_that_are_no_sizes(answer, count):
    _, done, _ = answer([1, count, 1, 1], [1, 1, count, 1], check=False)
    assert done.returncode == 1 and str(count) in done.stderr and "0 to 6 are possible" in done.stderr, done.stderr


def test_ranks_that_disagree(answer):
    _, done, _ = answer([1, 2, 1, 1], [1, 1, 1, 1], check=False)
    assert done.returncode == 1 and "rank" in done.stderr and "2" in done.stderr, done.stderr
