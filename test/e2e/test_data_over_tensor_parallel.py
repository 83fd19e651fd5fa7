# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data parallelism over tensor parallelism: each rank reduces the gradients of its own shards, once, in buckets that start while the backward still
computes, and parameters keep their layouts. Losses, gradients and parameters are PyTorch's."""
import json
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from conftest import run, tool
from plans import places
from test_checkpoints import save
from test_training import check, train
from training import Trainee, difference

WIDTH, HIDDEN, CLASSES, ROWS = 7, 5, 3, 9
PLAN = places("input:*=dp:S(0)", "module:blocks.*.up=colwise", "module:blocks.*.down=rowwise", "module:head=colwise")
SHARDED = {"up.weight": 0, "up.bias": 0, "down.weight": 1, "head.weight": 0, "head.bias": 0}  # the dim that tp shards
MESHES = {"dp=2,tp=2": 2, "dp=3,tp=2": 2, "dp=2,tp=4": 4, "tp=3,dp=2": 3}


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.scale, self.unused = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(2))

    def forward(self, x):
        return x + self.scale * self.down(F.gelu(self.up(self.norm(x))))


class Nested(nn.Module):
    """Shards are uneven, and on 4 ranks some are empty; `first` and norms are on every rank, and `shift` is used twice."""

    def __init__(self, width=WIDTH, hidden=HIDDEN, classes=CLASSES, layers=2):
        super().__init__()
        self.first, self.shift = nn.Linear(4, width), nn.Parameter(torch.randn(width))
        self.blocks = nn.Sequential(*(Block(width, hidden) for _ in range(layers)))
        self.head = nn.Linear(width, classes)

    def forward(self, x, target):
        return F.mse_loss(self.head(self.blocks(self.first(x) + self.shift) * self.shift), target)


def trainee_of(folder, name, rows=ROWS, **sizes):
    torch.manual_seed(2)
    module = Nested(**sizes).double()
    inputs = {"x": torch.randn(rows, 4).double(), "target": torch.randn(rows, sizes.get("classes", CLASSES)).double()}
    return Trainee(folder, name, module, inputs)


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    return trainee_of(tmp_path_factory.mktemp("nested"), "nested")


def dim_of(name):
    return next((dim for suffix, dim in SHARDED.items() if name.endswith(suffix)), None)


def local_elements(name, parameter, tp):
    """Of the rank that has most."""
    if (dim := dim_of(name)) is None:
        return parameter.numel()
    rows = parameter.shape[dim]
    return parameter.numel() // rows * -(-rows // tp)


@pytest.mark.parametrize("mesh", MESHES)
def test_gradients_are_of_the_global_loss(nested, tmp_path, mesh):
    """A step of SGD with the rate 1 takes the gradient off: that of the mean over all rows, which no number of ranks divides."""
    program = tmp_path / "sgd.so"
    nested.compile(program, "--mesh", mesh, *PLAN, *train("loss=0", "optimizer=sgd"))
    _, saved = nested.train(program, steps=1, lr=1.0)
    batch = {k: v[0] for k, v in nested.batches.items()}
    names, parameters = zip(*nested.module.named_parameters())
    gradients = torch.autograd.grad(nested.module(**batch), parameters, allow_unused=True)
    for name, parameter, gradient in zip(names, parameters, gradients):
        got = parameter.detach() - saved[name]
        if gradient is None:
            assert name.endswith("unused") and torch.equal(saved[name], parameter), name
        else:
            assert difference(got, gradient) <= 1e-9, name


