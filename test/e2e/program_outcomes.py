# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of random programs (random_programs.py) that are exported, compiled and run together, as one model."""
import bisect
import collections
import json
import re
import subprocess
import sys
import warnings

import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool
from program_coverage import overloads

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

REACHED = collections.Counter()  # calls of overloads in programs that were compared


def module_of(programs):
    """One module whose forward is all programs, each with names of its own."""
    takes, body, returned = [], [], []
    for i, program in enumerate(programs):
        takes += [f"p{i}_{name}" for name in program.given()]
        returned.append(f"*{program.call(i)}")
        text = re.sub(r"\bself\.(w\d+)", rf"self.p{i}_\1", program.source.body())
        body.append(f"    def program{i}({', '.join(['self', *program.inputs])}):\n{text}\n")
    text = ("import torch\nimport torch.nn.functional as F\nfrom program_source import changed, ordered, with_loss\n\n\nclass Batch(torch.nn.Module):\n" + "\n".join(body)
            + f"\n    def forward({', '.join(['self', *takes])}):\n        return (\n            " + ",\n            ".join(returned) + ",)\n")
    return text


def export(programs, folder):
    """Makes model.pt2 of programs together. What they call, or an error."""
    text = module_of(programs)
    (folder / "batch.py").write_text(text)
    space = {}
    exec(compile(text, str(folder / "batch.py"), "exec"), space)  # noqa: S102 (our own text)
    module = space["Batch"]()
    for i, program in enumerate(programs):
        for name, value in program.parameters().items():
            module.register_parameter(f"p{i}_{name}", value)
    inputs = inputs_of(programs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = shardc_export.export(module, tuple(inputs.values()), form=programs[0].form(),
                                            dynamic=[option for i, program in enumerate(programs) for option in program.dynamic(f"p{i}_")])
            torch.export.save(exported, folder / "model.pt2")
    except Exception as error:  # noqa: BLE001 (PyTorch's own, of any kind)
        return f"export: {str(error)[:400]}"
    return overloads(exported)


def inputs_of(programs):
    return {f"p{i}_{name}": value for i, program in enumerate(programs) for name, value in program.given().items()}


def outcome(programs, mesh, folder, is_exported=False):
    """Compiles and runs programs together. What went wrong, by index; -1 if all of them failed together. `is_exported`: whether
    model.pt2 is theirs, with other shardings."""
    called = {}
    if not is_exported and isinstance(called := export(programs, folder), str):
        return {-1: called}
    plan = [option for i, program in enumerate(programs) for option in program.place(f"p{i}_")]
    try:
        done = programs[0].compile(programs, mesh, plan, folder)
    except subprocess.TimeoutExpired:
        return {-1: "hung: the compiler"}
    if done.returncode:
        return {-1: f"compile: {done.stderr[-9000:]}"}
    manifest = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)
    entry = manifest["entries"][-1]
    names = [o["name"] for o in entry["outputs"] if o["kind"] == "user"]
    REACHED.update(called)
    problems = {}
    for of in programs[0].rounds(programs):
        problems = run_once(of, entry["name"], names, folder) | problems
    return problems


def run_once(programs, entry, names, folder):
    """Runs model.so and compares, as `outcome` does. `names`: of its outputs."""
    inputs = inputs_of(programs)
    inputs |= programs[0].more_inputs(programs, names)
    save_file({n: t.contiguous().clone() for n, t in inputs.items()}, folder / "in.safetensors")
    done = run(tool("shard-run"), folder / "model.so", "--entry", entry, "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors",
               "--outputs", folder / "out.safetensors", "--timeout", 60, "--threads", 1, check=False)
    if done.returncode:
        return {-1: f"run: {done.stderr[-2000:]}"}
    got, at, problems = load_file(folder / "out.safetensors"), 0, {}
    for i, program in enumerate(programs):
        own = [got[name] for name in names[at:at + len(program.wants)]]
        at += len(program.wants)
        if problem := program.compare(own, {n.removeprefix(f"p{i}_"): t for n, t in got.items() if n.startswith(f"p{i}_")}):
            problems[i] = problem
    return problems


def refused(problem):
    """What the compiler says it cannot do is no wrong answer."""
    errors = [line for line in problem.splitlines() if "error:" in line]
    says = ("not supported", "is supported of", "is symbolic", "cannot be lowered", "unsupported", "is not known", "has no kernel")
    if problem.startswith("run:"):  # sizes that the export has excluded by a guard
        return any("the program needs" in line and " where " in line for line in errors)
    return problem.startswith("export:") or problem.startswith("compile:") and any(text in line for line in errors for text in says)


def wrong_alone(program, mesh, folder):
    """What is wrong with a program, or nothing."""
    text = next(iter(outcome([program], mesh, folder).values()), "")
    return "" if refused(text) else text


def named_in(problem, programs):
    """Of programs that the compiler refuses by the lines of the batch, by index: what it says of each."""
    lines = module_of(programs).splitlines()
    starts = [n for n, line in enumerate(lines, 1) if line.startswith("    def program")]
    # Some errors name the call of a program, each of which has a line of its own.
    first_call = next(n for n, line in enumerate(lines, 1) if line.startswith("    def forward")) + 2
    said = {}
    for line in problem.splitlines():
        if "error:" in line or re.match(r"\s+[\w.:]+, \d+ uses?: ", line):
            for number in {int(n) for n in re.findall(r"batch\.py:(\d+)", line)}:
                named = number - first_call if number >= first_call else bisect.bisect_right(starts, number) - 1
                says = line.strip().removeprefix("compile: ")
                said.setdefault(named, []).append(says if "error:" in says else f"error: operators that are not supported: {says}")
    return {i: "compile: " + "\n".join(lines) for i, lines in said.items() if 0 <= i < len(programs)}


def find_refused(programs, mesh, folder, problem):
    """Which of several programs fail: those that the message names, or by halves."""
    if len(programs) == 1:
        return [(programs[0], problem)]
    named = named_in(problem, programs) if "not supported" in problem else {}
    rest = [program for i, program in enumerate(programs) if i not in named]
    parts = [rest] if named else [programs[:len(programs) // 2], programs[len(programs) // 2:]]
    found = [(programs[i], text) for i, text in named.items()]
    for part in filter(None, parts):
        now = outcome(part, mesh, folder)
        if -1 in now:
            found += find_refused(part, mesh, folder, now[-1])
        else:
            found += [(part[i], text) for i, text in now.items()]
    return found
