# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op of the aten dialect as kernels of the emulated device, against PyTorch on the same tensors; and positions out of
range."""
import random

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from kernels import EMULATED, SUMS, check, compile_and_run, difference
import cuda_kernel_cases  # after kernels, which knows where pytorch_cases is
import kernel_cases
import test_kernel_graphs
from test_kernels import BEYOND, FAMILIES, out_of_range

LAYOUTS = {f.__name__: f for f in (cuda_kernel_cases.flat, cuda_kernel_cases.broadcasts, cuda_kernel_cases.orders,
                                   cuda_kernel_cases.parts, cuda_kernel_cases.lookups)}
pytestmark = pytest.mark.usefixtures("all_orders")


@pytest.fixture(autouse=True)
def seed():
    random.seed(7)
    torch.manual_seed(7)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family, tmp_path):
    check(list(FAMILIES[family]()), tmp_path, EMULATED)


@pytest.mark.parametrize("family", LAYOUTS)
def test_layouts(family, tmp_path):
    cases = list(LAYOUTS[family]())
    assert check(cases, tmp_path, EMULATED) == len(cases)


def test_random_ops_on_views(tmp_path):
    assert check(list(kernel_cases.at_random(200)), tmp_path, EMULATED) > 120


def test_graphs_with_awkward_results(tmp_path):
    test_kernel_graphs.check(range(100), tmp_path, EMULATED)


@pytest.mark.parametrize("name", BEYOND)
def test_index_out_of_range_is_an_error(name, tmp_path):
    text, arguments, message = out_of_range(name)
    done = compile_and_run(text, arguments, tmp_path, tools=EMULATED)
    assert done.returncode == 1 and message in done.stderr, done.stderr


DYNAMIC = """func.func @forward(%x: tensor<?x?xf32> {dist.name = "x", dist.sizes = [#dist.size<n>, #dist.size<m>]},
    %b: tensor<?xf32> {dist.name = "b", dist.sizes = [#dist.size<m>]},
    %i: tensor<?xi64> {dist.name = "i", dist.sizes = [#dist.size<k>]})
    -> (tensor<?x?xf32> {dist.sizes = [#dist.size<n>, #dist.size<m>]}, tensor<?x?xf32> {dist.sizes = [#dist.size<m>, #dist.size<n>]},
        tensor<?x?xf32> {dist.sizes = [#dist.size<k>, #dist.size<m>]}, tensor<?x?xbf16> {dist.sizes = [#dist.size<n>, #dist.size<m>]}, tensor<?xf32> {dist.sizes = [#dist.size<m>]})
    attributes {dist.symbols = [#dist.symbol<n in [1, ?]>, #dist.symbol<m in [1, ?]>, #dist.symbol<k in [1, ?]>]} {
  %0 = aten.add %x, %b : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %1 = aten.relu %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = aten.permute %x [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = aten.neg %2 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %4 = aten.index_select %x dim 0 at %i : (tensor<?x?xf32>, tensor<?xi64>) -> tensor<?x?xf32>
  %5 = aten.to_copy %x to bf16 : (tensor<?x?xf32>) -> tensor<?x?xbf16>
  %6 = aten.sum %x dim [0] : (tensor<?x?xf32>) -> tensor<?xf32>
  return %1, %3, %4, %5, %6 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xbf16>, tensor<?xf32>
}
"""


def test_sizes_known_at_run_time(tmp_path):
    """One program for rows of whole vectors, of others, single ones, and more than a block."""
    (tmp_path / "dynamic.mlir").write_text(DYNAMIC)
    run(tool("shardc"), "compile", tmp_path / "dynamic.mlir", "--mesh", "r=1", "-o", tmp_path / "dynamic.so",
        *EMULATED["compile"])
    for n, m, k in ((40, 64, 9), (33, 37, 50), (1, 1, 1), (130, 30, 257), (5, 1024, 3)):
        x, b, i = torch.randn(n, m), torch.randn(m), torch.randint(0, n, (k,))
        save_file({"x": x, "b": b, "i": i}, tmp_path / "inputs.safetensors")
        run(tool("shard-run"), tmp_path / "dynamic.so", "--inputs", tmp_path / "inputs.safetensors", "--outputs",
            tmp_path / "outputs.safetensors", *EMULATED["run"])
        got = load_file(tmp_path / "outputs.safetensors")
        wants = [(x + b).relu(), -x.T.contiguous(), x[i], x.to(torch.bfloat16), x.sum(0)]
        for number, want in enumerate(wants):
            wrong = difference(got[f"output_{number}"], want, [x], SUMS if number == 4 else 1)
            assert not wrong, f"{n} x {m}, {k}: output {number} {wrong}"
