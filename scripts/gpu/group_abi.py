# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime meets the real driver: the unit tests for it, a first program through `shard-run`, which runs again as a captured
graph, and a failure that a kernel reports."""
import re

import torch

import tensors


def passed(output):
    """How many tests of a gtest binary passed, and how many did not; None where it says nothing."""
    ok, bad = (re.search(rf"\[\s*{word}\s*\] (\d+) test", output) for word in ("PASSED", "FAILED"))
    return (int(ok[1]) if ok else 0, int(bad[1]) if bad else 0) if ok or bad else None


def run(it):
    names = it.facts["tests"]
    if not names:
        it.report.skip("tests", "this build has no unit tests for a real driver")
    it.each([n for n in names if not n.startswith("test_gpu_nccl")], lambda name: one_test(it, name))
    it.each(["first program"], lambda name: first_program(it, name))
    it.each(["failure in a kernel"], lambda name: failure(it, name))
    if not it.emulated:
        it.report.add("multiprocessors", torch.cuda.get_device_properties(it.place).multi_processor_count)


def one_test(it, name):
    status, output = it.run(it.folder / "tests" / name, seconds=120)
    counts = passed(output)
    problem = None if status == 0 and counts and counts[0] and not counts[1] else f"ended with {status}: {output[-400:]}"
    it.report.check(name, problem)


def first_program(it, name):
    """The tool that users run, on what is named by number or as emulated."""
    op = next(op for op in it.chosen("sanitize") if op.name == "checked_pointwise")
    operands, inputs, outputs = op.operands(), it.out / "first.safetensors", it.out / "first.out.safetensors"
    tensors.save({f"x{i}": t for i, t in enumerate(operands)}, inputs)
    status, output = it.run(it.folder / "bin/shard-run", "--device", it.device_name, it.folder / "programs" / f"{op.name}.so",
                            "--inputs", inputs, "--outputs", outputs, "--steps", 5, seconds=60)
    if status:
        it.report.check(name, f"shard-run ended with {status}: {output[-400:]}")
        return
    it.report.check(name, None if torch.equal(tensors.load(outputs)["y0"], op.call(*operands)) else "a wrong answer")


def failure(it, name):
    """A position that is out of range: the run says so, and names the op."""
    data = torch.load(it.folder / "cases/cases_beyond.pt", weights_only=True)
    inputs = it.out / "beyond.safetensors"
    tensors.save(data["inputs"], inputs)
    status, output = it.run(it.folder / "bin/shard-run", "--device", it.device_name,
                            it.folder / "programs/cases_beyond.so", "--inputs", inputs, seconds=60)
    found = status == 1 and "index out of range in aten.embedding" in output
    it.report.check(name, None if found else f"ended with {status}: {output[-400:]}")
