# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op of the aten dialect, compiled and run, against PyTorch on the same tensors: all element types, odd sizes,
empty and 0-dim tensors, broadcasting, strided operands, infinities and NaN."""
import random

import pytest
import torch

from kernels import check, compile_and_run
import kernel_cases  # after kernels, which knows where pytorch_cases is
import kernel_images
import kernel_rows

FAMILIES = {f.__name__: f for f in (
    kernel_cases.unary, kernel_cases.binary, kernel_cases.powers, kernel_cases.several_operands, kernel_cases.casts,
    kernel_rows.reductions, kernel_rows.normalizations, kernel_rows.lookups, kernel_rows.products,
    kernel_rows.casting_reductions, kernel_images.images, kernel_images.neighborhoods)}


@pytest.fixture(autouse=True)
def seed():
    random.seed(7)
    torch.manual_seed(7)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family, tmp_path):
    check(list(FAMILIES[family]()), tmp_path)


@pytest.mark.parametrize("kind", (kernel_cases.F32, kernel_cases.F64, kernel_cases.BF16, kernel_cases.F16), ids=str)
def test_products_with_named_matrices(kind, tmp_path):
    check(list(kernel_rows.named_matrices(kind, every=True)), tmp_path)


def test_random_ops_on_views(tmp_path):
    assert check(list(kernel_cases.at_random(400)), tmp_path) > 250


BEYOND = {
    "embedding": ("%r = aten.embedding %x0 at %x1 : (tensor<7x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>", 7),
    "embedding_negative": ("%r = aten.embedding %x0 at %x1 : (tensor<7x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>", -1),
    "index": ("%r = aten.index %x0[%x1] : (tensor<7x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>", -8),
    "index_select": ("%r = aten.index_select %x0 dim 0 at %x1 : (tensor<7x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>", 7),
    "gather": ("%c = aten.view %x1 [3, 1] : (tensor<3xi64>) -> tensor<3x1xi64>\n"
               "  %e = aten.expand %c [3, 5] : (tensor<3x1xi64>) -> tensor<3x5xi64>\n"
               "  %r = aten.gather %x0 dim 0 at %e : (tensor<7x5xf32>, tensor<3x5xi64>) -> tensor<3x5xf32>", 1 << 40),
}


def out_of_range(name):
    """A program, its arguments, and what it is to say."""
    body, index = BEYOND[name]
    text = ("func.func @forward(%x0: tensor<7x5xf32>, %x1: tensor<3xi64>) -> tensor<3x5xf32> {\n"
            f"  {body} loc(\"layer\")\n  return %r : tensor<3x5xf32>\n}}\n")
    message = f"index out of range in aten.{name.removesuffix('_negative')}"
    return text, [torch.randn(7, 5), torch.tensor([0, index, 1])], message


@pytest.mark.parametrize("name", BEYOND)
def test_index_out_of_range_is_an_error(name, tmp_path):
    text, arguments, message = out_of_range(name)
    done = compile_and_run(text, arguments, tmp_path)
    assert done.returncode == 1 and message in done.stderr, done.stderr
