# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of real sizes whose ranks are processes of launchers, over shared memory and over engines between hosts, against PyTorch on one device: the GPT-2-like and the
Llama-like model that benchmarks compare with other systems, and GPT-2 124M."""
import functools
import sys

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file

from conftest import ROOT, Model, run, tool
from launchers import launch
from plans import DATA_PARALLEL, places, tensor_parallel

sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools/export")]
import models  # noqa: E402
import shardc_export  # noqa: E402

GPT_TP = models.plan()
LLAMA_TP = places("module:*.attn.{q,k,v}=colwise", "module:*.attn.o=rowwise", "module:layers.*.{gate,up}=colwise",
                  "module:layers.*.down=rowwise")
PLANS = {"gpt": GPT_TP, "llama": LLAMA_TP, "gpt2_124m": tensor_parallel("gpt2")}
MESHES = {"tp4": ("tp=4", []), "dp2xtp2": ("dp=2,tp=2", DATA_PARALLEL)}
LAUNCHED = [(kind, "tp4") for kind in ("mpirun", "torchrun", "torchrun gloo", "mpirun mpi", "mpiexec mpi")]
LAUNCHED += [(kind, "dp2xtp2") for kind in ("mpirun", "torchrun gloo", "mpirun mpi")]
pytestmark = pytest.mark.xdist_group("launched models")  # each is exported and compiled once


class Exported:
    """One of the models of benchmarks/models.py, exported, its inputs, and what PyTorch computes of them."""

    def __init__(self, name, folder):
        module, _, inputs = getattr(models, name)()
        self.path, self.inputs, self.outputs = (folder / f"{name}.{end}" for end in ("pt2", "in.safetensors", "want.safetensors"))
        program = shardc_export.export(module, (), inputs)
        torch.export.save(program, self.path)
        save_file(inputs, self.inputs)
        with torch.no_grad():
            [name] = program.graph_signature.user_outputs
            save_file({name: module(**inputs)}, self.outputs)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")

    @functools.cache
    def exported(name):
        return Model(name) if name == "gpt2_124m" else Exported(name, folder)

    @functools.cache
    def build(name, mesh):
        axes, data = MESHES[mesh]
        artifact = folder / f"{name}.{mesh}.so"
        run(tool("shardc"), "compile", exported(name).path, "--mesh", axes, *data, *PLANS[name], "-o", artifact)
        return exported(name), artifact

    return build


def check(model, artifact, kind, out):
    launch(kind, artifact, "--weights", model.path, "--inputs", model.inputs, "--outputs", out)
    got, want = load_file(out), load_file(model.outputs)
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert (got[name].shape, got[name].dtype) == (value.shape, value.dtype)
        difference = np.abs(got[name] - value).max() / np.abs(value).max()
        assert difference <= 1e-5, f"{name} differs by {difference:.3g} of its scale"


@pytest.mark.parametrize("kind, mesh", LAUNCHED)
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_models_of_the_benchmarks(compiled, tmp_path, name, kind, mesh):
    check(*compiled(name, mesh), kind, tmp_path / "out")


@pytest.mark.parametrize("kind, mesh", [("mpirun", "tp4"), ("torchrun gloo", "dp2xtp2")])
def test_gpt2_124m(compiled, tmp_path, kind, mesh):
    check(*compiled("gpt2_124m", mesh), kind, tmp_path / "out")
