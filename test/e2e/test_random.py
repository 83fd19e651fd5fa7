# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers in compiled programs: the generator's published answers, distributions, and the same numbers on every
mesh."""
import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from conftest import BUILD, ROOT, run, tool
from kernels import Case, check

sys.path.insert(0, str(ROOT / "test" / "reference"))
import random_ops  # noqa: E402

# Random123's known answers of Philox4x32-10: counter, key, words.
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)),
    ((0xffffffff,) * 4, (0xffffffff,) * 2, (0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)),
    ((0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), (0xa4093822, 0x299f31d0),
     (0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)),
)


def wide(low, high):
    """Two words of 32 bits as an i64."""
    value = high << 32 | low
    return value - (1 << 64) if value >> 63 else value


def test_known_answers(tmp_path):
    elements, offsets, seeds = ([] for _ in range(3))
    for counter, key, _ in KNOWN:
        elements.append(wide(*counter[:2]))
        offsets.append(wide(*counter[2:]))
        seeds.append(wide(*key))
    operands = [torch.tensor(x) for x in (elements, seeds, offsets)]
    check([Case(operands, f"aten.philox {{0}}, {{1}}, {{2}} {{{{word = {n} : i64}}}}",
                lambda *_, n=n: torch.tensor([words[n] for _, _, words in KNOWN])) for n in range(4)], tmp_path)


ROWS, COLUMNS = 331, 509
DRAWS = ("uniform f64", "uniform f32", "uniform bf16", "uniform f16", "normal f64", "normal f32", "normal bf16", "normal f16",
         "bits i64")


def draws(folder, mesh, place=(), tools=(), seed=()):
    """One tensor of each distribution and type."""
    lines, results, types = [], [], []
    for i, draw in enumerate(DRAWS):
        distribution, kind = draw.split()
        types.append(f"tensor<{ROWS}x{COLUMNS}x{kind}>")
        results.append(f"%r{i}")
        lines.append(f"""  %c{i} = aten.constant dense<{4 * ROWS * COLUMNS * i}> : tensor<i64>
  %o{i} = aten.add %offset, %c{i} : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %r{i} = aten.random "{distribution}" [{ROWS}, {COLUMNS}] {kind} seed(%seed) offset(%o{i}) : (tensor<i64>, tensor<i64>) -> {types[-1]}""")
    outputs = ", ".join(f'{t} {{dist.kind = "output", dist.name = "{d}"}}' for t, d in zip(types, DRAWS))
    state = ", ".join(f'%{name}: tensor<i64> {{dist.kind = "state", dist.initial = {initial} : f64, dist.name = "random.{name}"}}'
                      for name, initial in (("seed", 42.0), ("offset", 8.0)))
    text = "\n".join(lines)
    (folder / "draws.mlir").write_text(
        f"func.func @forward({state}) -> ({outputs}) {{\n{text}\n  return {', '.join(results)} : {', '.join(types)}\n}}\n")
    run(tool("shardc"), "compile", folder / "draws.mlir", "--mesh", mesh, "-o", folder / "draws.so",
        *(f"--place=output:{d}={layout}" for d in DRAWS for layout in place), *tools)
    run(tool("shard-run"), folder / "draws.so", "--outputs", folder / "draws.safetensors",
        *(("--device", "emulated") if "--target" in tools else ()), *seed)
    return load_file(folder / "draws.safetensors")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draws(tmp_path_factory.mktemp("draws"), "r=1")


def test_distributions(drawn):
    n = ROWS * COLUMNS
    for name, values in drawn.items():
        distribution, kind = name.split()
        x = values.double()
        if distribution == "bits":
            assert values.min() >= 0
            x = x / 2**63
        mean, variance = (0, 1) if distribution == "normal" else (0.5, 1 / 12)
        # What a type with few digits leaves out below.
        rest = {"uniform bf16": 2**-9, "uniform f16": 2**-12}.get(name, 0)
        assert abs(x.mean() - mean + rest) < 5 * (variance / n) ** 0.5, name
        fourth = 3 if distribution == "normal" else 1 / 80
        assert abs(x.var() - variance) < 5 * ((fourth - variance**2) / n) ** 0.5 + (2**-8 if kind in ("bf16", "f16") else 0), name
        # Neighbours in a row, and in a column, have nothing to do with each other.
        y = (x - x.mean()) / x.std()
        for lag in (1, 4, COLUMNS):
            assert abs((y.flatten()[lag:] * y.flatten()[:-lag]).mean()) < 5 / n**0.5, (name, lag)
        if distribution == "normal":
            for bound, share in ((1, 0.317311), (2, 0.045500), (3, 0.0026998)):
                assert abs((x.abs() > bound).double().mean() - share) < 5 * (share / n) ** 0.5 + (2e-3 if kind == "bf16" else 0), name
            assert x.isfinite().all()
        if distribution == "uniform":
            assert 0 <= x.min() and x.max() < 1
            digits = {"f64": 53, "f32": 24, "bf16": 8, "f16": 11}[kind]
            assert torch.equal(x * 2.0**digits, (x * 2.0**digits).round())
            cells = torch.histc(x, 64, 0, 1)
            assert ((cells - n / 64) ** 2 / (n / 64)).sum() < 63 + 5 * (2 * 63) ** 0.5, name


@pytest.mark.parametrize("mesh, place", [("tp=3", ["tp:S(0)"]), ("dp=2,tp=2", ["dp:S(1)", "tp:S(1)"])])
def test_every_mesh_has_the_same_numbers(drawn, mesh, place, tmp_path):
    for name, values in draws(tmp_path, mesh, place).items():
        if name.startswith("normal"):  # vectors and what is left of them may round otherwise
            torch.testing.assert_close(values, drawn[name])
        else:
            assert torch.equal(values, drawn[name]), name


def test_an_emulated_device_has_the_same_numbers(drawn, tmp_path):
    for name, values in draws(tmp_path, "r=1", tools=("--target", "cuda:emulated")).items():
        if name.startswith("normal"):
            torch.testing.assert_close(values, drawn[name])
        else:
            assert torch.equal(values, drawn[name]), name


@pytest.mark.parametrize("mode", ["dtensor", "per-rank"])
def test_modes(tmp_path, mode):
    """Shards of 111, 111 and 109 rows: each counts its own elements, from PyTorch's offset or with a key of its own."""
    found = draws(tmp_path, "tp=3", ["tp:S(0)"], ("--random", mode), ("--seed", "-3"))
    op, rows, shards = DRAWS.index("uniform f32"), -(-ROWS // 3), []
    for rank in range(3):
        shape = (min(rows, ROWS - rank * rows), COLUMNS)
        offset = 8 + 4 * ROWS * COLUMNS * op + (rank * rows * COLUMNS + 3) // 4 * 4 * (mode == "dtensor")
        words = random_ops.philox_words(torch.arange(shape[0] * shape[1]).reshape(shape),
                                        torch.tensor(-3 + (rank << 32) * (mode == "per-rank")), torch.tensor(offset))
        shards.append(random_ops.uniform(words, torch.float32))
    assert torch.equal(found["uniform f32"], torch.cat(shards))


def test_unknown_modes(tmp_path):
    with pytest.raises(AssertionError, match="random: there is no mode 'mine'; it must be default, dtensor or per-rank"):
        draws(tmp_path, "tp=3", (), ("--random", "mine"))


SEEDS = r"""
import ctypes as C
import json
import sys

import numpy as np

sys.path.insert(0, sys.argv[2])
from run import GLOBAL, check, lib, tensor
from train import World

ROOT_ONLY = 3
world = World(sys.argv[1], None)
index = {id(rank): number for number, rank in enumerate(world.ranks)}
number = lambda value: np.array(value, np.int64)


def set_seed(values, scope=GLOBAL):
    world.each(lambda rank: check(lib.shardrt_set_state, rank.model, b"random.seed", C.byref(tensor(number(values[index[id(rank)]]), scope))))


def draw():
    try:
        return world.run("forward")["y"].tolist()
    except RuntimeError as error:
        return str(error)


found = {"initial": draw()}
set_seed([1, 2, 1])
found["differ"] = draw()
set_seed([5, 5, 5])
found["same"] = draw()
set_seed([-7, 1, 2], ROOT_ONLY)
found["root"] = draw()
try:
    check(lib.shardrt_set_state, world.ranks[0].model, b"random.sede", C.byref(tensor(number(1), GLOBAL)))
except RuntimeError as error:
    found["unknown"] = str(error)
world.close()
print(json.dumps(found))
"""


def test_seeds(tmp_path):
    """Rank 1 is outside of the mesh."""
    (tmp_path / "draw.mlir").write_text("""func.func @forward(
    %seed: tensor<i64> {dist.kind = "state", dist.initial = 0.0 : f64, dist.name = "random.seed"},
    %offset: tensor<i64> {dist.kind = "state", dist.initial = 0.0 : f64, dist.name = "random.offset"})
    -> (tensor<8xf64> {dist.kind = "output", dist.name = "y"}, tensor<i64> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %y = aten.random "uniform" [8] f64 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<8xf64>
  %c = aten.constant dense<8> : tensor<i64>
  %next = aten.add %offset, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %y, %next : tensor<8xf64>, tensor<i64>
}
""")
    run(tool("shardc"), "compile", tmp_path / "draw.mlir", "--mesh", "dp=2,devices=[0,2]", "--place", "output:y=dp:S(0)", "-o", tmp_path / "draw.so")
    done = subprocess.run([sys.executable, "-c", SEEDS, str(tmp_path / "draw.so"), str(ROOT / "runtime/examples")], text=True, capture_output=True,
                          env={**os.environ, "SHARDRT": str(BUILD / "lib/libshardrt.so")}, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    def expected(seed, offset):
        return random_ops.uniform(random_ops.philox_words(torch.arange(8), torch.tensor(seed), torch.tensor(offset)), torch.float64).tolist()
    assert found["initial"] == expected(0, 0)
    assert "ranks differ in random.seed: 1 on ranks 0 and 2, 2 on rank 1" in found["differ"]
    assert found["same"] == expected(5, 8)  # what failed has drawn nothing
    assert found["root"] == expected(-7, 16)
    assert "no parameter, buffer or state random.sede; it has random.seed" in found["unknown"]
    refused = run(tool("shard-run"), tmp_path / "draw.so", "--seed", "x", check=False)
    assert "--seed needs a whole number of 64 bits, not 'x'" in refused.stderr
