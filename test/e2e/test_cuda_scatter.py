# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatter-adds and sorts on the emulated device: against PyTorch, and the bits of the CPU target, whose order of sums is the same. So
are gradients of lookups, failures of positions out of range, and sizes that are known only when the program runs."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, run_python, tool
from kernels import Program, difference
import gradient_cases
import gradients
import cuda_scatter_cases as scatter_cases

TARGETS = {"cpu": (), "cuda:emulated": ("--device", "emulated")}
pytestmark = pytest.mark.usefixtures("all_orders")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(11)


def answers(source, inputs, folder, target, *options, check=True):
    """Outputs of the program by name, or what went wrong."""
    name = target.replace(":", "-")
    save_file(inputs, folder / "inputs.safetensors")
    run(tool("shardc"), "compile", source, "--mesh", "r=1", "--target", target, *options, "-o", folder / f"{name}.so")
    done = run(tool("shard-run"), folder / f"{name}.so", *TARGETS[target], "--inputs", folder / "inputs.safetensors",
               "--outputs", folder / f"{name}.safetensors", check=check)
    return load_file(folder / f"{name}.safetensors") if done.returncode == 0 else done.stderr


def same_bits(got, want):
    integer = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}[want.element_size()]
    return torch.equal(got.contiguous().view(integer), want.contiguous().view(integer)) if want.numel() else True


def compare(program, wants, folder):
    (folder / "kernels.mlir").write_text(program.text())
    inputs = {f"input_{i}": t.clone() for i, t in enumerate(program.arguments)}
    host, device = (answers(folder / "kernels.mlir", inputs, folder, target) for target in TARGETS)
    problems = []
    for i, ((_, _, label), want) in enumerate(zip(program.results, wants, strict=True)):
        case, got = program.labels[label], device[f"output_{i}"]
        if wrong := difference(got, want.contiguous(), case.operands, case.loose):
            problems.append(f"{case.name} {case.strided}: {wrong}")
        if not same_bits(got, host[f"output_{i}"]):
            problems.append(f"{case.name} {case.strided}: other bits than the CPU's")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("family", ["cases", "views", "sorts"])
def test_against_pytorch_and_the_cpu(family, tmp_path):
    program, wants = Program(), []
    for case in getattr(scatter_cases, family)():
        want = case.call(*case.operands)
        program.add(case, want)
        wants += want if isinstance(want, list) else [want]
    assert len(wants) >= 2
    compare(program, wants, tmp_path)


BEYOND = """func.func @forward(%x: tensor<7x5xf32>, %i: tensor<4xi64>, %v: tensor<4x5xf32>) -> tensor<7x5xf32> {
  %r = aten.index_put %x[%i] of %v accumulate : (tensor<7x5xf32>, tensor<4xi64>, tensor<4x5xf32>) -> tensor<7x5xf32> loc("layer")
  return %r : tensor<7x5xf32>
}
"""


@pytest.mark.parametrize("index", [7, -8, 1 << 40, -(1 << 62)])
def test_a_position_out_of_range_is_an_error(index, tmp_path):
    (tmp_path / "beyond.mlir").write_text(BEYOND)
    inputs = {"input_0": torch.randn(7, 5), "input_1": torch.tensor([0, index, 6, -7]), "input_2": torch.randn(4, 5)}
    for target in TARGETS:
        message = answers(tmp_path / "beyond.mlir", inputs, tmp_path, target, check=False)
        assert isinstance(message, str) and "index out of range in aten.index_put" in message and "layer" in message


def test_gradients_of_lookups(tmp_path):
    """Embeddings, gathers, index and index_select: their gradients are scatter-adds. What they are on a CPU is compared with
    PyTorch and with finite differences in test_gradients; here every bit must be the CPU's."""
    program = gradients.Program(list(gradient_cases.lookups()))
    program.differentiate(tmp_path)
    host = program.run(tmp_path, program.inputs)
    device = answers(tmp_path / "backward.mlir", program.inputs | program.cotangents, tmp_path, "cuda:emulated")
    assert host.keys() == device.keys() and len(host) > 16
    assert not [name for name in host if not same_bits(device[name], host[name])]


FACTORY = """import torch
class Lookup(torch.nn.Module):
    def forward(self, x, i, v):
        return x.index_put((i,), v, accumulate=True), x.scatter_add(0, i[:, None].expand(-1, x.shape[1]), v)
def build():
    return Lookup(), (torch.randn(9, 6), torch.arange(5), torch.randn(5, 6))
"""


def test_sizes_known_only_at_run_time(tmp_path):
    """One program for tables and lists of several lengths; positions need one, two and three digits of the sort."""
    (tmp_path / "lookup.py").write_text(FACTORY)
    run_python(ROOT / "tools/export/shardc_export.py", f"{tmp_path}/lookup.py:build", "-o", tmp_path / "lookup.pt2",
               "--dynamic", "x:0=rows:2:100000", "--dynamic", "i:0=count:2:100000", "--dynamic", "v:0=count")
    for target in TARGETS:
        run(tool("shardc"), "compile", tmp_path / "lookup.pt2", "--mesh", "r=1", "--target", target, "-o",
            tmp_path / f"{target.replace(':', '-')}.so")
    for rows, count in ((9, 5), (300, 2500), (2, 40), (70000, 3)):
        x, i, v = scatter_cases.values((rows, 6), torch.float32), torch.randint(0, rows, (count,)), torch.randn(count, 6)
        save_file({"x": x, "i": i, "v": v}, tmp_path / "inputs.safetensors")
        outputs = []
        for target, options in TARGETS.items():
            run(tool("shard-run"), tmp_path / f"{target.replace(':', '-')}.so", *options, "--inputs",
                tmp_path / "inputs.safetensors", "--outputs", tmp_path / "outputs.safetensors")
            outputs.append(load_file(tmp_path / "outputs.safetensors"))
        host, device = outputs
        want = x.double().index_add(0, i, v.double())
        for name, got in device.items():
            assert same_bits(got, host[name]), (rows, count, name)
            assert torch.allclose(got.double(), want, rtol=1e-4, atol=1e-2)
