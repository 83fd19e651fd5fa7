# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every group of scripts/gpu.sh, tried as far as a machine without a GPU allows: a packed folder that was moved, without the
build's environment. What needs a GPU runs with the emulated device and PyTorch on the CPU (gpu_standin.py)."""
import json
import math
import os
import pathlib
import subprocess
import sys
import time

import pytest

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "scripts/gpu"))
import pack  # noqa: E402

# One process packs the folder, and all tests use it.
pytestmark = [pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built"),
              pytest.mark.xdist_group("gpu_trial")]
# One of each kind.
PROGRAMS = {"small_gpt2_1", "small_gpt2_gradients_1", "small_llama_bf16", "small_gpt2_2", "gemm_f32_33x24x40", "gemm_bias",
            "rows_layer_norm_bf16", "rows_transpose_f32", "rows_pack", "rows_unpack", "attention_forward_f32_64",
            "attention_backward_f32_64", "forward_gpt2_f32", "decode_gpt2_bf16", "training_gpt2_f32", "training_step_gpt2_f32",
            "small_gpt2_training", "checked_pointwise",
            "checked_linear", "checked_scatter", "buckets_2", "chain_50", "chain_150"}
# Of thousands of cases, which the unit tests run themselves.
FILTERS = {"test_runtime_cuda_gemm": "CudaGemm.FactorsOfZero", "test_runtime_cuda_world": "CudaProcesses.AWorldOfOne",
           "test_runtime_cuda_peers": "CudaPeersOfAnyDevice.StreamsNeverWaitForTheHost"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made") / "gpu"
    pack.pack(BUILD.resolve(), made, "cuda:emulated", True, 2, only=lambda p: p.name in PROGRAMS, cases=False)
    moved = made.parent / "another place"
    made.rename(moved)
    facts = json.loads((moved / "pack.json").read_text())
    assert set(facts["programs"]) == PROGRAMS
    assert {"GLIBC", "GLIBCXX", "CXXABI"} == facts["needs"].keys()
    tests = [test | {"filter": FILTERS[test["name"]]} for test in facts["tests"]]
    # A short copy to compare with, and torch.compile gets its time.
    (moved / "pack.json").write_text(json.dumps(facts | {"tests": tests, "copied": 1 << 16, "compile_seconds": 0}))
    return moved


def figures(out, group):
    return {f["name"]: f for f in json.loads((out / f"{group}.json").read_text())["figures"]}


def assert_right(found, log):
    """All answers are right, and every figure is there; how large those of speed are means nothing."""
    said = pathlib.Path(log).read_text()[-3000:]
    for name, figure in found.items():
        is_answer = any(word in name for word in ("error", "difference", "same bits")) or (figure["limit"], figure["sense"]) == (1.0, ">=")
        assert figure["verdict"] in ("hit", "measured") or (figure["verdict"] == "miss" and not is_answer), f"{name}: {figure}\n{said}"
        # A difference of times may have any sign.
        assert figure["value"] is not None and math.isfinite(figure["value"]), f"{name}: {figure}"


def test_groups_of_the_emulated_device(folder, tmp_path):
    """As a user would, with nothing of the build in the environment, and another working directory."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    done = subprocess.run([folder / "gpu.sh", "run", "--device", "emulated", "--out", "results", "--budget", "2000"], text=True,
                          capture_output=True, cwd=tmp_path, env=environment, timeout=2100)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    results = json.loads((tmp_path / "results/results.json").read_text())
    assert [group["group"] for group in results["groups"]] == ["abi", "answers", "ranks"] and results["misses"] == 0
    abi = figures(tmp_path / "results", "abi")
    assert abi["test_runtime_cuda_gemm: tests"]["value"] == 1 and "first program: a captured graph" in abi
    ranks = figures(tmp_path / "results", "ranks")
    assert ranks["test_runtime_cuda_world: tests"]["value"] == ranks["test_runtime_cuda_peers: tests"]["value"] == 1
    assert {"small_gpt2_2, threads: error", "small_gpt2_2, NCCL: error"} <= ranks.keys()


def run_group(group, command, folder, out, device, environment=None):
    arguments = ["--group", group, "--folder", folder, "--out", out, "--device", device, "--end", str(time.monotonic() + 900)]
    with open(out / "log", "w") as log:
        done = subprocess.run([sys.executable, *command, *arguments], stdout=log, stderr=log, cwd=out, timeout=1000,
                              env=os.environ | (environment or {}))
    assert done.returncode == 0, (out / "log").read_text()[-4000:]
    found = figures(out, group)
    assert_right(found, out / "log")
    return found


@pytest.mark.parametrize("group, some", [
    ("gemm", {"gemm_bias: rate", "gemm_bias: over PyTorch's", "gemm_bias: error"}),
    ("rows", {"copy", "launch of a kernel in a graph", "rows_pack: over the copy's rate", "rows_unpack: error"}),
    ("attention", {"attention_forward_f32_64: over the best", "attention_backward_f32_64: rate", "attention_backward_f32_64: error"}),
    ("models", {f"{model}: {figure}" for model in ("forward_gpt2_f32", "decode_gpt2_bf16", "training_gpt2_f32", "training_step_gpt2_f32")
                for figure in ("over eager", "over torch.compile", "launch of a captured step", "difference from eager")})])
def test_groups_that_measure(folder, tmp_path, group, some):
    found = run_group(group, [ROOT / "test/e2e/gpu_standin.py", folder], folder, tmp_path, "0")
    assert some <= found.keys()


def test_the_sanitizer(folder, tmp_path):
    """A program of that name, which runs what it is given and finds nothing, or something."""
    tool = tmp_path / "bin/compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho $2 >> {tmp_path}/tools\nshift 4\n\"$@\" || exit $?\necho '========= ERROR SUMMARY: 0 errors'\n")
    tool.chmod(0o755)
    path = {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    standin = [ROOT / "test/e2e/gpu_standin.py", folder]
    found = run_group("sanitize", standin, folder, tmp_path, "0", path)
    assert {"checked_pointwise: memcheck", "checked_linear: racecheck", "checked_scatter: initcheck", "checked_pointwise: synccheck"} <= found.keys()
    assert set((tmp_path / "tools").read_text().split()) == {"memcheck", "racecheck", "initcheck", "synccheck"}


def test_several_gpus(folder, tmp_path):
    """Two processes, our collectives over emulated NCCL, PyTorch's over Gloo: answers, and figures of every bucket."""
    found = run_group("gpus", [folder / "gpu/run.py"], folder, tmp_path, "emulated")
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        assert sum(name.startswith(kind) and "over PyTorch's NCCL" in name for name in found) == 2
