# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What changes is written where it was: bytes of a rank, steps that fail, and what is left of a model that is torn."""
import ctypes
import importlib
import json
import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from conftest import BUILD, ROOT, run, tool
from plans import places
from training import Trainee


class Wide(nn.Module):
    """Nearly all of it are weights."""

    def __init__(self, width, layers=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x.square().mean()


def memory_of(program, entry="train_step"):
    """What ranks need, which the cost model has predicted before there was a plan of memory."""
    manifest = json.loads(run(tool("shard-run"), program, "--manifest").stdout)
    described = next(e for e in manifest["entries"] if e["name"] == entry)
    most = max(sum(rank.values()) for rank in described["memory"])
    assert described["predicted"]["peak_bytes"] == pytest.approx(most, rel=0.1)
    return described["memory"]


@pytest.mark.parametrize("optimizer, mesh, zero, parameters, states", [
    ("adamw", "dp=1", 0, 1, 2), ("sgd", "dp=1", 0, 1, 0), ("adamw", "dp=2", 0, 1, 2), ("adamw", "dp=2", 1, 1, 1), ("adamw", "dp=2", 3, 1 / 2, 1)])
def test_bytes_of_a_rank(tmp_path, optimizer, mesh, zero, parameters, states):
    """Of parameters the times that the optimizer needs them, and no more; the run has what the manifest says."""
    trainee = Trainee(tmp_path, "wide", Wide(64), {"x": torch.randn(4, 64)}, count=2)
    program, weights = tmp_path / "m.so", 8 * 64 * 64 * 4
    trainee.compile(program, "--mesh", mesh, *places("input:*=dp:S(0)"), "--train", "loss=0", "--train", f"optimizer={optimizer}", "--train", f"zero={zero}")
    step = 8  # the number of steps
    for rank in memory_of(program):
        assert rank["parameter_bytes"] == parameters * weights
        assert rank["state_bytes"] == states * weights + step
    save_file({"x": torch.randn(4, 64), "learning_rate": torch.tensor(1e-3, dtype=torch.float64)}, tmp_path / "in.safetensors")
    done = run(tool("shard-run"), program, "--weights", trainee.source, "--entry", "train_step", "--inputs", tmp_path / "in.safetensors", "--steps", 2,
               "--format", "json")
    used = json.loads(done.stdout)["peak_memory_of_a_rank"]
    assert used["parameter_bytes"] == rank["parameter_bytes"] + rank["state_bytes"]
    assert rank["arena_bytes"] <= used["arena_bytes"] < rank["arena_bytes"] + 8192


@pytest.mark.parametrize("zero", (0, 1, 3))
def test_buckets_copy_nothing(tmp_path, zero):
    """Gradients that are reduced together, and parameters that are gathered together, are read and written where they are."""
    trainee = Trainee(tmp_path, "deep", Wide(128), {"x": torch.randn(4, 128)}, count=1)
    done = run(tool("shardc"), "compile", trainee.source, "--mesh", "dp=2", *places("input:*=dp:S(0)"), "--train", "loss=0", "--train", "optimizer=adamw",
               "--train", f"zero={zero}", "--pass-statistics", "-o", tmp_path / "m.so")
    counted = {name: int(count) for count, name in re.findall(r"\(S\)\s+(\d+) (\S+)", done.stdout + done.stderr)}
    assert counted["grouped"] >= 1 and counted["in-place-launches"] >= 1
    assert not counted.keys() & {"copied-bytes", "copied-updates"}


RESIDENT = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def resident(*command):
    """Most bytes that a process had in memory. Before it runs a program it has those of its parent, which is a small one therefore."""
    return int(run(sys.executable, "-S", "-c", RESIDENT, *command).stdout)


def test_resident_memory(tmp_path):
    """What the manifest says is what the process takes, but for what it takes of itself."""
    taken, predicted = [], []
    for width in (64, 1024):
        trainee = Trainee(tmp_path, f"w{width}", Wide(width), {"x": torch.randn(4, width)}, count=2)
        program = tmp_path / f"m{width}.so"
        trainee.compile(program, "--mesh", "dp=1", "--train", "loss=0", "--train", "optimizer=adamw")
        predicted.append(sum(memory_of(program)[0].values()))
        taken.append(resident(tool("shard-run"), program, "--weights", trainee.source, "--batches", trainee.file, "--steps", 3, "--lr", 1e-3, "--log",
                              tmp_path / "log"))
    assert (taken[1] - taken[0]) == pytest.approx(predicted[1] - predicted[0], rel=0.1)


def examples(monkeypatch):
    """train.py and run.py of runtime/examples. Other tests of this process may have modules of these names, and keep them."""
    monkeypatch.setenv("SHARDRT", str(BUILD / "lib/libshardrt.so"))
    monkeypatch.syspath_prepend(str(ROOT / "runtime/examples"))
    kept = {name: sys.modules.pop(name, None) for name in ("run", "train")}
    train, run_example = importlib.import_module("train"), importlib.import_module("run")
    for name, old in kept.items():
        if old:
            sys.modules[name] = old
        else:
            del sys.modules[name]
    return train, run_example


class Table(nn.Module):
    """Bad positions are found in the forward, before anything is written."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids):
        self.calls += 1
        return self.table(ids).square().mean()


def test_a_step_that_fails_changes_nothing(tmp_path, monkeypatch):
    train, _ = examples(monkeypatch)
    trainee = Trainee(tmp_path, "table", Table(), {"ids": torch.arange(6)}, count=2, train=True)
    program = tmp_path / "m.so"
    trainee.compile(program, "--mesh", "dp=1", "--train", "loss=0", "--train", "optimizer=adamw")

    def weights(ids):
        world = train.World(str(program), str(trainee.source))
        for each in ids:
            try:
                world.run("train_step", ids=np.array(each, np.int64), learning_rate=np.array(0.1))
            except Exception as error:
                assert "out of range" in str(error)
                assert 99 in each
            else:
                assert 99 not in each
        world.save(str(tmp_path / "c"))
        world.close()
        return (tmp_path / "c").read_bytes()

    good, bad = [[0, 1, 2, 3, 4, 9], [5, 5, 5, 6, 7, 0]], [1, 2, 3, 99, 4, 5]
    assert weights(good) == weights([good[0], bad, bad, good[1]])


class Positions(nn.Module):
    """The position is bad when it has been written."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(2, 6)
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.position += 1
        return (self.table(self.position) * x).square().mean()


def test_torn_until_a_checkpoint_is_loaded(tmp_path, monkeypatch):
    """Of parameters, buffers and states nothing can be read or set, and nothing that cannot be loaded heals."""
    train, example = examples(monkeypatch)
    trainee = Trainee(tmp_path, "positions", Positions(), {"x": torch.ones(6)}, count=2, train=True)
    program = tmp_path / "m.so"
    trainee.compile(program, "--mesh", "dp=1", "--train", "loss=0", "--train", "optimizer=adamw")
    world = train.World(str(program), str(trainee.source))

    def step():
        return float(world.run("train_step", x=np.ones(6, np.float32), learning_rate=np.array(0.1))["mean"])

    def of(function, name):
        value = np.full((), 7, np.int64)
        world.each(lambda rank: example.check(function, rank.model, name.encode(), ctypes.byref(example.tensor(value, example.GLOBAL))))
        return int(value)

    def load(function, path):
        world.each(lambda rank: example.check(function, rank.model, str(path).encode()))

    lib, saved = example.lib, tmp_path / "saved"
    world.save(str(saved))
    loss = step()
    with pytest.raises(RuntimeError, match="out of range"):
        step()
    for healer, path in [(None, None), (lib.shardrt_resume, trainee.source), (lib.shardrt_load_parameters_file, tmp_path / "no")]:
        if healer:
            with pytest.raises(RuntimeError, match=str(path)):
                load(healer, path)
        for action in [step, lambda: world.save(str(tmp_path / "torn")), *(lambda f=f, n=n: of(f, n) for f in (lib.shardrt_get_state, lib.shardrt_set_state)
                                                                        for n in ("position", "train.step"))]:
            with pytest.raises(RuntimeError, match="begun to change parameters.*load a checkpoint"):
                action()
    assert not (tmp_path / "torn").exists()
    for healer, path in [(lib.shardrt_resume, saved), (lib.shardrt_load_parameters_file, trainee.source)]:
        load(healer, path)
        assert of(lib.shardrt_get_state, "position") == of(lib.shardrt_get_state, "train.step") == 0
        assert step() == loss
    world.close()
