# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models over sharded domains in f64: their predictions, gradients and training steps are PyTorch's on 2 to 8 ranks, also where sizes do not divide and
where a rank has nothing."""
import functools
import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from conftest import BUILD, run, tool
from domain_models import conv_net, mesh_graph_net, neighbourhood_transformer, neural_operator, resnet
from exported import Exported, parts
from launchers import launch
from plans import places
from training import Trainee, difference

MODELS = {
    "operator-1d": lambda: neural_operator((21,), (5,)),
    "operator-2d": lambda: neural_operator((14, 11), (3, 4), pairs=True),
    "graph": mesh_graph_net,
    "graph-given": lambda: mesh_graph_net(given=True),
    "attention-masked": lambda: neighbourhood_transformer(masked=True),
    "attention-near": lambda: neighbourhood_transformer(masked=False),
    "convolutions": conv_net,
    "resnet50": lambda: resnet((65, 67), width=4, classes=7),
    "resnet-short": lambda: resnet((65, 67), blocks=(1, 1, 1), width=4, classes=7),
}
pytestmark = pytest.mark.xdist_group("domain models")  # each is exported once
TRAINED = ("convolutions",)  # whose norms take the statistics of the batch


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    @functools.cache
    def export(name):
        module, inputs = MODELS[name]()
        options = {"train": True} if name in TRAINED else {}
        return Exported(tmp_path_factory.mktemp(name), module.train(name in TRAINED), inputs, **options)
    return export


def predicted(axes):
    """A field that comes sharded, with its target, and is predicted so."""
    return f"input:*={axes}", f"output:1={axes}"


IMAGE = "input:x=h:S(2),w:S(3)"
NODES = "sp:S(1, sizes = [7, 3, 0, 12])"
CASES = [
    ("operator-1d", "sp=8", predicted("sp:S(2)")),
    ("operator-1d", "dp=2,sp=2", predicted("dp:S(0),sp:S(2)")),
    ("operator-2d", "sp=4", predicted("sp:S(2)")),
    ("operator-2d", "h=2,w=2", predicted("h:S(2),w:S(3)")),
    ("graph", "sp=4", predicted(NODES)),
    ("graph", "dp=2,sp=3", predicted("dp:S(0),sp:S(1)")),
    ("graph", "a=2,b=2", predicted("a:S(1),b:S(1)")),
    # The edges of the grid are shared out beside its nodes.
    ("graph-given", "sp=3", ("input:x=sp:S(1)", "input:target=sp:S(1)", "output:1=sp:S(1)", "input:up=sp:S(1)", "input:down=sp:S(1)")),
    ("attention-masked", "sp=3", predicted("sp:S(2)")),
    ("attention-masked", "h=2,w=2", predicted("h:S(2),w:S(3)")),
    ("attention-near", "sp=3", predicted("sp:S(2)")),
    ("attention-near", "h=2,w=2", predicted("h:S(2),w:S(3)")),
    ("convolutions", "sp=4", ("input:x=sp:S(2)",)),
    ("convolutions", "h=2,w=2", (IMAGE,)),
    ("convolutions", "dp=2,sp=2", ("input:*=dp:S(0)", "input:x=sp:S(2)")),
    ("resnet50", "dp=2,sp=2", ("input:*=dp:S(0)", "input:x=sp:S(2)")),
    ("resnet-short", "h=2,w=2", (IMAGE,)),
]


@pytest.mark.parametrize("name, mesh, plan", CASES)
def test_gradients(exported, name, mesh, plan):
    exported(name).run(mesh, *places(*plan))


@pytest.mark.parametrize("name, mesh, plan", [
    ("convolutions", "sp=4", ("input:x=sp:S(2)",)),
    ("convolutions", "h=2,w=2", (IMAGE,)),
    ("resnet50", "h=2,w=4", (IMAGE,)),
    ("attention-near", "sp=3", predicted("sp:S(2)")),
    ("convolutions", "sp=4", ("input:x=sp:S(2, sizes = [10, 0, 9, 18])",)),
    ("attention-near", "h=2,w=2", predicted("h:S(2),w:S(3)")),
])
def test_forwards_exchange_boundary_rows(exported, name, mesh, plan):
    """No image is gathered."""
    moved = exported(name).moved(mesh, *places(*plan))
    assert {"all_reduce", "all_to_all"} <= moved <= {"all_reduce", "all_to_all", "permute"}


OVER = ("dp=2,sp=2", *places(*predicted("dp:S(0),sp:S(2)")))


@pytest.mark.parametrize("kind", ["processes", "processes gloo", "mpirun mpi"])
def test_ranks_that_are_processes(exported, tmp_path, kind):
    model = exported("operator-1d")
    model.run(*OVER)  # as threads
    wanted = load_file(model.folder / "out.safetensors")
    launch(kind, model.folder / "m.so", "--entry", "gradients", "--weights", model.folder / "m.pt2", "--inputs", model.folder / "in.safetensors",
           "--outputs", tmp_path / "out.safetensors", "--timeout", 60)
    got = load_file(tmp_path / "out.safetensors")
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        model.compare(got[name], value, f"{name} on {kind}")


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
@pytest.mark.parametrize("name, mesh, plan", [("operator-1d", "sp=2", predicted("sp:S(2)")), ("convolutions", "sp=2", ("input:x=sp:S(2)",))])
def test_emulated_device(exported, monkeypatch, name, mesh, plan):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")
    exported(name).run(mesh, *places(*plan))


@pytest.mark.parametrize("name, mesh, plan, optimizer, settings", [
    ("operator-1d", "dp=2,sp=2", ("input:*=dp:S(0),sp:S(2)",), "adamw", {"weight_decay": 0.1}),
    ("convolutions", "h=2,w=2", (IMAGE,), "sgd", {"momentum": 0.9}),
])
def test_training_steps(tmp_path, name, mesh, plan, optimizer, settings):
    module, inputs = MODELS[name]()
    one = Trainee(tmp_path, "model", module, inputs, train=True)
    chosen = ["loss=0", f"optimizer={optimizer}", *(f"optimizer.{key}={value}" for key, value in settings.items())]
    one.compile(tmp_path / "m.so", "--mesh", mesh, *places(*plan), *(option for setting in chosen for option in ("--train", setting)))
    log, saved = one.train(tmp_path / "m.so")
    trained, _, losses, _ = one.pytorch(optimizer, **settings)
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9) and len(losses) == 5
    for key, parameter in trained.named_parameters():
        assert difference(saved[key], parts(parameter)) <= 1e-9, key


class Patches(nn.Module):
    def forward(self, x):
        return F.unfold(x, 3, padding=1).square().sum(1), F.fold(F.unfold(x, 4, stride=4), x.shape[2:], 4, stride=4)


def test_patches_exchange_boundary_rows(tmp_path):
    """`shardc export` keeps unfold and fold whole: one row comes from each side, and patches that do not overlap need none."""
    model = Exported(tmp_path, Patches(), {"x": torch.randn(1, 2, 64, 48, dtype=torch.float64)})
    plan = places("input:x=sp:S(2)")
    text = run(tool("shardc"), "explain", tmp_path / "m.pt2", "--mesh", "sp=4", *plan, "--format", "json").stdout
    assert [c["bytes_per_rank"] for c in json.loads(text)["collectives"]] == [2 * 2 * 48 * 8]
    model.run("sp=4", *plan)


def test_a_memory_limit_is_reported_once(exported, tmp_path):
    """Ranks with unlike parts of an image have programs of their own; the account is that of the one which needs most."""
    done = run(tool("shardc"), "compile", exported("convolutions").folder / "m.pt2", "--mesh", "h=2,w=2", *places(IMAGE), "--memory-limit", "1KiB",
               "-o", tmp_path / "m.so", check=False)
    assert done.returncode == 1 and done.stderr.count("'forward' needs") == 1 and "3 other ranks need more than the limit, too" in done.stderr, done.stderr
