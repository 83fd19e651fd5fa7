# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of scripts/gpu can be shown without a GPU: the choice of groups, what is read from other tools, verdicts and exit status,
files, and that every program of the list is one. test_gpu_trial.py runs the groups."""
import json
import pathlib
import subprocess
import sys
import time

import pytest
import safetensors.torch
import torch

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "scripts/gpu"))
import commands  # noqa: E402
import cost_model  # noqa: E402
import group_abi  # noqa: E402
import group_answers  # noqa: E402
import group_gpus  # noqa: E402
import group_sanitize  # noqa: E402
import measure  # noqa: E402
import networks  # noqa: E402
import programs  # noqa: E402
import rank_buckets  # noqa: E402
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
    assert gpu_run.GROUPS[-2:] == ("gpus", "sanitize")
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


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("group", ["gemm", "rows", "attention", "sanitize"])
def test_every_op_of_the_list_is_a_program(group, small, tmp_path):
    """Its text is read, and its results have the shapes that PyTorch says."""
    chosen = [op for op in programs.ops(small) if op.group == group]
    assert chosen
    text = "\n// -----\n".join(op.mlir() for op in chosen)
    (tmp_path / "ops.mlir").write_text(text)
    run(tool("shard-opt"), tmp_path / "ops.mlir", "--split-input-file", "-o", tmp_path / "out.mlir")
    backward = [op for op in chosen if op.backward]
    if backward:
        (tmp_path / "backward.mlir").write_text("\n// -----\n".join(op.mlir() for op in backward))
        run(tool("shard-opt"), tmp_path / "backward.mlir", "--split-input-file",
            "--aten-differentiate=into=forward cotangents=0 wrt=x*", "-o", tmp_path / "out.mlir")


def test_formulas():
    """Of figures, by hand."""
    ops = {op.name: op for op in programs.ops()}
    assert ops["gemm_bf16_8192x2048x2048"].flops == 2 * 8192 * 2048 * 2048
    assert ops["gemm_batched"].flops == 96 * 2 * 1024 * 1024 * 64
    # Causal: half of 1024 x 1024 pairs, of 64 numbers each, two products forward and five backward; 2 for multiply and add.
    assert ops["attention_forward_bf16_64"].flops == 8 * 12 * (1024 * 1024 / 2) * 64 * 2 * 2
    assert ops["attention_backward_bf16_64"].flops == 8 * 12 * (1024 * 1024 / 2) * 64 * 2 * 5
    assert ops["rows_add_f32"].bytes == 3 * 4 * 16384 * 4096 and ops["rows_softmax_bf16"].bytes == 2 * 2 * 16384 * 8192
    assert ops["rows_sum_f32"].bytes == 4 * (16384 * 4096 + 16384)
    assert ops["rows_unpack"].bytes == 2 * 4 * 65536 * 1024
    for op in ops.values():
        assert op.group != "rows" or op.bytes >= 256 << 20, op.name
    # nccl-tests, doc/PERFORMANCE.md: S / t (n - 1) / n, twice that for an all-reduce.
    assert group_gpus.bus_bandwidth("all_reduce", 4, 8e9, 2.0) == pytest.approx(4 * 2 * 3 / 4)
    assert group_gpus.bus_bandwidth("all_gather", 4, 8e9, 2.0) == group_gpus.bus_bandwidth("reduce_scatter", 4, 8e9, 2.0) == 3.0
    # A round took what the rank that came last saw: 2, 4 and 3.
    ranks = [{"ours": {"a": [2.0, 5.0, 3.0]}}, {"ours": {"a": [9.0, 4.0, 7.0]}}]
    assert group_gpus.seconds(ranks, "ours", "a") == 3.0


def test_tables_of_nccl_tests():
    text = """#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    36.50   28.73   43.09      0    36.20   28.97   43.45      0
     4194304       1048576     float     sum      -1    61.20   68.53  102.80      0    61.70   67.98  101.97      0
