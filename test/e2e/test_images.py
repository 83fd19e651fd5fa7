# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, pools and batch norm against PyTorch: whole models, and many single ops with odd arguments."""
import sys

import pytest
import torch
from safetensors.numpy import load_file, save_file

from conftest import ROOT
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


def test_one_reduction_a_block(totals):
    """Column-wise, then row-wise convolutions: batch norm and activation between them need nothing."""
    assert totals("resnet", "tp=2", *RESNET_TP) == {"all_reduce": 2}


def test_height_is_not_sharded(explain):
    report = explain("resnet", "tp=2", *places("input:x=tp:S(2)"))
    assert any("conv1" in r["module"] and "dim 2" in r["message"] for r in report["remarks"]), report["remarks"]