@pytest.mark.parametrize("mesh, zero", zip(MESHES, [0, 1, 1, 0]))
def test_parameters_keep_their_layouts(nested, tmp_path, mesh, zero):
    program, tp = tmp_path / "adamw.so", MESHES[mesh]
    nested.compile(program, "--mesh", mesh, *PLAN, *train("loss=0", "optimizer=adamw", f"zero={zero}"))
    log, saved = nested.train(program)
    save(nested, program, tmp_path / "sharded", "--weights", nested.source, steps=1)
    check(None, mesh, (), nested.pytorch("adamw"), log, saved)
    facts = json.loads(run(tool("shard-run"), "--manifest", program).stdout)
    parameters = {p["names"][0]: p for p in facts["parameters"]}
    step = next(e for e in facts["entries"] if e["name"] == "train_step")
    updated = {o["updates"]: o for o in step["outputs"] if "updates" in o}
    index = json.loads((tmp_path / "sharded/index.json").read_text())["tensors"]
    for name, parameter in nested.module.named_parameters():
        if not name.endswith("unused"):
            assert updated[name]["layout"] == parameters[name]["layout"], name
        assert name not in updated or not name.endswith("unused")
        dim, blocks = dim_of(name), index[name]["blocks"]
        want = [list(parameter.shape)]
        if dim is not None:
            rows = parameter.shape[dim]
            want = [[*parameter.shape[:dim], min(-(-rows // tp), rows - begin), *parameter.shape[dim + 1:]] for begin in range(0, rows, -(-rows // tp))]
        assert [b["shape"] for b in sorted(blocks, key=lambda b: b["begin"])] == want, name


@pytest.mark.parametrize("mesh", MESHES)
def test_each_shard_is_reduced_once(nested, mesh):
    """Over dp a rank moves 2 (n - 1) / n times the bytes of its own shards of what has a gradient, and some scalars: the loss and the number of its
    elements."""
    done = run(tool("shardc"), "explain", nested.source, "--mesh", mesh, *PLAN, *train("loss=0", "optimizer=adamw"), "--format", "json")
    report = json.loads(done.stdout)
    dp, tp = int(re.search(r"dp=(\d)", mesh)[1]), MESHES[mesh]
    over = [c for c in report["collectives"] if c["entry"] == "train_step" and c["group"] == "dp"]
    assert {c["kind"] for c in over} == {"all_reduce"}
    elements = sum(local_elements(n, p, tp) for n, p in nested.module.named_parameters() if not n.endswith("unused"))
    factor = 2 * (dp - 1) / dp * 8
    moved = sum(c["bytes_per_rank"] for c in over)
    assert elements * factor <= moved + len(over) and moved <= (elements + 2) * factor + len(over)


def test_buckets_start_within_the_backward(tmp_path):
    """Later blocks are reduced first, in buckets over several modules, and products of the backward follow the starts of most bytes."""
    layers, mib = 6, 0.0625
    # So many rows that reducing the gradients of weights moves less than gathering the activations.
    one = trainee_of(tmp_path, "deep", rows=2048, width=61, hidden=129, layers=layers)
    run(tool("shardc"), "compile", one.source, "--mesh", "dp=2,tp=2", *PLAN, *train("loss=0", "optimizer=adamw"), "--bucket-caps", mib, "--save-stages",
        tmp_path / "stages", "-o", tmp_path / "deep.so")
    text = (tmp_path / "stages/4-scheduled.mlir").read_text()
    body = text[text.index("func.func @train_step"):].split("\n  }\n")[0].splitlines()
    buckets, products, waits = [], [], []
    for at, line in enumerate(body):
        if re.search(r"= aten\.(matmul|tensordot) ", line):
            products.append(at)
        if re.search(r"= dist\.all_reduce sum over #dp %", line) and "backward = true" in line:
            modules = re.findall(r'module = "blocks\.(\d+)\.', line)
            size = int(re.search(r"bytes = (\d+)", line)[1])
            if modules:
                buckets.append((at, [int(m) for m in modules], size, re.search(r"(%\d+)(:\d+)? =", line)[1]))
    assert len(buckets) >= 4 and all(size <= mib * 2**20 for _, _, size, _ in buckets)
    assert any(len(set(modules)) > 1 for _, modules, _, _ in buckets), "a bucket has gradients of more than one module"
    # What the backward computes last of each bucket: from the last block to the first one.
    latest = [min(modules) for _, modules, _, _ in buckets]
    assert latest == sorted(latest, reverse=True) and latest[0] == layers - 1 and latest[-1] == 0
    remaining = [sum(p > at for p in products) for at, _, _, _ in buckets]
    within = [bucket for bucket, n in zip(buckets, remaining) if n > 0]
    assert remaining[0] > len(products) // 2, remaining
    assert sum(size for _, _, size, _ in within) > 0.8 * sum(size for _, _, size, _ in buckets), remaining
    # None is waited for where it starts.
    for at, _, _, name in within:
        wait = next(i for i, line in enumerate(body) if "dist.wait" in line and re.search(re.escape(name) + r"\b", line.split("dist.wait")[1]))
        assert any(at < p < wait for p in products), body[at]
