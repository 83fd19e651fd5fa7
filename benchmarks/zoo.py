#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of `transformers`, torchvision, timm and torch.nn that nobody chose for this compiler: random weights from configurations, each exported,
compiled and run on 1 rank, dp2, tp2 and dp2 x tp2, and compared with PyTorch.

  .venv/bin/python benchmarks/zoo.py                              all of those whose libraries are there
  .venv/bin/python benchmarks/zoo.py --with-libraries             installs torchvision and timm from PyPI into .cache/zoo first (200 MB)
  .venv/bin/python benchmarks/zoo.py --only 'timm/*' --jobs 2     some of them
  .venv/bin/python benchmarks/zoo.py --json zoo.json --resume     goes on with what zoo.json does not have yet

Each model has a process of its own with a time limit. A model is right where every output on every mesh is within 1e-4 of the largest number of PyTorch's,
and refused where export or the compiler says why it takes none; what is refused for operators is grouped by operator. Tensor parallelism follows
the model's own plan where `transformers` has one; otherwise linears and convolutions are sharded by columns and rows in turn (`--plan generic`: always)."""
import argparse
import collections
import fnmatch
import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("SHARDC_BUILD", ROOT / "build"))
LIBRARIES = ROOT / ".cache/zoo"
PACKAGES = ("torchvision==0.28.0", "timm==1.0.31", "pillow==13.0.0")
MESHES = {"1": "r=1", "dp2": "dp=2", "tp2": "tp=2", "dp2 x tp2": "dp=2,tp=2"}
TOLERANCE = 1e-4
VERDICTS = ("right", "wrong", "refused", "crashed", "hung", "not exported", "not built")
LAST = 6000  # characters of what a command said


def install(folder):
    """Without dependencies: they are in .venv already, and others would bring another PyTorch."""
    stamp = folder / "packages.txt"
    if not stamp.exists() or stamp.read_text() != " ".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", folder, *PACKAGES], check=True)
        stamp.write_text(" ".join(PACKAGES))


def library(name):
    return name.partition("/")[0]


def all_names(libraries):
    import zoo_nn
    import zoo_transformers
    import zoo_vision
    found = [f"torch.nn/{n}" for n in zoo_nn.names()] + [f"transformers/{n}" for n in zoo_transformers.ROWS]
    for one in ("torchvision", "timm"):
        if (libraries / one).exists():
            found += [f"{one}/{n}" for n in zoo_vision.names(one)]
        else:
            print(f"{one} is not installed, so none of its models are here: --with-libraries installs it", file=sys.stderr)
    return found


def build(name):
    """A module, its arguments by position and by name, and its own plan."""
    import zoo_nn
    import zoo_transformers
    import zoo_vision
    one = name.partition("/")[2]
    if library(name) == "transformers":
        module, inputs = zoo_transformers.build(one)
        return module, (), inputs, zoo_transformers.plan(module)
    if library(name) == "torch.nn":
        return *zoo_nn.build(one), {}, {}
    module, inputs = zoo_vision.build(library(name), one)
    return module, tuple(inputs.values()), {}, {}


COLUMNS = re.compile(r"(^|[._])(q|k|v|query|key|value|to_q|to_k|to_v|q_lin|k_lin|v_lin|[qkv]_proj|qkv|qkv_proj|in_proj|c_attn|query_key_value|wi|wi_0|wi_1|fc1|up|gate|up_proj|"
                     r"gate_proj|gate_up_proj|c_fc|fc_in|lin1|linear1|intermediate\.dense|intermediate_dense|dense_h_to_4h|w1|w3)$")
ROWS = re.compile(r"(^|[._])(o|wo|o_proj|out_proj|out_lin|c_proj|fc2|down|down_proj|fc_out|lin2|linear2|output\.dense|output_dense|proj|dense_4h_to_h|to_out|w2|dense)$")


