# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of scripts/gpu can be shown without a GPU: the choice of groups, what is read from other tools, verdicts and exit status,
files, and that every program of the list compiles."""
import json
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "scripts/gpu"))
import group_abi  # noqa: E402
import group_answers  # noqa: E402
import group_sanitize  # noqa: E402
import measure  # noqa: E402
import networks  # noqa: E402
import programs  # noqa: E402
import run as gpu_run  # noqa: E402
import tensors  # noqa: E402


def test_groups_keep_their_order_and_unknown_ones_are_refused():
    assert gpu_run.choose([], "0") == list(gpu_run.GROUPS)
    assert gpu_run.choose(["models", "abi"], "0") == ["abi", "models"]
    assert gpu_run.choose([], "emulated") == ["abi", "answers", "ranks"]
    with pytest.raises(ValueError, match="no groups nonsense, more: choose from abi"):
        gpu_run.choose(["nonsense", "abi", "more"], "0")
    with pytest.raises(ValueError, match="gemm cannot run on the emulated device"):
        gpu_run.choose(["gemm"], "emulated")
    assert set(gpu_run.SHARES) == set(gpu_run.GROUPS)
    assert all((ROOT / f"scripts/gpu/group_{group}.py").exists() for group in gpu_run.GROUPS)


def test_verdicts():
    report = measure.Report("gemm")
    report.add("fast", 0.96, 0.95)
    report.add("slow", 0.94, 0.95)
    report.add("small", 3.0, 20.0, measure.AT_MOST, "us")
    report.add("large", 21.0, 20.0, measure.AT_MOST, "us")
    report.add("only told", 5.0)
    report.add("not there", None, 0.5)
    report.skip("cannot", "no such tool")
    report.check("right", None)
    report.check("wrong", "3 of 5 differ\nand more")
    assert [f.verdict for f in report.figures] == ["hit", "miss", "hit", "miss", "measured", "missing", "not measured", "hit",
                                                   "miss"]
    assert [f.name for f in report.failed] == ["slow", "large", "not there", "wrong"]
    again = measure.Report.from_json(json.loads(json.dumps(report.as_json())))
    assert again.figures == report.figures
    text = measure.table([report])
    assert "| gemm | slow | 0.94  | >= 0.95 | miss |" in text and "3 of 5 differ |" in text and "and more" not in text


def test_an_error_that_is_no_number_is_a_miss():
    nan = torch.tensor([1.0, float("nan")])
    report = measure.Report("x")
    report.add("error", measure.scaled_error(nan, torch.tensor([1.0, 2.0])), 1e-4, measure.AT_MOST)
    assert report.failed
    assert measure.scaled_error(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0])) == 0.25
    assert measure.scaled_error(torch.empty(0), torch.empty(0)) == 0


def test_output_of_other_tools():
    assert gpu_run.parse_gpus("NVIDIA H100 80GB HBM3, 580.159.04, 81559 MiB\n") == [
        {"name": "NVIDIA H100 80GB HBM3", "driver": "580.159.04", "memory": "81559 MiB"}]
    assert gpu_run.parse_gpus("NVIDIA-SMI has failed because it couldn't communicate\n") == []
    assert group_abi.passed("[==========] 3 tests ran.\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n") == (2, 1)
    assert group_abi.passed("[  PASSED  ] 12 tests.\n") == (12, 0)
    assert group_abi.passed("Segmentation fault") is None
    assert group_sanitize.errors("========= ERROR SUMMARY: 0 errors\n") == 0
    assert group_sanitize.errors("========= ERROR SUMMARY: 2 errors\n") == 2
    assert group_sanitize.errors("========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n") == 1
    assert group_sanitize.errors("Internal error") is None


def test_answers_are_compared_as_the_kernel_tests_do():
    f32 = torch.tensor([1.0, float("nan"), float("inf")])
    assert not group_answers.wrong(f32, f32.clone(), 1, 0.0)
    assert group_answers.wrong(torch.tensor([1.0, 2.0, float("inf")]), f32, 1, 0.0) == "1 of 3 differ"
    assert group_answers.wrong(torch.tensor([1.00001]), torch.tensor([1.0]), 1, 0.0)
    # A sum that cancels has an error of what it adds up.
    assert not group_answers.wrong(torch.tensor([1.00001]), torch.tensor([1.0]), 16, 100.0)
    assert "not [2]" in group_answers.wrong(torch.zeros(3), torch.zeros(2), 1, 0.0)
    assert group_answers.wrong(torch.tensor([1, 2]), torch.tensor([1, 3]), 1, 0.0) == "1 elements differ"


def test_files_are_those_of_safetensors(tmp_path):
    data = {"a": torch.randn(3, 5).bfloat16(), "b": torch.arange(7), "c": torch.tensor([True, False]), "d": torch.empty(0, 4),
            "e": torch.tensor(2.5, dtype=torch.float64), "f": torch.randn(4, 6).t()}
    tensors.save(data, tmp_path / "ours.safetensors")
    safetensors.torch.save_file({k: v.contiguous() for k, v in data.items()}, tmp_path / "theirs.safetensors")
    for got in (safetensors.torch.load_file(tmp_path / "ours.safetensors"), tensors.load(tmp_path / "theirs.safetensors")):
        assert got.keys() == data.keys()
        assert all(torch.equal(got[k], v) and got[k].dtype == v.dtype for k, v in data.items())


def test_weights_do_not_depend_on_the_machine():
    """By name and seed; norms stay near 1."""
    one, two = (networks.seeded(networks.Gpt2(**programs.SMALL_GPT2)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert abs(float(one.ln_f.weight.detach().mean()) - 1) < 0.1 and abs(float(one.wte.weight.detach().mean())) < 0.1
    ids = networks.ids(250, 2, 8)
    assert one(ids).shape == (2, 8, 250) and one(ids).isfinite().all()


def test_a_token_is_decoded_as_the_whole_sequence_has_it():
    """The model with a cache is the model without."""
    decode = networks.seeded(networks.Gpt2Decode(**programs.SMALL_GPT2))
    ids = networks.ids(250, 3, 9)
    model, caches = decode.model, []
    with torch.no_grad():
        x = model.wte(ids[:, :8]) + model.wpe(torch.arange(8))
        for block in model.blocks:
            qkv = block.attention.qkv(block.ln_1(x)).chunk(3, dim=-1)
            caches.append(torch.stack([t.unflatten(-1, (4, -1)).transpose(1, 2) for t in qkv[1:]]))
            x, _ = block(x)
        logits, added = decode(ids[:, 8:], torch.stack(caches))
        want = model(ids)[:, 8:]
    assert torch.allclose(logits, want, atol=1e-5) and added.shape == (2, 2, 3, 4, 1, 16)


@pytest.mark.parametrize("group", ["gemm", "rows", "attention", "sanitize"])
def test_every_op_of_the_list_is_a_program(group, tmp_path):
    """Its text is read, and its results have the shapes that PyTorch says."""
    chosen = [op for op in programs.ops() if op.group == group]
    assert chosen
    text = "\n// -----\n".join(op.mlir() for op in chosen)
    (tmp_path / "ops.mlir").write_text(text)
    run(tool("shard-opt"), tmp_path / "ops.mlir", "--split-input-file", "-o", tmp_path / "out.mlir")
    backward = [op for op in chosen if op.backward]
    if backward:
        (tmp_path / "backward.mlir").write_text("\n// -----\n".join(op.mlir() for op in backward))
        run(tool("shard-opt"), tmp_path / "backward.mlir", "--split-input-file",
            "--aten-differentiate=into=forward cotangents=0 wrt=x*", "-o", tmp_path / "out.mlir")


def test_a_group_that_dies_is_a_miss_and_the_others_still_run(tmp_path, monkeypatch, capsys):
    def command(group, folder, out, device, seconds):
        body = {"abi": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
                "gemm": f"import sys; sys.path.insert(0, {str(ROOT / 'scripts/gpu')!r}); import measure, pathlib; "
                        f"r = measure.Report('gemm'); r.add('rate', 0.97, 0.95); "
                        f"r.write(pathlib.Path({str(out)!r}) / 'gemm.json')"}[group]
        return [sys.executable, "-c", body]
    monkeypatch.setattr(gpu_run, "group_command", command)
    misses = gpu_run.run_all(["abi", "gemm"], tmp_path, tmp_path / "out", "0", 200)
    text = (tmp_path / "out/summary.md").read_text()
    assert misses == 1 and "| abi | completed | 0" in text and "| gemm | rate | 0.97" in text and "1 misses" in text
    # A budget that is too small for a second group counts it as missing.
    misses = gpu_run.run_all(["gemm", "abi"], tmp_path, tmp_path / "out", "0", 20)
    assert misses >= 1 and "Not run, as the budget was used up" in (tmp_path / "out/summary.md").read_text()


def test_the_command_line(tmp_path):
    script = ROOT / "scripts/gpu.sh"
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    assert subprocess.run([script, "nonsense"], capture_output=True, env=environment).returncode == 2
    done = subprocess.run([script, "run", "--out", tmp_path / "o"], text=True, capture_output=True, env=environment)
    assert done.returncode == 1 and "has no pack.json" in done.stderr
    (tmp_path / "pack.json").write_text("{}")
    done = subprocess.run([script, "run", "--folder", tmp_path, "--out", tmp_path / "o", "nothing"], text=True,
                          capture_output=True, env=environment)
    assert done.returncode == 1 and "error: there are no groups nothing" in done.stderr
