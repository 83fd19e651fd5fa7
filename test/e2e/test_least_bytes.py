# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that only rearrange elements, of the list in benchmarks/small_graphs.py: every value and gradient is PyTorch's, and all of them together move what
brute force says that they must. So do graphs over sharded spatial dims of benchmarks/spatial_graphs.py, with what docs/least-bytes-spatial.md derives. All
are one model, each with inputs of its own; benchmarks/least_bytes.py looks at them one by one."""
import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
sys.path.insert(0, str(ROOT / "benchmarks"))
import shardc_export
from least_bytes import least_moved, least_of, mesh_of, outputs, placement, spec
from small_graphs import BACKWARD, MOVED, all_reduce
from spatial_graphs import FORWARD

MESHES = {"tp=2": 2, "tp=3": 3, "dp=2,tp=2": 4}
# Those of 13 elements, which three ranks do not divide, that move the least.
SPATIAL = [f"{name} (13)" for name in (
    "convolution of 3", "convolution of 5", "convolution of 4", "convolution without padding", "convolution of 1", "convolution in groups", "mean pool of 5",
    "mean pool of 5 by 5", "max pool of 5", "adaptive mean to 1", "adaptive max to 1", "unfold", "nearest, to 23", "nearest, half as long",
    "linear, twice as long", "linear, to 9, corners", "zeros", "reflected", "replicated", "circular", "circular convolution", "roll", "flip", "differences",
    "central differences", "mean", "variance", "layer norm", "group norm")]
SPATIAL += [f"image, {name} (13 x 11)" for name in ("convolution of 3 x 3", "bilinear, twice as large", "bicubic, twice as large")]


class All(nn.Module):
    """The results of all graphs or, with values for parameters, a loss of them."""

    def __init__(self, graphs, values=None):
        super().__init__()
        self.graphs, self.x = graphs, nn.ParameterList(values) if values else None

    def forward(self, *inputs):
        left, results = list(self.x or inputs), []
        for graph in self.graphs:
            results += outputs(graph.function(*(left.pop(0) for _ in graph.shapes)))
        return sum((y * w).sum() for y, w in zip(results, inputs, strict=True)) if self.x else tuple(results)


class Case:
    """A model of all graphs of a list that are for a mesh, and a plan that says how everything is sharded."""

    def __init__(self, graphs, mesh):
        self.mesh, self.n = mesh, MESHES[mesh]
        self.graphs = {name: graph for name, graph in graphs.items() if bool(graph.mesh) == ("," in mesh)}
        torch.manual_seed(6)
        self.values, self.given, self.made, self.names = [], [], [], []
        for name, graph in self.graphs.items():
            axes = mesh_of(graph, self.n)
            self.values += [torch.randn(shape) for shape in graph.shapes]
            self.given += [spec(placement(graph.sharded.get(i), axes), axes) for i in range(len(graph.shapes))]
            results = outputs(graph.function(*self.values[-len(graph.shapes):]))
            exactly = name in FORWARD  # the sizes of the shards are given
            self.made += [spec(placement(graph.out, axes), axes, result.shape if exactly else None) for result in results]
            self.names += [name] * len(results)

    def run(self, folder, module, inputs, plan, *entry):
        """The outputs, in order, and the collectives."""
        program = shardc_export.export(module, tuple(inputs))
        torch.export.save(program, folder / "model.pt2")
        save_file(dict(zip(program.graph_signature.user_inputs, inputs)), folder / "in.safetensors")
        plan = ["--mesh", self.mesh, *plan]
        run(tool("shardc"), "compile", folder / "model.pt2", *plan, "-o", folder / "model.so")
        run(tool("shard-run"), folder / "model.so", *entry, "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--timeout", 60)
        got = load_file(folder / "out.safetensors")
        entries = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)["entries"]
        name = "gradients" if entry else entries[0]["name"]
        results = [got[output["name"]] for e in entries if e["name"] == name for output in e["outputs"]]
        report = json.loads(run(tool("shardc"), "explain", folder / "model.pt2", *plan, "--format", "json").stdout)["collectives"]
        return results, [c for c in report if not entry or c["entry"] == name]

    def check_bytes(self, collectives, times, besides=0):
        least = times * sum(least_moved(graph, self.n) for graph in self.graphs.values()) + besides
        assert sum(c["bytes_per_rank"] for c in collectives) <= 1.02 * least + len(collectives)


@pytest.mark.parametrize("mesh", MESHES)
def test_values(tmp_path, mesh):
    case = Case(MOVED, mesh)
    module = All(case.graphs.values())
    plan = places(*(f"input:{i}={at}" for i, at in enumerate(case.given)), *(f"output:{i}={at}" for i, at in enumerate(case.made)))
    got, collectives = case.run(tmp_path, module, case.values, plan)
    for name, result, want in zip(case.names, got, module(*case.values), strict=True):
        torch.testing.assert_close(result, want, msg=lambda text, name=name: f"{name}: {text}")
    case.check_bytes(collectives, 1)


def test_spatial_graphs(tmp_path):
    case = Case({name: FORWARD[name] for name in SPATIAL}, "tp=3")
    module = All(case.graphs.values())
    plan = places(*(f"input:{i}={at}" for i, at in enumerate(case.given)), *(f"output:{i}={at}" for i, at in enumerate(case.made)))
    got, collectives = case.run(tmp_path, module, case.values, plan)
    for name, result, want in zip(case.names, got, module(*case.values), strict=True):
        torch.testing.assert_close(result, want, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    assert sum(c["bytes_per_rank"] for c in collectives) <= sum(least_of(name, 3) for name in SPATIAL) + len(SPATIAL)


@pytest.mark.parametrize("mesh", MESHES)
def test_gradients(tmp_path, mesh):
    """What was moved comes back as a cotangent."""
    case = Case(BACKWARD, mesh)
    module = All(case.graphs.values(), case.values)
    inputs = [torch.randn(y.shape) for y in All(case.graphs.values())(*case.values)]
    module(*inputs).backward()
    plan = places(*(f"param:x.{i}={at}" for i, at in enumerate(case.given)), *(f"input:{i}={at}" for i, at in enumerate(case.made)))
    got, collectives = case.run(tmp_path, module, inputs, [*plan, "--gradients", "0"], "--entry", "gradients", "--weights", tmp_path / "model.pt2")
    for result, x in zip(got[-len(case.values):], module.x, strict=True):
        torch.testing.assert_close(result, x.grad)
    case.check_bytes(collectives, 2, all_reduce(case.n, 4))