def generic_plan(module, used):
    """Placements of the modules of which the program uses the weight: linears by what they are called; where none has such a name, linears and convolutions by columns and rows in turn."""
    import torch
    kinds = (torch.nn.Linear, torch.nn.Conv2d, torch.nn.Conv1d)
    layers = [n for n, m in module.named_modules() if n and (isinstance(m, kinds) or type(m).__name__ == "Conv1D") and getattr(m, "groups", 1) == 1
              and f"{n}.weight" in used]
    named = {n: "colwise" if COLUMNS.search(n) else "rowwise" for n in layers if COLUMNS.search(n) or ROWS.search(n)}
    if "colwise" in named.values():
        return {"modules": named}
    return {"modules": {n: ("colwise", "rowwise")[i % 2] for i, n in enumerate(layers)}} if layers else {}


def used_parameters(program):
    """Names of the parameters that ops of their own module read in the exported program: others a plan places by their own names."""
    names = program.graph_signature.inputs_to_parameters

    def module_of(node):
        stack = node.meta.get("nn_module_stack") or {}
        return list(stack.values())[-1][0] if stack else None

    return {names[node.name] for node in program.graph.nodes if node.op == "placeholder" and node.name in names
            and any(module_of(user) == names[node.name].rpartition(".")[0] for user in node.users)}


def tensor_plan(module, own, kind, used):
    return {"tp_plan": own} if own and kind == "own" else generic_plan(module, used)


def tensors(value):
    import torch
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def difference(got, want):
    """What is wrong with an output, or nothing."""
    import torch
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{list(got.shape)} {got.dtype} instead of {list(want.shape)} {want.dtype}"
    if not want.numel():
        return ""
    if not want.dtype.is_floating_point:
        other = int((got != want).sum())
        return f"{other} of {want.numel()} elements differ" if other else ""
    got, want = got.double(), want.double()
    finite = want.isfinite()
    same = torch.where(finite, got.isfinite(), (got == want) | (got.isnan() & want.isnan()))
    if not bool(same.all()):
        return f"{int((~same).sum())} of {want.numel()} elements are infinite or no numbers on one side only"
    scale = float(want[finite].abs().max()) if bool(finite.any()) else 0.0
    error = float((got - want)[finite].abs().max()) if bool(finite.any()) else 0.0
    return f"differs by {error:.3g}, the largest number is {scale:.3g}" if error > TOLERANCE * max(scale, 1e-30) else ""


