# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training examples of the C ABI: a Transformer of characters whose losses are PyTorch's, in C++ and in Python."""
import os
import re
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file

from conftest import BUILD, ROOT, run, tool
from training import difference

sys.path[:0] = [str(ROOT / "scripts/train"), str(ROOT / "tools/export")]
import character  # noqa: E402
import shardc_export  # noqa: E402

EXAMPLES, TEXT, STEPS = ROOT / "runtime/examples", "/usr/share/common-licenses/GPL-3", 4
SIZES = {"batch": 4, "length": 16}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A program for dp=2,tp=2, and what PyTorch has after some steps."""
    folder = tmp_path_factory.mktemp("examples")
    module, _, inputs = character.build(**SIZES, layers=1, width=16, heads=2)
    torch.export.save(shardc_export.export(module, (), inputs), folder / "m.pt2")
    run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", "dp=2,tp=2", *character.PLAN, "--train", "loss=0", "--train", "optimizer=adamw", "-o",
        folder / "m.so")
    batches, optimizer = character.batches_of(TEXT, STEPS, **SIZES), torch.optim.AdamW(module.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss, _ = module(**{k: v[step] for k, v in batches.items()})
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return folder, module, losses


def losses_of(done):
    return [float(x) for x in re.findall(r"^step \d+: loss (.*)$", done.stdout, re.M)]


def check(files, saved):
    saved = load_file(saved)
    assert int(saved["train.step"]) == STEPS
    for name, parameter in files[1].named_parameters():
        assert difference(saved[name], parameter) <= 1e-3, name


def test_cpp(files, tmp_path):
    compiler = shutil.which("c++") or shutil.which("clang++-22")
    run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", EXAMPLES / "train.cpp", "-I", ROOT / "runtime/include", "-L", BUILD / "lib",
        f"-Wl,-rpath,{BUILD / 'lib'}", "-lshardrt", "-lpthread", "-o", tmp_path / "train")
    common = (tmp_path / "train", files[0] / "m.so", files[0] / "m.pt2", TEXT, "--ranks", 4, "--batch", 4, "--length", 16)
    half = run(*common, "--steps", STEPS // 2, "--save", tmp_path / "half")
    rest = run(*common, "--steps", STEPS, "--resume", tmp_path / "half", "--save", tmp_path / "saved")
    assert losses_of(half) + losses_of(rest) == pytest.approx(files[2], rel=1e-5)
    check(files, tmp_path / "saved")
    refused = run(*common, "--step", 3, check=False)
    assert refused.returncode == 1 and "unknown option --step" in refused.stderr


def test_python(files, tmp_path):
    done = run(sys.executable, EXAMPLES / "train.py", files[0] / "m.so", files[0] / "m.pt2", TEXT, STEPS, "1e-3", tmp_path / "saved",
               env={**os.environ, "SHARDRT": str(BUILD / "lib/libshardrt.so")})
    assert losses_of(done) == pytest.approx(files[2], rel=1e-5)
    check(files, tmp_path / "saved")
    assert done.stdout.split("\n", STEPS)[-1].startswith("The ") and len(done.stdout.split("\n", STEPS)[-1]) == 65
