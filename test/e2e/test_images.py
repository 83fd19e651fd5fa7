# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, pools and batch norm against PyTorch: whole models, and many single ops with odd arguments."""
import sys

import pytest
import torch
from safetensors.numpy import load_file, save_file

from conftest import ROOT, run, tool
from plans import DATA_PARALLEL, REPLICATED_OUTPUT, places

sys.path.insert(0, str(ROOT / "test/models"))
import builders

RESNET_TP = places("module:layers.*.conv1=colwise", "module:layers.*.conv2=rowwise")
# Groups are channels of the activation too, so styles do not apply to them.
IMAGES_TP = places("param:grouped.weight=tp:S(0)", "module:pointwise=rowwise")
# Not layers.12: three groups are not for two ranks.
CASES_TP = places("module:layers.{0,20}=colwise", "param:layers.{8,16}.weight=tp:S(0)")


@pytest.mark.parametrize("mesh,plan", [
    ("tp=1", []), ("dp=2", DATA_PARALLEL), ("dp=4", DATA_PARALLEL), ("tp=2", RESNET_TP), ("tp=3", RESNET_TP),
    ("dp=2,tp=2", DATA_PARALLEL + RESNET_TP)])
@pytest.mark.parametrize("name", ["resnet", "resnet_odd"])
def test_resnet(compile_model, tmp_path, name, mesh, plan):
    compile_model(name, mesh, *plan, *REPLICATED_OUTPUT).run(tmp_path)


@pytest.mark.parametrize("mesh,plan", [("tp=1", []), ("dp=2", DATA_PARALLEL), ("tp=2", IMAGES_TP), ("tp=3", IMAGES_TP)])
def test_images(compile_model, tmp_path, mesh, plan):
    compile_model("images", mesh, *plan, *REPLICATED_OUTPUT).run(tmp_path)


@pytest.mark.parametrize("mesh,plan", [("tp=1", []), ("dp=2", DATA_PARALLEL), ("tp=2", CASES_TP)])
def test_every_argument(compile_model, tmp_path, mesh, plan):
    compile_model("image_cases", mesh, *plan, *REPLICATED_OUTPUT).run(tmp_path)


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_symbolic_batch(compile_model, tmp_path, batch):
    program = compile_model("resnet_dynamic", "dp=2", *DATA_PARALLEL, *REPLICATED_OUTPUT)
    module, kwargs = builders.resnet(batch=batch)
    inputs = tmp_path / "in.safetensors"
    save_file({k: v.numpy() for k, v in kwargs.items()}, inputs)
    with torch.no_grad():
        want = module(**kwargs).numpy()
    (name,) = load_file(program.source.outputs)
    program.run(tmp_path, inputs=inputs, expected={name: want})


class Lines(torch.nn.Module):
    """Convolutions along one dim, each with its own arguments."""
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Conv1d(6, 8, 3)
        self.strided = torch.nn.Conv1d(8, 10, 4, stride=2, padding=3, groups=2, bias=False)
        self.same = torch.nn.Conv1d(10, 7, 5, padding="same", dilation=2)
        self.down = torch.nn.Conv1d(7, 4, 1)

    def forward(self, x):
        return self.down(torch.relu(self.same(self.strided(torch.relu(self.up(x))))))


@pytest.mark.parametrize("decomposed", [False, True], ids=["conv1d", "convolution"])
@pytest.mark.parametrize("mesh,plan", [("tp=1", []), ("dp=2,tp=2", ["--place", "input:x=dp:S(0)", "--place", "module:up=colwise"])])
def test_convolutions_along_one_dim(tmp_path, mesh, plan, decomposed):
    torch.manual_seed(0)
    model, x = Lines().eval(), torch.randn(4, 6, 29)
    exported = torch.export.export(model, (x,))
    torch.export.save(exported.run_decompositions() if decomposed else exported, tmp_path / "m.pt2")
    save_file({"x": x.numpy()}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", mesh, *plan, "--place", "output:0=R", "-o", tmp_path / "m.so")
    run(tool("shard-run"), "-n", 4 if plan else 1, tmp_path / "m.so", "--weights", tmp_path / "m.pt2", "--inputs",
        tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    (got,), want = load_file(tmp_path / "out.safetensors").values(), model(x).detach().numpy()
    assert got.shape == want.shape and abs(got - want).max() <= 1e-5 * abs(want).max()


def test_one_reduction_a_block(totals):
    """Column-wise, then row-wise convolutions: batch norm and activation between them need nothing."""
    assert totals("resnet", "tp=2", *RESNET_TP) == {"all_reduce": 2}


@pytest.mark.parametrize("mesh", ["tp=2", "tp=3"])
@pytest.mark.parametrize("name", ["resnet", "resnet_odd"])
def test_sharded_height(compile_model, totals, tmp_path, name, mesh):
    """Rows near the borders are exchanged, no image is gathered, and the pool at the end is a sum."""
    plan = places("input:x=tp:S(2)")
    compile_model(name, mesh, *plan, *REPLICATED_OUTPUT).run(tmp_path)
    assert {"all_reduce"} <= set(totals(name, mesh, *plan, *REPLICATED_OUTPUT)) <= {"all_reduce", "all_to_all", "permute"}
