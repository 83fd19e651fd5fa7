# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module, exported, with PyTorch's outputs and gradients beside it; compiled and run, its own are compared with them."""
import functools
import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils import _pytree as pytree

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

F64 = torch.float64


def parts(t):
    return torch.view_as_real(t.resolve_conj()) if t.dtype.is_complex else t


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Exported:
    """A module whose first output is a loss, and PyTorch's values of it."""

    def __init__(self, folder, module, inputs, **options):
        self.folder, self.module = folder, module
        program = shardc_export.export(module, (), inputs, **options)
        torch.export.save(program, folder / "m.pt2")
        leaves = zip(program.graph_signature.user_inputs, pytree.tree_leaves(inputs), strict=True)
        save_file({k: parts(v).contiguous() for k, v in leaves}, folder / "in.safetensors")
        outputs = module(**inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        self.outputs = [parts(t.detach()) for t in outputs]
        trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        grads = torch.autograd.grad(outputs[0], list(trained.values())) if trained else ()
        self.grads = {n: parts(g) for n, g in zip(trained, grads)}

    def run(self, mesh, *plan):
        asked = ["--gradients", 0] if self.grads else []
        run(tool("shardc"), "compile", self.folder / "m.pt2", "--mesh", mesh, *plan, *asked, "-o", self.folder / "m.so")
        self.answer("--inputs", self.folder / "in.safetensors", what=f"on {mesh} {plan}")

    def answer(self, *arguments, what=""):
        so, out = self.folder / "m.so", self.folder / "out.safetensors"
        entry = ["--entry", "gradients"] if self.grads else []
        run(tool("shard-run"), so, *entry, "--weights", self.folder / "m.pt2", *arguments, "--outputs", out, "--timeout", 60)
        manifest = json.loads(run(tool("shard-run"), so, "--manifest").stdout)["entries"][-1]
        got = load_file(out)
        names = [o["name"] for o in manifest["outputs"] if o["kind"] == "user"]
        # The outputs of the forward come first.
        for n, (name, want) in enumerate(zip(names, self.outputs)):
            self.compare(got[name], want, f"output {n} {what}")
        for name, want in self.grads.items():
            self.compare(got[name], want, f"gradient of {name} {what}")

    @staticmethod
    def compare(got, want, what):
        assert got.shape == want.shape and got.dtype == want.dtype, f"{what}: {got.shape} {got.dtype}, not {want.shape} {want.dtype}"
        if want.numel() == 0:
            return
        limit = 1e-10 if want.dtype == F64 else 1e-4
        assert (got - want).abs().max() <= limit * max(1, want.abs().max()), f"{what}: {(got - want).abs().max()}"

    def moved(self, mesh, *plan):
        text = run(tool("shardc"), "explain", self.folder / "m.pt2", "--mesh", mesh, *plan, "--format", "json").stdout
        return {kind for kind, entry in json.loads(text)["totals"].items() if entry["count"]}


def fixture_of(models, seed=1):
    """A fixture that exports a model by its name, once in a module of tests. `models` are functions that return a module and its inputs."""
    @pytest.fixture(scope="module")
    def exported(tmp_path_factory):
        @functools.cache
        def export(name):
            torch.manual_seed(seed)
            module, inputs = models[name]()
            return Exported(tmp_path_factory.mktemp(name), module.double(), inputs)
        return export
    return exported
