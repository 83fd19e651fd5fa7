# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that the program makes: a model that was exported without weights trains with the same values on every mesh, PyTorch goes on from
them with the same losses, and they are distributed as the plan says."""
import json
import math
import os
import re
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import BUILD, ROOT, run, tool
from training import difference

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402
import shardc_meta  # noqa: E402

MODEL = '''
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """Odd sizes, a tied table, a buffer that the program has, buffers that steps change, and a constant of the forward."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(13, 6), nn.LayerNorm(6), nn.Linear(6, 13, bias=False)
        self.up, self.down = nn.Linear(6, 10), nn.Linear(10, 6)
        self.batch = nn.BatchNorm1d(6)
        self.head.weight = self.table.weight
        self.register_buffer("scale", torch.arange(6) + 1.0, persistent=False)

    def forward(self, ids, target):
        h = self.table(ids) * self.scale / torch.tensor(3.0)
        h = self.batch(h.transpose(1, 2)).transpose(1, 2)
        h = h + self.down(F.gelu(self.up(self.norm(h))))
        return F.cross_entropy(self.head(h).flatten(0, 1), target.flatten())


def build():
    return Model(), (torch.zeros(8, 5, dtype=torch.long), torch.zeros(8, 5, dtype=torch.long))
'''

PLAN = """
inputs: {"*": {dp: "S(0)"}}
modules: {up: colwise, down: rowwise}
parameters: {"table.weight": {tp: "S(1)"}}
train:
  loss: 0
  optimizer: {name: adamw, weight_decay: 0.1}
  init:
    - {parameters: ["norm.weight", "batch.{weight,running_var}"], distribution: ones}
    - {parameters: ["norm.bias", "batch.*"], distribution: zeros}
    - {parameters: head.weight, distribution: normal, std: 0.5}
    - {parameters: "up.weight", distribution: kaiming_uniform, a: 2.23606797749979}
    - {parameters: "down.weight", distribution: truncated_normal, std: 0.4, a: -0.5, b: 0.7}
    - {parameters: "*.bias", distribution: uniform, a: -0.1, b: 0.1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("init")
    (folder / "model.py").write_text(MODEL)
    (folder / "plan.yaml").write_text("mesh: {dp: 1, tp: 1}" + PLAN)
    run(tool("shardc"), "export", f"{folder}/model.py:build", "-o", folder / "model.pt2", "--train", "--meta")
    torch.manual_seed(5)
    ids = torch.randint(0, 13, (6, 8, 5))
    save_file({"ids": ids, "target": ids.flip(2).contiguous()}, folder / "batches.safetensors")
    return folder


def compiled(folder, mesh, *options):
    program = folder / (re.sub("[^a-z0-9]", "", mesh + "".join(options)) + ".so")
    if not program.exists():
        run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, "--plan", folder / "plan.yaml", *options, "-o", program)
    return program


def begun(program, seed=7, *options):
    """The parameters after `init`, which nothing was loaded for."""
    run(tool("shard-run"), program, "--entry", "init", "--seed", seed, "--save", program.with_suffix(".begun"), *options)
    return load_file(program.with_suffix(".begun"))


def trained(folder, program, *options, seed=7):
    log, saved = program.with_suffix(".log"), program.with_suffix(".trained")
    log.unlink(missing_ok=True)
    run(tool("shard-run"), program, "--init", "--seed", seed, "--batches", folder / "batches.safetensors", "--steps", 5, "--lr", 1e-2, "--log", log,
        "--save", saved, *options)
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()], load_file(saved)


def test_weightless_export_trains_as_on_one_rank(folder):
    one = compiled(folder, "dp=1,tp=1")
    values = begun(one)
    space = {}
    exec(MODEL, space)
    module, _ = space["build"]()
    module.load_state_dict(values, strict=False)
    assert module.head.weight is module.table.weight and torch.equal(module.table.weight, values["table.weight"])
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=0.1)
    batches, losses = load_file(folder / "batches.safetensors"), []
    for step in range(5):
        optimizer.zero_grad()
        loss = module(batches["ids"][step], batches["target"][step])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    for program in (one, compiled(folder, "dp=1,tp=2"), compiled(folder, "dp=2,tp=2", "--train", "zero=1"),
                    compiled(folder, "dp=2,tp=2", "--train", "zero=3")):
        for name, value in begun(program).items():
            assert torch.equal(value, values[name]), (program, name)
        got, saved = trained(folder, program)
        assert max(abs(a - b) for a, b in zip(got, losses, strict=True)) < 1e-4, program
        for name, parameter in module.state_dict().items():
            if name in saved:
                assert difference(saved[name], parameter) < 1e-3, (program, name)
        assert saved["train.step"] == 5 and saved["random.offset"] == values["random.offset"]


def test_what_is_refused(folder, tmp_path):
    program = compiled(folder, "dp=1,tp=1")
    for option in ("--weights", "--resume"):
        done = run(tool("shard-run"), program, "--init", option, folder / "model.pt2", check=False)
        assert done.returncode == 1 and f"--init and {option} exclude each other" in done.stderr
    done = run(tool("shard-run"), program, "--entry", "forward", check=False)
    assert "or let --init make them" in done.stderr
    done = run(tool("shard-run"), program, "--weights", folder / "model.pt2", "--entry", "init", check=False)
    assert "no data (exported without weights)" in done.stderr
    loaded = tmp_path / "loaded.so"
    run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", "tp=1", "--train", "loss=0", "-o", loaded)
    done = run(tool("shard-run"), loaded, "--init", "--seed", 1, check=False)
    assert "--init: the program has no initial values" in done.stderr and "Traceback" not in done.stderr


def test_what_is_loaded_is_kept(folder, tmp_path):
    program = tmp_path / "kept.so"
    init = "[{parameters: 'table.*', distribution: keep}, {parameters: '*', distribution: constant, value: 2}]"
    run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", "tp=2", "--train", "loss=0", "--train", f"init={init}", "-o", program)
    done = run(tool("shard-run"), program, "--init", "--batches", folder / "batches.safetensors", "--lr", 1, check=False)
    assert done.returncode == 1 and "1 parameters have not been loaded, the first is table.weight" in done.stderr, done.stderr
    assert "or run init" not in done.stderr
    weights, saved = begun(compiled(folder, "dp=1,tp=1")), tmp_path / "saved"
    run(tool("shard-run"), program, "--weights", folder / "dp1tp1.begun", "--entry", "init", "--save", saved)
    for name, value in load_file(saved).items():
        if name in ("table.weight", "head.weight"):
            assert torch.equal(value, weights["table.weight"])
        elif "optimizer" not in name and "train" not in name:
            assert torch.equal(value, torch.full_like(value, 2)), name


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
def test_devices_make_the_same_values(folder):
    """Integers and sums of the generator are the same bits everywhere; functions of the mathematics library are not."""
    values = begun(compiled(folder, "dp=1,tp=1"))
    program = compiled(folder, "dp=1,tp=2", "--target", "cuda:emulated")
    for name, value in begun(program, 7, "--device", "emulated").items():
        if name in ("table.weight", "down.weight"):
            assert difference(value, values[name]) < 1e-6, name
        else:
            assert torch.equal(value, values[name]), name


# Each bound below is one that numbers of the distribution go beyond once in 100,000 seeds: 4.42 standard deviations, and for the
# largest difference of distribution functions (Kolmogorov-Smirnov) 2.47 / sqrt(n), of which the probability is 2 exp(-2 * 2.47^2).
DEVIATIONS, KOLMOGOROV = 4.42, 2.47
N = 10**5
DISTRIBUTIONS = {
    "u": "uniform, a: -1, b: 3", "v": "uniform", "n": "normal, mean: 2, std: 0.5", "m": "normal", "t": "truncated_normal, std: 2, a: -1, b: 3",
    "k": "kaiming_normal, nonlinearity: relu", "h": "normal", "d": "uniform",
}


class Samples(nn.Module):
    def __init__(self):
        super().__init__()
        kinds = {"k": (250, 400), "h": (N,), "d": (N,)}
        for name in DISTRIBUTIONS:
            dtype = {"h": torch.bfloat16, "d": torch.float64}.get(name, torch.float32)
            setattr(self, name, nn.Parameter(torch.zeros(kinds.get(name, (N,)), dtype=dtype)))

    def forward(self, x):
        return sum(getattr(self, name).float().sum() for name in DISTRIBUTIONS) * x.sum()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    with shardc_meta.parameters_on_meta():
        module = Samples()
    shardc_meta.save(shardc_meta.export(shardc_export.export, module, (torch.zeros(2),), {}), folder / "samples.pt2")
    entries = ", ".join(f"{{parameters: {name}, distribution: {text}}}" for name, text in DISTRIBUTIONS.items())
    program = folder / "samples.so"
    run(tool("shardc"), "compile", folder / "samples.pt2", "--mesh", "tp=3", "--place", "param:*=tp:S(0)", "--train", "loss=0",
        "--train", f"init=[{entries}]", "-o", program)
    return program


def distance(sample, cdf):
    """Between the distribution of a sample and another one: the largest difference of their functions."""
    x = sample.double().flatten().sort().values
    below = torch.arange(len(x) + 1, dtype=torch.float64) / len(x)
    want = cdf(x)
    return float(torch.maximum((want - below[:-1]).abs(), (below[1:] - want).abs()).max())


def correlation(x, y):
    x, y = (z.double().flatten() - z.double().mean() for z in (x, y))
    return float((x * y).mean() / (x.square().mean() * y.square().mean()).sqrt())


def test_distributions(samples):
    got, other = begun(samples, 1), begun(samples, 2)
    phi = torch.special.ndtr
    low, high = (float(phi(torch.tensor(x, dtype=torch.float64))) for x in (-0.5, 1.5))
    std = math.sqrt(2 / 400)
    for name, cdf in {
        "u": lambda x: (x + 1) / 4, "v": lambda x: x, "d": lambda x: x, "n": lambda x: phi((x - 2) / 0.5), "m": phi,
        "t": lambda x: (phi(x / 2) - low) / (high - low), "k": lambda x: phi(x / std),
    }.items():
        assert distance(got[name], cdf) < KOLMOGOROV / math.sqrt(N), name
    assert got["u"].min() >= -1 and got["u"].max() <= 3 and got["v"].max() < 1
    assert got["t"].min() >= -1 and got["t"].max() <= 3
    # Moments: the deviation of a sample of normal numbers has the relative deviation 1 / sqrt(2 n).
    for name, wanted in {"m": 1, "k": std, "n": 0.5, "h": 1}.items():
        assert abs(float(got[name].double().std()) / wanted - 1) < DEVIATIONS / math.sqrt(2 * N), name
    # Neighbours, and numbers at some distance: the correlation of independent samples has the deviation 1 / sqrt(n).
    bound = DEVIATIONS / math.sqrt(N)
    for name in DISTRIBUTIONS:
        x = got[name].flatten()
        for lag in (1, 2, 3, 4, 1000, N // 3):
            assert abs(correlation(x[:-lag], x[lag:])) < bound * math.sqrt(N / (N - lag)), (name, lag)
    # Pairs of neighbours fill the square evenly: chi-square of 255 degrees of freedom, whose deviation is sqrt(510).
    pairs = (got["v"].reshape(-1, 2) * 16).long()
    counts = torch.bincount(pairs[:, 0] * 16 + pairs[:, 1], minlength=256).double()
    wanted = N / 2 / 256
    assert abs(float(((counts - wanted) ** 2 / wanted).sum()) - 255) < 5 * math.sqrt(510)
    # Parameters, and seeds, have numbers of their own.
    uniform = [("u", "v"), ("v", "d"), ("u", "t"), ("m", "n"), ("m", "k"), ("v", "m")]
    for a, b in uniform:
        assert abs(correlation(got[a], got[b])) < bound, (a, b)
    for name in DISTRIBUTIONS:
        assert abs(correlation(got[name], other[name])) < bound, name
    # Two samples of n out of 2^24 numbers share n^2 / 2^24 of them, 596.
    shared = len(set(got["v"].tolist()) & set(other["v"].tolist()))
    assert abs(shared - N * N / 2**24) < 5 * math.sqrt(N * N / 2**24)
    assert len(got["d"].unique()) == N


def test_runs_draw_other_numbers(samples, tmp_path):
    run(tool("shard-run"), samples, "--entry", "init", "--seed", 1, "--steps", 2, "--save", tmp_path / "second")
    first, second = begun(samples, 1), load_file(tmp_path / "second")
    again = begun(samples, 1, "--init")
    assert all(torch.equal(again[name], value) for name, value in first.items()), "with --init the entry runs once"
    assert second["random.offset"] == 2 * first["random.offset"] == 2 * len(DISTRIBUTIONS) * N
    for name in DISTRIBUTIONS:
        assert abs(correlation(first[name], second[name])) < DEVIATIONS / math.sqrt(N), name


def test_examples(folder, tmp_path):
    """The examples of the C ABI make the parameters that shard-run makes."""
    examples, program = ROOT / "runtime/examples", compiled(folder, "dp=2,tp=2")
    want = begun(program, 11)
    compiler = shutil.which("c++") or shutil.which("clang++-22")
    run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", examples / "init.cpp", "-I", ROOT / "runtime/include", "-L", BUILD / "lib",
        f"-Wl,-rpath,{BUILD / 'lib'}", "-lshardrt", "-lpthread", "-o", tmp_path / "init")
    run(tmp_path / "init", program, tmp_path / "cpp", "--ranks", 4, "--seed", 11)
    run(sys.executable, examples / "init.py", program, tmp_path / "python", 11, env={**os.environ, "SHARDRT": str(BUILD / "lib/libshardrt.so")})
    for file in (tmp_path / "cpp", tmp_path / "python"):
        got = load_file(file)
        assert got.keys() == want.keys() and all(torch.equal(got[name], value) for name, value in want.items()), file
    refused = run(tmp_path / "init", program, tmp_path / "cpp", "--rank", 4, check=False)
    assert refused.returncode == 1 and "usage:" in refused.stderr