def command(seconds, *words):
    """Runs one; whether it was right, or what it was."""
    try:
        done = subprocess.run([str(w) for w in words], text=True, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "hung", f"{words[0]} did not end in {seconds} s"
    if done.returncode < 0 or done.returncode in (134, 139):
        return "crashed", f"signal {-done.returncode}\n{done.stderr[-LAST:]}"
    internal = re.search(r"(?i)internal error|PLEASE submit a bug report|cannot be localised|Assertion .* failed", done.stderr)
    return ("right", "") if not done.returncode else ("crashed" if internal else "refused", done.stderr[-LAST:])


def on_mesh(mesh, folder, plan, names, wants, seconds):
    """A verdict on one mesh and its reason."""
    from safetensors.torch import load_file
    (folder / "plan.yaml").write_text(json.dumps(plan))
    words = [BUILD / "bin/shardc", "compile", folder / "model.pt2", "--mesh", MESHES[mesh], "-o", folder / "model.so"]
    verdict, text = command(seconds, *words, *(["--plan", folder / "plan.yaml"] if plan else []))
    if verdict != "right":
        return verdict, text
    verdict, text = command(seconds, BUILD / "bin/shard-run", folder / "model.so", "--manifest")
    manifest = subprocess.run([BUILD / "bin/shard-run", folder / "model.so", "--manifest"], text=True, capture_output=True).stdout
    outputs = [o["name"] for o in json.loads(manifest)["entries"][0]["outputs"] if o["kind"] == "user"]
    verdict, text = command(seconds, BUILD / "bin/shard-run", folder / "model.so", "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors",
                            "--outputs", folder / "out.safetensors", "--timeout", 60, "--threads", 1)
    if verdict != "right":
        return ("crashed" if verdict == "refused" else verdict), text
    got = load_file(folder / "out.safetensors")
    if len(outputs) != len(wants):
        return "wrong", f"{len(outputs)} outputs instead of {len(wants)}"
    for i, (output, want) in enumerate(zip(outputs, wants)):
        if problem := difference(got[output], want):
            return "wrong", f"output {i} ({output}): {problem}"
    return "right", ""


def examine(name, folder, kind, seconds, meshes):
    """What becomes of one model: {"verdict", "reason", "meshes": {mesh: [verdict, reason]}}."""
    import torch
    from safetensors.torch import save_file
    sys.path.insert(0, str(ROOT / "tools/export"))
    import shardc_export
    shardc_export.hide_warnings()
    torch.set_num_threads(1)
    try:
        module, args, kwargs, own = build(name)
        with torch.no_grad():
            wants = [t.detach().contiguous().clone() for t in tensors(module(*args, **kwargs))]
    except Exception as error:  # noqa: BLE001 (of any library)
        return {"verdict": "not built", "reason": f"{type(error).__name__}: {error}"[:LAST]}
    try:
        program = shardc_export.export(module, args, kwargs)
        torch.export.save(program, folder / "model.pt2")
    except Exception as error:  # noqa: BLE001 (of PyTorch, of any kind)
        return {"verdict": "not exported", "reason": f"{type(error).__name__}: {error}"[:LAST]}
    inputs = dict(zip(program.graph_signature.user_inputs, tensors((args, kwargs)), strict=True))
    save_file({n: t.contiguous().clone() for n, t in inputs.items()}, folder / "in.safetensors")
    data = {"inputs": {n: {"dp": "S(0)"} for n, t in inputs.items() if t.dim()}}
    sharded = tensor_plan(module, own, kind, used_parameters(program))
    plans = {"1": {}, "dp2": data, "tp2": sharded, "dp2 x tp2": data | sharded}
    result = {"verdict": "right", "reason": "", "plan": "own" if "tp_plan" in sharded else "generic", "meshes": {}}
    for mesh in meshes:
        verdict, text = on_mesh(mesh, folder, plans[mesh], list(inputs), wants, seconds)
        result["meshes"][mesh] = [verdict, text]
        if missing_operators(text):
            break  # those of one mesh are those of all
    for worst in ("wrong", "crashed", "hung", "refused"):
        found = [(mesh, text) for mesh, (verdict, text) in result["meshes"].items() if verdict == worst]
        if found:
            return result | {"verdict": worst, "reason": f"{', '.join(mesh for mesh, _ in found)}: {found[0][1]}"}
    return result


def missing_operators(text):
    """The operators that the importer says it does not have."""
    if "operators that are not supported" not in text:
        return []
    return sorted(set(re.findall(r"^\s+([\w.]+(?:::[\w.]+)?), \d+ uses?:", text, re.M))) or ["?"]


def why(result):
    """The reason in a line."""
    if found := missing_operators(result["reason"]):
        return "operators: " + ", ".join(found)
    lines = [line.strip() for line in result["reason"].splitlines() if line.strip()]
    chosen = [line for line in lines if "error:" in line] or lines
    return chosen[0][:260] if chosen else ""


def examine_alone(name, folder, options):
    os.setsid()  # so that it ends with all that it has started
    if library(name) in ("torchvision", "timm"):
        sys.path.append(str(options.libraries))  # after .venv
    (folder / "result.json").write_text(json.dumps(examine(name, folder, options.plan, options.limit, options.meshes.split(","))))


class Child:
    """A model in a process of its own. What all models import is there already when it begins."""

    def __init__(self, name, options):
        self.name, self.begin, self.limit = name, time.monotonic(), options.limit * 5
        self.folder = tempfile.TemporaryDirectory(prefix="zoo")
        self.process = multiprocessing.get_context("fork").Process(target=examine_alone, args=(name, pathlib.Path(self.folder.name), options))
        self.process.start()

    def result(self):
        """Once it has ended; nothing before."""
        self.process.join(0.2)
        late = self.process.is_alive() and time.monotonic() - self.begin > self.limit
        if self.process.is_alive() and not late:
            return None
        file = pathlib.Path(self.folder.name) / "result.json"
        if late:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
            result = {"verdict": "hung", "reason": f"the model took more than {self.limit} s"}
        elif file.exists():
            result = json.loads(file.read_text())
        else:
            result = {"verdict": "not built", "reason": f"the process ended with {self.process.exitcode}"}
        self.folder.cleanup()
        return result | {"seconds": round(time.monotonic() - self.begin, 1)}


def examine_all(names, options):
    """Yields names and results as they come."""
    import torch
    import transformers  # noqa: F401 (so that no model has to)
    torch.set_num_threads(1)  # a process with threads cannot be divided
    waiting, running = list(names), []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            running.append(Child(waiting.pop(0), options))
        for child in list(running):
            if result := child.result():
                running.remove(child)
                yield child.name, result


def table(results):
    """How many are what, and why they are not right."""
    libraries = list(dict.fromkeys(library(n) for n in results))
    print(f"\n{'':14}" + "".join(f"{one:>14}" for one in [*libraries, "all"]))
    for verdict in VERDICTS:
        of = [n for n, r in results.items() if r["verdict"] == verdict]
        if of:
            print(f"{verdict:14}" + "".join(f"{sum(library(n) == one for n in of):>14}" for one in libraries) + f"{len(of):>14}")
    for verdict in VERDICTS[1:]:
        groups = collections.defaultdict(list)
        for name, result in results.items():
            if result["verdict"] == verdict:
                for reason in missing_operators(result["reason"]) or [why(result)]:
                    groups[reason].append(name)
        if groups:
            print(f"\n{verdict}:")
        for reason, of in sorted(groups.items(), key=lambda item: -len(item[1])):
            print(f"  {reason}\n      {len(of)}: {', '.join(of)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with-libraries", action="store_true", help="install torchvision and timm into .cache/zoo")
    parser.add_argument("--only", action="append", help="patterns of names, such as 'transformers/*', in the order in which they run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=120, help="seconds that a command may take (default 120)")
    parser.add_argument("--meshes", default=",".join(MESHES), help="some of " + ", ".join(MESHES))
    parser.add_argument("--plan", choices=("own", "generic"), default="own", help="whose tensor-parallel plan")
    parser.add_argument("--json", type=pathlib.Path, help="where results go as they come")
    parser.add_argument("--resume", action="store_true", help="keep what the file of --json has")
    parser.add_argument("--list", action="store_true", help="print the names and do nothing else")
    parser.add_argument("--libraries", type=pathlib.Path, default=LIBRARIES, help="where torchvision and timm are (default .cache/zoo)")
    options = parser.parse_args()
    if options.with_libraries:
        install(options.libraries)
    every = all_names(options.libraries)
    names = list(dict.fromkeys(n for pattern in options.only or ["*"] for n in every if fnmatch.fnmatch(n, pattern)))
    if options.list:
        return print("\n".join(names))
    results = json.loads(options.json.read_text()) if options.resume and options.json.exists() else {}
    wanted = [n for n in names if n not in results]
    for name, result in examine_all(wanted, options):
        results[name] = result
        print(f"{name:44}{result['seconds']:7.1f} s  {result['verdict']:13} {why(result) if result['verdict'] != 'right' else ''}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    shown = {n: results[n] for n in names}
    table(shown)
    return int(any(r["verdict"] in ("wrong", "crashed", "hung") for r in shown.values()))


if __name__ == "__main__":
    sys.exit(main())
