# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime meets the real driver: the unit tests of the plugin's products and reductions, a first program through `shard-run`, which runs again as a captured
graph (the runtime's log says so), and a failure that a kernel reports."""
import re

import torch

import tensors

GRAPH = "its graph was launched"  # in the log of each step that was a graph


def passed(output):
    """How many tests of a gtest binary passed, and how many did not; None where it says nothing."""
    ok, bad = (re.search(rf"\[\s*{word}\s*\] (\d+) test", output) for word in ("PASSED", "FAILED"))
    return (int(ok[1]) if ok else 0, int(bad[1]) if bad else 0) if ok or bad else None


def run(it):
    it.each(["first program"], lambda name: first_program(it, name))
    it.each(["failure in a kernel"], lambda name: failure(it, name))
    it.each([t for t in it.facts["tests"] if t["group"] == "abi"], lambda test: unit_test(it, test))
    if not it.emulated:
        properties = torch.cuda.get_device_properties(it.place)
        it.report.add("multiprocessors", properties.multi_processor_count, note=f"{properties.name}, PyTorch {torch.__version__}, "
                      f"CUDA {torch.version.cuda}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}")


def unit_test(it, test):
    """A gtest binary, which brings the emulated device where it is not told of a real one."""
    own = {"SHARDC_TEST_PLUGINS": str(it.folder / "lib/shardrt")} | ({} if it.emulated else {"SHARDC_TEST_GPU": str(it.number)})
    status, output = it.run(it.folder / "tests" / test["name"], f"--gtest_filter={test['filter']}", env=own | test.get("env", {}))
    counts = passed(output)
    problem = None if status == 0 and counts and counts[0] and not counts[1] else f"ended with {status}: {failed(output)}"
    it.report.check(test["name"], problem)
    it.report.add(f"{test['name']}: tests", counts[0] if counts else None)


def failed(output):
    """The names of what failed, else the end of what was said."""
    names = re.findall(r"^\[  FAILED  \] (\S+)", output, re.M)
    good = len(re.findall(r"^\[       OK \]", output, re.M))
    return f"{good} passed; " + (", ".join(dict.fromkeys(names)) or output[-400:])


def first_program(it, name):
    """The tool that users run, on what is named by number or as emulated."""
    op = next(op for op in it.chosen("sanitize") if op.name == "checked_pointwise")
    operands, inputs, outputs = op.operands(), it.out / "first.safetensors", it.out / "first.out.safetensors"
    tensors.save({f"x{i}": t for i, t in enumerate(operands)}, inputs)
    status, output = it.run(it.folder / "bin/shard-run", "--device", it.device_name, it.folder / "programs" / f"{op.name}.so",
                            "--inputs", inputs, "--outputs", outputs, "--steps", 5, seconds=60, env={"SHARDRT_LOG": "debug"})
    if status:
        it.report.check(name, f"shard-run ended with {status}: {output[-400:]}")
        return
    it.report.check(name, None if torch.equal(tensors.load(outputs)["y0"], op.call(*operands)) else "a wrong answer")
    it.report.check(f"{name}: a captured graph", None if GRAPH in output else f"none of 5 steps was one: {output[-400:]}")


def failure(it, name):
    """A position that is out of range: the run says so, and names the op."""
    data = torch.load(it.folder / "cases/cases_beyond.pt", weights_only=True)
    inputs = it.out / "beyond.safetensors"
    tensors.save(data["inputs"], inputs)
    status, output = it.run(it.folder / "bin/shard-run", "--device", it.device_name,
                            it.folder / "programs/cases_beyond.so", "--inputs", inputs, seconds=60)
    found = status == 1 and "index out of range in aten.embedding" in output
    it.report.check(name, None if found else f"ended with {status}: {output[-400:]}")