# Avg bus bandwidth    : 72.8
"""
    assert group_gpus.of_nccl_tests(text) == {1048576: 43.45, 4194304: 102.80}
    assert group_gpus.of_nccl_tests("Test CUDA failure\n") == {}


def test_buckets_take_turns_with_torch(monkeypatch):
    """Operands, what they give, and that PyTorch's side does it."""
    for kind in programs.Buckets.KINDS:
        parts = [rank_buckets.operand(kind, 12, rank, 2, "cpu") for rank in range(2)]
        whole = sum(own for own, _ in parts) if kind != "all_gather" else torch.cat([own for own, _ in parts])
        wants = [want for _, want in parts]
        assert torch.equal(torch.cat(wants) if kind == "reduce_scatter" else wants[0], whole)
    now = iter(range(100))
    event = type("Event", (), {"__init__": lambda self, enable_timing: None, "record": lambda self: setattr(self, "at", next(now)),
                               "elapsed_time": lambda self, other: other.at - self.at})
    monkeypatch.setattr(torch.cuda, "Event", event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert rank_buckets.timed([lambda: next(now), lambda: None]) == [2e-3, 1e-3]


def made_up(gpus=1):
    """Results as `run` writes them, of no machine."""
    def group(name, figures):
        return {"group": name, "figures": [{"name": n, "value": v} for n, v in figures.items()]}
    rates = {f"gemm_{kind}_{size}: rate": v for kind, v in (("f32", 50.0), ("bf16", 700.0), ("f16", 650.0)) for size in ("8x8x8",)}
    buckets = {}
    if gpus > 1:
        # 20 us and 100 GB/s, as bus bandwidths over two GPUs: half of bytes over time, all of them for an all-reduce.
        for kind, share in (("all_gather", 0.5), ("all_reduce", 1.0)):
            for mib in (1, 4, 16):
                size = mib * 2**20
                buckets[f"{kind} of {mib:g} MiB, 2 GPUs: bus bandwidth"] = size * share / (20e-6 + size / 100e9) * 1e-9
    return {"machine": {"gpus": [{"name": "Made-up", "driver": "1.2", "memory": "1 MiB"}] * gpus, "date": "2026-01-01", "commit": "0" * 40},
            "groups": [group("rows", {"copy": 4100.0, "launch of a kernel in a graph": 1.25}),
                       group("gemm", rates | {"gemm_bf16_16x16x16: rate": 750.0, "gemm_bias: rate": 9999.0, "gemm_f16_9x9x9: rate": None}),
                       group("gpus", buckets)]}


def test_the_cost_model_of_one_gpu(tmp_path):
    """The compiler takes it; a kernel's time is that of the measured rates."""
    (tmp_path / "results.json").write_text(json.dumps(made_up()))
    done = subprocess.run([ROOT / "scripts/gpu.sh", "cost-model", tmp_path, "--name", "h200-1"], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[1:] == ["name = h200-1", "ranks_per_node = 1", "memory_gb_per_s = 4100", "launch_us = 1.25",
                                            "peak_tflops f32 = 50", "peak_tflops bf16 = 750", "peak_tflops f16 = 650"]
    assert "Made-up, driver 1.2, 2026-01-01" in done.stdout
    (tmp_path / "one").write_text(done.stdout)
    (tmp_path / "p.mlir").write_text("func.func @f(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {\n  %y = aten.relu %x : "
                                     "(tensor<1024x1024xf32>) -> tensor<1024x1024xf32>\n  return %y : tensor<1024x1024xf32>\n}\n")
    told = json.loads(run(tool("shardc"), "explain", tmp_path / "p.mlir", "--mesh", "r=1", "--topology", tmp_path / "one",
                          "--format", "json").stdout)
    # 8 MiB at 4,100 GB/s, and a launch. It has no price of collectives.
    assert told["predicted"]["ranks"][0]["step_us"] == pytest.approx(2 * 4 * 2**20 / 4100e3 + 1.25, rel=1e-3)
    (tmp_path / "buckets.mlir").write_text(next(programs.buckets(True)).mlir())
    refused = run(tool("shardc"), "explain", tmp_path / "buckets.mlir", "--topology", tmp_path / "one", check=False)
    assert refused.returncode == 1 and "'dist.all_reduce' op has no price in the cost model 'h200-1'" in refused.stderr


def test_the_cost_model_of_several_gpus(tmp_path):
    text = cost_model.describe(made_up(2), "made-up-2")
    assert "ranks_per_node = 2\n" in text and "[all_gather intra algbw]\n2 20 100\n" in text
    assert "[all_reduce intra algbw]\n2 20 100\n" in text and "[measured all_reduce 2]\n1048576 30.49\n" in text
    (tmp_path / "two").write_text(text)
    (tmp_path / "buckets.mlir").write_text(next(programs.buckets(True)).mlir())
    told = run(tool("shardc"), "explain", tmp_path / "buckets.mlir", "--topology", tmp_path / "two", "--keep-collectives",
               "--format", "json")
    # What is smaller than anything measured takes as long as that.
    assert {round(c["predicted_us"], 1) for c in json.loads(told.stdout)["collectives"] if c["kind"] == "all_reduce"} == {30.5}
    results = made_up()
    results["groups"][1]["figures"] = [f for f in results["groups"][1]["figures"] if "f16" not in f["name"] or "bf16" in f["name"]]
    with pytest.raises(ValueError, match=r"not measured: a product of f16 \(group gemm\)"):
        cost_model.describe(results, "x")
    with pytest.raises(ValueError, match="a machine without a GPU"):
        cost_model.describe(made_up(0), "x")
    results = made_up(2)
    results["groups"][2]["figures"] = []
    with pytest.raises(ValueError, match="not measured: all_gather"):
        cost_model.describe(results, "x")


def test_what_is_timed_takes_turns():
    order = []

    def clock(name, seconds):
        def once():
            order.append(name)
            return next(seconds)
        return once
    slow, fast = iter([9, 9, 9, 1, 5, 3, 2, 4]), iter([9, 9, 9, 8, 8, 8, 8, 8])
    assert measure.interleaved([clock("a", slow), clock("b", fast)], seconds=0, least=5) == [3, 8]
    assert order[4:] == ["a", "b"] * 6


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path):
    began = time.monotonic()
    status, output = commands.bounded(["sh", "-c", f"echo begun; sleep 300 & echo $! > {tmp_path}/pid; wait"], 5.0)
    assert status == 124 and output == "begun\n" and time.monotonic() - began < 60
    pid = int((tmp_path / "pid").read_text())

    def is_over():
        """It is gone, or its parent has not asked for its end yet."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True
    # A signal that was sent takes effect when the process gets a processor; by itself it would end after 300 s.
    while not is_over() and time.monotonic() - began < 60:
        time.sleep(0.01)
    assert is_over()
    assert commands.bounded(["sh", "-c", "echo no; exit 3"], 60) == (3, "no\n")


def test_a_machine_that_is_too_old():
    needs = {"GLIBC": "2.34", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13"}
    new = b"GLIBCXX_3.4.30\0CXXABI_1.3.13\0"
    assert commands.too_old(needs, "2.36", new) == ("", False)
    assert commands.too_old(needs, "2.9", new) == ("this machine has glibc 2.9, and the packed files need 2.34", False)
    assert commands.too_old(needs, "2.35", b"GLIBCXX_3.4.29\0CXXABI_1.3.13\0") == ("libstdc++ lacks GLIBCXX_3.4.30", True)
    assert commands.number("3.4.9") < commands.number("3.4.30")


def pack_facts(folder):
    needs = {"GLIBC": "2.2", "GLIBCXX": "3.4", "CXXABI": "1.3"}
    (folder / "pack.json").write_text(json.dumps({"commit": "0123456789abcdef", "target": "cuda:sm_90", "needs": needs}))


def test_a_group_that_dies_or_hangs_is_a_miss_and_the_others_still_run(tmp_path, monkeypatch, capsys):
    figures = (f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'scripts/gpu')!r}); import measure; "
               "r = measure.Report({0!r}, pathlib.Path({1!r}) / ({0!r} + '.json')); r.add('rate', 0.97, 0.95); ")

    def command(group, folder, out, device, end):
        # What it had written before it died stays.
        after = {"abi": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "gemm": "", "rows": "import time; time.sleep(300)"}
        return [sys.executable, "-c", figures.format(group, str(out)) + after[group]]
    monkeypatch.setattr(gpu_run, "group_command", command)
    monkeypatch.setattr(gpu_run, "SHARES", {"abi": 0.3, "gemm": 0.5, "rows": 0.1})
    monkeypatch.setattr(gpu_run, "SLACK", 1)
    pack_facts(tmp_path)
    misses = gpu_run.run_all(["abi", "gemm", "rows"], tmp_path, tmp_path / "out", "0", 200)
    text = (tmp_path / "out/summary.md").read_text()
    assert misses == 2 and "2 misses" in text and "commit 0123456789ab" in text
    assert "| abi | completed | 0" in text and "| rows | completed | 0" in text and "not done after 21 s" in text
    results = json.loads((tmp_path / "out/results.json").read_text())
    rates = [f["value"] for group in results["groups"] for f in group["figures"] if f["name"] == "rate"]
    assert rates == [0.97] * 3 and results["machine"]["device"] == "0" and results["machine"]["date"]
    # A budget that is too small for a second group counts it as missing.
    misses = gpu_run.run_all(["gemm", "abi"], tmp_path, tmp_path / "out", "0", 12)
    assert misses >= 1 and "Not run, as the budget was used up" in (tmp_path / "out/summary.md").read_text()


def test_the_command_line(tmp_path):
    script = ROOT / "scripts/gpu.sh"
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    assert subprocess.run([script, "nonsense"], capture_output=True, env=environment).returncode == 2
    done = subprocess.run([script, "run", "--out", tmp_path / "o"], text=True, capture_output=True, env=environment)
    assert done.returncode == 1 and "has no pack.json" in done.stderr
    pack_facts(tmp_path)
    done = subprocess.run([script, "run", "--folder", tmp_path, "--out", tmp_path / "o", "nothing"], text=True,
                          capture_output=True, env=environment)
    assert done.returncode == 1 and "error: there are no groups nothing" in done.stderr
