# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a window makes of a rank's own rows, computed apart while rows of others arrive (--split-windows): PyTorch's numbers in f64 for windows of
every kind, odd and empty shards, and the order of a chain of convolutions."""
import json
import re
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places
from window_cases import BATCH, MESHES, draw, mesh_of, problems_of

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402


@pytest.mark.parametrize("number", range(len(MESHES)))
def test_random_windows(tmp_path, number):
    """Other seeds than those of test_domain.py, forward and gradients."""
    seeds = range((number + len(MESHES)) * BATCH, (number + len(MESHES) + 1) * BATCH)
    mesh = mesh_of(seeds[0])
    problems = problems_of([draw(seed, mesh) for seed in seeds], mesh, tmp_path, "--split-windows", "all")
    assert not problems, "\n".join(problems.values())


class Chain(nn.Module):
    """Windows one after the other, of sizes that no number of ranks divides."""

    def __init__(self, spatial):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[spatial - 1]
        self.max_pool, self.avg_pool = ((F.max_pool1d, F.avg_pool1d), (F.max_pool2d, F.avg_pool2d), (F.max_pool3d, F.avg_pool3d))[spatial - 1]
        self.same, self.strided = conv(2, 4, 3, padding=1), conv(4, 4, 3, stride=2, padding=1)
        self.wide, self.dilated = conv(4, 4, 5, padding=2, groups=2), conv(4, 3, 3, padding=2, dilation=2, bias=False)

    def forward(self, x):
        x = torch.relu(self.same(x))
        x = self.wide(self.max_pool(x, 3, 1, 1))
        x = self.strided(torch.tanh(x))
        return self.dilated(self.avg_pool(x, 3, 1, 1))


SIZES = {1: (45,), 2: (27, 23), 3: (14, 9, 11)}


@pytest.fixture(scope="module", params=SIZES)
def chain(request, tmp_path_factory):
    torch.manual_seed(request.param)
    folder, module = tmp_path_factory.mktemp("chain"), Chain(request.param).double()
    inputs = {"x": torch.randn(2, 2, *SIZES[request.param], dtype=torch.float64)}
    torch.export.save(shardc_export.export(module, tuple(inputs.values())), folder / "model.pt2")
    save_file(inputs, folder / "in.safetensors")
    return folder, request.param, module(**inputs)


@pytest.mark.parametrize("mesh,axes", [
    ("h=2", "h:S(2)"), ("h=3", "h:S(2)"), ("h=5", "h:S(2)"), ("h=2,w=2", "h:S(2),w:S(3)"), ("dp=2,h=2", "dp:S(0),h:S(2)"),
    ("h=3", "h:S(2, sizes = {uneven})")])
def test_chain(chain, mesh, axes):
    folder, spatial, want = chain
    if "w:" in axes and spatial == 1:
        axes = axes.replace("w:S(3)", "w:S(2)")
    size = SIZES[spatial][0]
    plan = places(f"input:x={axes.replace('{uneven}', str([size - 2, 0, 2]))}")
    run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, *plan, "--split-windows", "all", "-o", folder / "m.so",
        "--save-stages", folder / "stages")
    assert (folder / "stages/4-scheduled.mlir").read_text().count("aten.convolution") > 4
    run(tool("shard-run"), folder / "m.so", "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors", "--outputs",
        folder / "out.safetensors", "--timeout", 60, "--threads", 1)
    (got,) = load_file(folder / "out.safetensors").values()
    assert got.shape == want.shape and float((got - want).detach().abs().max()) < 1e-12


MACHINE = """name = slow
ranks_per_node = 2
launch_us = 1
peak_tflops f32 = 0.05
memory_gb_per_s = 10
[all_gather intra algbw]
2 {latency} 100
"""


def network(folder, layers=4, channels=16, size=64):
    """A chain of convolutions and activations, before placement."""
    weight, value = f"tensor<{channels}x{channels}x3x3xf32>", f"tensor<1x{channels}x{size}x{size}xf32>"
    arguments = "".join(f'%w{i}: {weight} {{dist.kind = "parameter", dist.name = "w{i}"}}, ' for i in range(layers))
    body, last = "", "%x"
    for i in range(layers):
        body += (f"  %y{i} = aten.convolution {last}, %w{i} stride [1, 1] padding [1, 1] dilation [1, 1] : ({value}, {weight}) -> {value}\n"
                 f"  %z{i} = aten.relu %y{i} : ({value}) -> {value}\n")
        last = f"%z{i}"
    (folder / "net.mlir").write_text(f'func.func @forward({arguments}%x: {value} {{dist.kind = "input", dist.name = "x"}}) -> '
                                     f'({value} {{dist.kind = "output", dist.name = "y"}}) {{\n{body}  return {last} : {value}\n}}\n')
    return folder / "net.mlir"


def scheduled(folder, source, latency, *options):
    (folder / "machine").write_text(MACHINE.format(latency=latency))
    run(tool("shardc"), "compile", source, "--mesh", "h=2", "--place", "input:x=h:S(2)", "--topology", folder / "machine", *options,
        "--save-stages", folder / "stages", "-o", folder / "net.so")
    return (folder / "stages/4-scheduled.mlir").read_text()


def exposed(program):
    before, after = (float(re.search(rf"{key} = ([0-9.e+-]+)", program)[1]) for key in ("exposed_before_us", "exposed_us"))
    return before, after


def test_the_interior_is_computed_while_rows_arrive(tmp_path):
    """Where an exchange takes long enough, by the cost model."""
    source = network(tmp_path)
    assert exposed(scheduled(tmp_path, source, 20, "--split-windows", "off"))[1] >= 4 * 20
    program = scheduled(tmp_path, source, 20)
    assert exposed(program)[1] < 1
    lines = [line for line in program.splitlines() if re.search(r"= (dist\.all_to_all|dist\.wait|aten\.convolution) ", line)]
    kinds = [re.search(r"= ((?:dist|aten)\.\w+)", line)[1].split(".")[1] for line in lines]
    assert kinds == ["all_to_all", "convolution", "wait", "convolution", "convolution"] * 4
    assert all("-> tensor<1x16x30x64xf32>" in line for line in lines[1::5])


def test_what_costs_more_than_it_hides_stays_whole(tmp_path):
    assert scheduled(tmp_path, network(tmp_path), 1e-3).count("aten.convolution") == 4


def test_exchanges_of_a_backward_hide_behind_derivatives_by_weights(tmp_path):
    """Of the same layer, which need nothing of the exchange; no window is split for that."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(torch.nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return x.square().mean()

    torch.export.save(shardc_export.export(Net(), (torch.randn(1, 16, 64, 64),)), tmp_path / "net.pt2")
    (tmp_path / "machine").write_text(MACHINE.format(latency=20))
    text = run(tool("shardc"), "explain", tmp_path / "net.pt2", "--mesh", "h=2", "--place", "input:*=h:S(2)", "--gradients", 0, "--topology",
               tmp_path / "machine", "--format", "json").stdout
    halos = [c for c in json.loads(text)["collectives"] if c["entry"] == "gradients" and c["kind"] == "all_to_all" and c["backward"]]
    assert len(halos) == 3  # nobody asks for the derivative by the image
    assert sum(c["predicted_us"] for c in halos) >= 3 * 20 and sum(c["exposed_us"] for c in halos) < 1
