# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training by compiled programs: losses, parameters and the optimizer's states are PyTorch's, on several meshes and in every
mode of the plan."""
import copy
import functools
import json
import resource
import signal

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import run, tool
from plans import places
from test_model_gradients import BUILDER
from training import Trainee, difference, rounding_of_norms


class Towers(nn.Module):
    """Odd sizes, a parameter that nothing uses, one that is used twice, frozen ones, a bias that every rank has whole, and empty shards."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 11), nn.Linear(11, 3)
        self.inner = nn.ModuleDict({"norm": nn.LayerNorm(11), "scale": nn.Linear(11, 11, bias=False)})
        self.unused, self.frozen = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(11))
        self.tiny = nn.Parameter(torch.randn(1))

    def forward(self, x, target):
        h = F.gelu(self.first(x)) * self.frozen
        h = self.inner["scale"](self.inner["norm"](self.inner["scale"](h))) * self.tiny
        return F.mse_loss(self.second(h), target), h


@functools.cache
def models():
    space = {}
    exec(BUILDER, space)
    return space["make"]


@pytest.fixture(scope="module")
def trainee(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")

    @functools.cache
    def make(kind):
        if kind == "towers":
            torch.manual_seed(3)
            module, inputs = Towers(), {"x": torch.randn(9, 7), "target": torch.randn(9, 3)}
        else:
            module, inputs = models()(kind)
        inputs = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
        return Trainee(folder, kind, module.double(), inputs)
    make.folder = folder
    return make


DP = places("input:*=dp:S(0)")
BOTH = ("--mesh", "dp=2,tp=2", *DP)
TOWERS_TP = places("module:first=colwise", "module:second=rowwise")


def train(*settings):
    return [option for setting in settings for option in ("--train", setting)]


def check(trainee, name, options, reference, log, saved, tolerance=1e-5):
    module, optimizer, losses, norms = reference
    for got, want in zip(log, losses, strict=True):
        assert abs(got["loss"] - want) <= tolerance * max(abs(want), 1e-6), (got, want)
    for got, want in zip(log, norms):
        assert abs(got["grad_norm"] - want) <= tolerance * want
    parameters = dict(module.named_parameters())
    states = 0
    for key, parameter in parameters.items():
        if key not in saved:
            assert parameter.grad is None, f"{key} is not in the checkpoint"
            continue
        assert difference(saved[key], parameter) <= tolerance, f"{name}: {key}"
        for kind, value in optimizer.state.get(parameter, {}).items():
            if value is not None and kind != "step":
                states += 1
                assert difference(saved[f"optimizer.{kind}.{key}"], value) <= tolerance, f"{name}: {kind} of {key}"
    assert int(saved["train.step"]) == len(log)
    return states


OPTIMIZERS = {
    "sgd": ({}, []),
    "sgd-decay": (dict(weight_decay=0.1, maximize=True), ["optimizer.weight_decay=0.1", "optimizer.maximize=true"]),
    "sgd-momentum": (dict(momentum=0.9, dampening=0.3, weight_decay=0.05),
                     ["optimizer.momentum=0.9", "optimizer.dampening=0.3", "optimizer.weight_decay=0.05"]),
    "sgd-nesterov": (dict(momentum=0.8, nesterov=True), ["optimizer.momentum=0.8", "optimizer.nesterov=true"]),
    "adam": (dict(weight_decay=0.1, betas=(0.8, 0.95), eps=1e-6),
             ["optimizer.weight_decay=0.1", "optimizer.betas=[0.8,0.95]", "optimizer.eps=1e-6"]),
    "adam-amsgrad": (dict(amsgrad=True), ["optimizer.amsgrad=true"]),
    "adamw": (dict(weight_decay=0.2), ["optimizer.weight_decay=0.2"]),
    "adamw-amsgrad": (dict(amsgrad=True, maximize=True), ["optimizer.amsgrad=true", "optimizer.maximize=true"]),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(trainee, name):
    numbers, settings = OPTIMIZERS[name]
    one = trainee("towers")
    kind = name.split("-")[0]
    program = trainee.folder / f"towers-{name}.so"
    one.compile(program, *BOTH, *TOWERS_TP, *train("loss=0", f"optimizer={kind}", *settings))
    log, saved = one.train(program)
    states = check(one, name, (), one.pytorch(kind, **numbers), log, saved)
    assert states == {"sgd": 0, "sgd-decay": 0, "sgd-momentum": 9, "sgd-nesterov": 9, "adam-amsgrad": 27, "adamw-amsgrad": 27}.get(name, 18)


MODES = {
    "zero1": (["zero=1"], {}),
    "zero2-micro": (["zero=2", "micro_batches=2"], dict(micro_batches=2)),
    "zero3-norm": (["zero=3", "clip_norm=0.5"], dict(clip=0.5)),
    "micro-sum": (["micro_batches=4", "accumulation=sum"], dict(micro_batches=4, mean=False)),
    "zero1-micro-norm-skip": (["zero=1", "micro_batches=2", "clip_norm=0.3", "non_finite=skip"], dict(micro_batches=2, clip=0.3)),
    "value": (["clip_value=0.01", "non_finite=stop"], dict(clip_value=0.01)),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes(trainee, mode):
    settings, keywords = MODES[mode]
    one = trainee("towers")
    program = trainee.folder / f"towers-{mode}.so"
    reference = one.pytorch("adamw", **keywords)
    for mesh, plan in [(("--mesh", "dp=3"), DP), (("--mesh", "dp=2,tp=2"), (*DP, *TOWERS_TP)), (("--mesh", "dp=1"), ())]:
        one.compile(program, *mesh, *plan, *train("loss=0", "optimizer=adamw", *settings))
        log, saved = one.train(program)
        check(one, f"{mode} on {mesh[1]}", (), reference, log, saved)
        assert all(not line.get("skipped", False) for line in log)


class NormedPair(nn.Module):
    """Under sequence parallelism the gradients of norms are sums over tp too, also from one micro-batch to the next."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.last = nn.LayerNorm(6), nn.Linear(6, 8), nn.Linear(8, 6), nn.LayerNorm(6)

    def forward(self, x, target):
        return F.mse_loss(self.last(x + self.down(F.gelu(self.up(self.norm(x))))), target)


@pytest.mark.parametrize("mode", ["micro-sum", "zero2-micro", "zero1-micro-norm-skip"])
def test_sequence_parallel_micro_batches(tmp_path, mode):
    settings, keywords = MODES[mode]
    torch.manual_seed(4)
    one = Trainee(tmp_path, "normed", NormedPair().double(), {"x": torch.randn(4, 5, 6).double(), "target": torch.randn(4, 5, 6).double()})
    plan = places("module:{norm,last}=sequence", "module:up=colwise", "module:down=rowwise")
    one.compile(tmp_path / "m.so", *BOTH, *plan, *train("loss=0", "optimizer=adamw", *settings))
    log, saved = one.train(tmp_path / "m.so")
    check(one, mode, (), one.pytorch("adamw", **keywords), log, saved)


PLANS = {"mse": places("module:first=colwise", "module:second=rowwise"),
         "gpt2": places("module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise", "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise"),
         "llama": places("module:*layers.*.self_attn.{q,k,v}_proj=colwise", "module:*layers.*.self_attn.o_proj=rowwise"),
         "minilm": places("module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise"), "image": ()}


@pytest.mark.parametrize("kind, settings, keywords", [
    ("mse", ["zero=1"], {}), ("gpt2", ["zero=3", "clip_norm=1"], dict(clip=1.0)), ("llama", ["zero=2", "micro_batches=2"], dict(micro_batches=2)),
    ("minilm", ["zero=1"], {}), ("image", ["zero=1", "clip_norm=1"], dict(clip=1.0))])
def test_models(trainee, kind, settings, keywords, monkeypatch):
    one = trainee(kind)
    reference = one.pytorch("adamw", lr=1e-3, **keywords)
    tolerance = max(1e-5, 2 * rounding_of_norms(one, reference, monkeypatch, keywords)) if kind == "llama" else 1e-5
    program = trainee.folder / f"{kind}.so"
    one.compile(program, *BOTH, *PLANS[kind], *train("loss=0", "optimizer=adamw", *settings))
    log, saved = one.train(program, lr=1e-3)
    check(one, kind, (), reference, log, saved, tolerance)


def test_recomputation(trainee):
    """Layers whose forward runs again, and weights that are gathered again, although the step updates them: PyTorch's answers with a smaller
    arena."""
    one = trainee("gpt2")
    programs = [trainee.folder / "kept.so", trainee.folder / "again.so"]
    for program, options in zip(programs, ((), ("--recompute", "*.h.*", "--reshard-after-forward", "true"))):
        one.compile(program, *BOTH, *PLANS["gpt2"], *train("loss=0", "optimizer=adamw", "zero=3"), *options)
    kept, again = (json.loads(run(tool("shard-run"), program, "--manifest").stdout) for program in programs)
    arenas = [max(rank["arena_bytes"] for e in manifest["entries"] if e["name"] == "train_step" for rank in e["memory"]) for manifest in (kept, again)]
    assert arenas[1] < 0.95 * arenas[0]
    log, saved = one.train(programs[1], lr=1e-3)
    check(one, "again", (), one.pytorch("adamw", lr=1e-3), log, saved)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_schedules(trainee, schedule):
    one, steps, warmup, peak, final = trainee("mse"), 9, 3, 0.05, 0.01
    program = trainee.folder / f"schedule-{schedule}.so"
    one.compile(program, "--mesh", "dp=1", *train("loss=0", "optimizer=sgd"))
    log, _ = one.train(program, "--schedule", schedule, "--warmup", warmup, "--final-lr", final, steps=steps, lr=peak)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=peak)
    schedulers = torch.optim.lr_scheduler
    behind = {"constant": lambda: schedulers.ConstantLR(optimizer, 1.0, 1), "cosine": lambda: schedulers.CosineAnnealingLR(optimizer, steps - warmup, final),
              "linear": lambda: schedulers.LinearLR(optimizer, 1.0, final / peak, steps - warmup)}[schedule]()
    both = schedulers.SequentialLR(optimizer, [schedulers.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1), behind], [warmup])
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        both.step()
    assert [line["learning_rate"] for line in log] == pytest.approx(rates, rel=1e-12)
    assert [line["step"] for line in log] == list(range(1, steps + 1))
    _, _, losses, _ = one.pytorch("sgd", steps=steps, rate=lambda step: rates[step])
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-9)


def test_resumed_on_another_mesh(trainee, tmp_path):
    """Half of the steps on one mesh, the others on another with another ZeRO: the same curve. The checkpoint is weights as well."""
    one, whole, half = trainee("towers"), tmp_path / "whole.so", tmp_path / "half.so"
    one.compile(whole, *BOTH, *TOWERS_TP, *train("loss=0", "optimizer=adamw", "zero=1"))
    one.compile(half, "--mesh", "dp=3", *DP, *train("loss=0", "optimizer=adamw", "zero=3"))
    log, want = one.train(whole, "--save-every", 2, steps=6)
    first, _ = one.train(half, steps=3)
    halfway = half.with_suffix(".checkpoint.safetensors").rename(tmp_path / "halfway.safetensors")
    for options in [(), ("--processes",)]:
        rest, got = one.train(whole, "--resume", halfway, *options, steps=6, weights=False)
        assert [line["loss"] for line in first + rest] == pytest.approx([line["loss"] for line in log], rel=1e-10)
        assert [line["step"] for line in rest] == [4, 5, 6]
        assert got.keys() == want.keys()
        assert all(difference(got[key], want[key]) <= 1e-9 for key in want)
    forward = tmp_path / "forward.so"
    one.compile(forward, "--mesh", "dp=1")
    save_file(one.inputs, tmp_path / "in")
    run(tool("shard-run"), forward, "--weights", halfway, "--inputs", tmp_path / "in", "--outputs", tmp_path / "out")
    module = copy.deepcopy(one.module)
    missing = module.load_state_dict(load_file(halfway), strict=False).missing_keys
    assert set(missing) <= {"unused"}
    assert difference(load_file(tmp_path / "out")[list(load_file(tmp_path / "out"))[0]], module(**one.inputs)[0]) <= 1e-12
    late = one.train(whole, "--resume", halfway, steps=3, weights=False, check=False)
    assert late.returncode == 1 and f"the checkpoint {halfway} is of step 3 already: --steps 3 counts" in late.stderr


def small_files():
    """In a process that is started: files end at 4096 bytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_checkpoints_that_do_not_fit(trainee, tmp_path):
    one, other = trainee("towers"), trainee("mse")
    program, adam = tmp_path / "one.so", tmp_path / "other.so"
    one.compile(program, "--mesh", "dp=2", *DP, *train("loss=0", "optimizer=adamw"))
    other.compile(adam, "--mesh", "dp=1", *train("loss=0", "optimizer=sgd"))
    _, saved = one.train(program, steps=1)
    _, _ = other.train(adam, steps=1)
    good = program.with_suffix(".checkpoint.safetensors").read_bytes()

    def refuse(path, *words, folder=tmp_path):
        done = one.train(program, "--resume", path, weights=False, check=False)
        assert done.returncode == 1
        for word in words:
            assert word in done.stderr, done.stderr
    refuse(adam.with_suffix(".checkpoint.safetensors"), "first.weight: it is f64[20, 12], expected f64[11, 7]",
           "optimizer.exp_avg.first.weight: missing, expected f64[11, 7]", "tiny: missing")
    (tmp_path / "torn").write_bytes(good[:-9])
    refuse(tmp_path / "torn", "lies outside the file")
    save_file({k: v for k, v in saved.items() if k.startswith(("first", "second", "inner", "tiny", "frozen"))}, tmp_path / "weights")
    refuse(tmp_path / "weights", "it is no checkpoint of a training", "train.step: missing")
    refuse(one.source, "it is no checkpoint of a training")
    with safe_open(program.with_suffix(".checkpoint.safetensors"), "pt") as file:
        notes = file.metadata()
    save_file({k: v for k, v in saved.items() if k != "optimizer.exp_avg.tiny"}, tmp_path / "lacking", notes)
    refuse(tmp_path / "lacking", "lacking: optimizer.exp_avg.tiny: missing, expected f64[1]")
    # A disk that is full: the old checkpoint stays.
    program.with_suffix(".checkpoint.safetensors").write_bytes(good)
    done = one.train(program, check=False, preexec_fn=small_files)
    assert done.returncode == 1 and "cannot write the checkpoint: no room for" in done.stderr
    assert program.with_suffix(".checkpoint.safetensors").read_bytes() == good
    assert not list(tmp_path.glob("*.tmp*"))


def test_non_finite_steps(trainee, tmp_path):
    """The third batch has a value that is not finite."""
    one = trainee("towers")
    batches = {k: v.clone() for k, v in one.batches.items()}
    batches["x"][2, 0, 0] = float("inf")
    save_file(batches, tmp_path / "batches")
    for mode in ("skip", "stop", "continue"):
        program = tmp_path / f"{mode}.so"
        one.compile(program, *BOTH, *TOWERS_TP, *train("loss=0", "optimizer=adamw", "zero=1", f"non_finite={mode}"))
        done = one.train(program, "--batches", tmp_path / "batches", check=False, file=False)
        log = [json.loads(line) for line in program.with_suffix(".log").read_text().splitlines()]
        if mode == "stop":
            assert done.returncode == 1 and "step 3: the loss or a gradient is not finite" in done.stderr and len(log) == 3
            assert not program.with_suffix(".checkpoint.safetensors").exists()
            continue
        assert done.returncode == 0, done.stderr
        assert log[2]["loss"] is None
        saved = load_file(program.with_suffix(".checkpoint.safetensors"))
        if mode == "continue":
            assert log[4]["loss"] is None and int(saved["train.step"]) == 5
            continue
        assert [line["skipped"] for line in log] == [False, False, True, False, False] and int(saved["train.step"]) == 4
        # A training that goes on behind a step that was skipped takes the next batches.
        halfway = tmp_path / "halfway"
        one.train(program, "--batches", tmp_path / "batches", "--save", halfway, file=False, steps=3)
        rest, again = one.train(program, "--batches", tmp_path / "batches", "--resume", halfway, file=False, weights=False)
        assert [line["loss"] for line in rest] == pytest.approx([line["loss"] for line in log[3:]], rel=1e-12)
        assert all(difference(again[k], saved[k]) <= 1e-12 for k in saved)
        skipping = copy.copy(one)
        skipping.batches = {k: v[[0, 1, 3, 4]] for k, v in batches.items()}
        module, _, losses, _ = skipping.pytorch("adamw", steps=4)
        assert [line["loss"] for line in log if not line["skipped"]] == pytest.approx(losses, rel=1e-9)
        assert all(difference(saved[k], p) <= 1e-9 for k, p in module.named_parameters() if k in saved)


def test_groups_and_frozen_parameters(trainee, tmp_path):
    one, program = trainee("towers"), tmp_path / "groups.so"
    (tmp_path / "plan.yaml").write_text("""mesh: {dp: 2, tp: 2}
inputs: {"*": {dp: "S(0)"}}
train:
  loss: 0
  frozen: ["inner.*", "frozen"]
  optimizer:
    name: adamw
    weight_decay: 0.3
    groups:
      - {parameters: ["*.bias"], weight_decay: 0, learning_rate_scale: 0.5}
""")
    one.compile(program, "--plan", tmp_path / "plan.yaml")
    log, saved = one.train(program)

    def groups(named):
        for name, parameter in named.items():
            parameter.requires_grad_(not name.startswith("inner") and name != "frozen")
        return [{"params": [p for n, p in named.items() if not n.endswith("bias")], "weight_decay": 0.3},
                {"params": [p for n, p in named.items() if n.endswith("bias")], "weight_decay": 0.0, "lr": 0.5e-2}]
    reference = one.pytorch("adamw", groups=groups)
    check(one, "groups", (), reference, log, saved)
    assert not any(key.startswith("optimizer.exp_avg.inner") for key in saved)


def test_refused_options(trainee, tmp_path):
    one, program = trainee("towers"), tmp_path / "refused.so"
    one.compile(program, "--mesh", "dp=2", *DP, *train("loss=0", "optimizer=sgd", "micro_batches=3"))
    odd = {k: v[:4] for k, v in one.batches.items()}
    odd["x"] = odd["x"][:2]
    save_file(odd, tmp_path / "odd")
    done = run(tool("shard-run"), program, "--weights", one.source, "--batches", tmp_path / "odd", "--lr", 1, check=False)
    assert "there are 2 batches, which is no positive multiple of the 3 micro-batches of a step" in done.stderr
    assert "target has 4 batches, another input has 2" in done.stderr
    done = run(tool("shard-run"), program, "--weights", one.source, "--resume", "x", "--save-every", 2, "--warmup", 3, "--local", "--batches", tmp_path / "odd",
               check=False)
    for words in ["exclude each other", "--save-every needs --save", "--batches needs the learning rate", "--warmup is 3, but there are 1", "leave out --local"]:
        assert words in done.stderr
    # Files that do not fit, by input.
    x, target = one.batches["x"][:6], one.batches["target"][:6]
    for bad, words in [({"x": x[..., :5].contiguous(), "target": target.float()}, ["dim 1 of input x is 5, expected 7", "input target: it is f32[9, 3]"]),
                       ({"x": x[:, 0].contiguous(), "target": target}, ["--batches: x has 2 dims, expected 3"]),
                       ({"x": x, "targets": target}, ["train_step has no input targets; its inputs are x, target\n", "no file for these inputs of train_step: target"]),
                       ({"x": x[:0], "target": target[:0]}, ["there are 0 batches"])]:
        save_file(bad, tmp_path / "bad")
        done = run(tool("shard-run"), program, "--weights", one.source, "--batches", tmp_path / "bad", "--lr", 1, check=False)
        assert done.returncode == 1 and all(word in done.stderr for word in words), done.stderr
    plain = tmp_path / "plain.so"
    one.compile(plain, "--mesh", "dp=1")
    done = run(tool("shard-run"), plain, "--weights", one.source, "--batches", tmp_path / "odd", "--lr", 1, check=False)
    assert "the program does not train" in done.stderr


class Normed(nn.Module):
    """Norms behind products without a bias, whose gradient would be rounding errors alone."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 10, bias=False), nn.Linear(10, 3, bias=False)
        self.norm, self.mean = nn.BatchNorm1d(10), nn.BatchNorm1d(3, momentum=0.4, affine=False)

    def forward(self, x, target):
        return F.mse_loss(self.mean(self.second(F.relu(self.norm(self.first(x))))), target)


@pytest.mark.parametrize("mesh, plan", [("dp=2", DP), ("dp=4", DP), ("dp=2,tp=2", (*DP, *TOWERS_TP)), ("dp=1", ())], ids=["dp2", "dp4", "dp2-tp2", "one"])
def test_batch_norm(trainee, tmp_path, mesh, plan):
    """9 rows on 4 ranks: the statistics are those of the whole batch wherever its rows are."""
    torch.manual_seed(7)
    inputs = {"x": torch.randn(9, 7).double() * 2 + 1, "target": torch.randn(9, 3).double()}
    one, program = Trainee(tmp_path, "normed", Normed().double(), inputs, train=True), tmp_path / "normed.so"
    one.compile(program, "--mesh", mesh, *plan, *train("loss=0", "optimizer=adamw", "zero=1"))
    log, saved = one.train(program)
    reference = one.pytorch("adamw")
    check(one, f"batch norm on {mesh}", (), reference, log, saved)
    for name, buffer in reference[0].named_buffers():
        assert saved[name].dtype == buffer.dtype and difference(saved[name], buffer) <= 1e-9, name
