# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What run.py compares: shardc's tools on one side, PyTorch on the other. PyTorch is imported when first needed."""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore", FutureWarning)  # of torch.export, about itself
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "test/models"), str(ROOT / "tools/export")]
STEPS = 20
BUDGET_S = 2  # of one measurement of eager steps, if STEPS take longer
LOSS = "_loss"  # end of the name of a model that has a loss, of which gradients are taken

# The plan of tensor parallelism for GPT-2 of transformers.
GPT2_TP = [part for spec in ("module:*.attn.c_attn=colwise", "module:*.mlp.c_fc=colwise", "module:*.attn.c_proj=rowwise",
                             "module:*.mlp.c_proj=rowwise") for part in ("--place", spec)]


def run(command):
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, check=True).stdout


def peak_bytes(pid):
    """The most resident memory that a process has had since its exec, as Linux counts it; 0 once it is gone. (`ru_maxrss`
    would count what its parent had when it forked, and this parent has loaded PyTorch.)"""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0][1]) * 1024 if lines else 0


def run_measured(command):
    """Standard output, the most memory that the process had in bytes, and its CPU time in ms."""
    process = subprocess.Popen([str(c) for c in command], text=True, stdout=subprocess.PIPE)
    peak, ended = 0, threading.Event()

    def watch():
        nonlocal peak
        while not ended.wait(0.005):
            peak = max(peak, peak_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    ended.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr="(see above)")
    return output, peak, (usage.ru_utime + usage.ru_stime) * 1e3


class Tools:
    def __init__(self, build):
        self.shard_opt, self.shardc, self.shard_run = (build / "bin" / n for n in ("shard-opt", "shardc", "shard-run"))
        for tool in (self.shard_opt, self.shardc, self.shard_run):
            if not tool.exists():
                sys.exit(f"{tool} is not there: run scripts/setup.sh first")
        self.mlir_opt = shutil.which("mlir-opt", path="/usr/lib/llvm-22/bin:" + os.environ["PATH"])


def has_plugin(tools, name):
    """Whether this build has the engine (for MPI, Open MPI's)."""
    folder = tools.shard_run.parents[1] / "lib/shardrt"
    return any((folder / place / f"libshardrt_{name}.so").exists() for place in ("", "openmpi"))


@functools.cache
def module_and_inputs(name):
    """The PyTorch module in eval mode, and its inputs by name."""
    import torch

    import models

    torch.set_grad_enabled(False)
    if name.endswith(LOSS):
        module, inputs = module_and_inputs(name.removesuffix(LOSS))
        return models.Loss(module).eval(), {"ids": next(iter(inputs.values()))}
    if name == "gpt":
        module, _, inputs = models.gpt()
        return module, inputs
    import builders
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return getattr(builders, name)()


class Model:
    """An exported model, made once and again when its sources change, with its inputs and PyTorch's outputs."""

    TITLES = {"gpt": "GPT, 4 layers, 4 x 128 tokens", "gpt2_124m": "GPT-2 124M, 1 x 128 tokens",
              "minilm": "MiniLM, 6 layers, 8 x 11 tokens"}

    def __init__(self, name, folder):
        self.name, self.folder, self.title = name, folder, self.TITLES[name.removesuffix(LOSS)]
        self.has_loss = name.endswith(LOSS)
        self.entry = "gradients" if self.has_loss else "forward"
        self.inputs, self.outputs = folder / f"{name}.inputs.safetensors", folder / f"{name}.outputs.safetensors"
        self.got = folder / f"{name}.got.safetensors"

    @property
    def plan(self):
        import models

        if self.name.removesuffix(LOSS) == "gpt":
            return models.plan()
        return GPT2_TP

    @functools.cached_property
    def path(self):
        sources = [ROOT / "test/models/builders.py", ROOT / "benchmarks/models.py", ROOT / "tools/export/shardc_export.py"]
        digest = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
        path, stamp = self.folder / f"{self.name}.pt2", self.folder / f"{self.name}.stamp"
        if path.exists() and stamp.exists() and stamp.read_text() == digest:
            return path
        import shardc_export
        import torch
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        module, inputs = module_and_inputs(self.name)
        program = shardc_export.export(module, (), inputs)
        torch.export.save(program, path)
        save_file({k: v.contiguous() for k, v in inputs.items()}, self.inputs)
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(module(**inputs)) if isinstance(leaf, torch.Tensor)]
        names = [str(n) for n in program.graph_signature.user_outputs]
        outputs = dict(zip(names, leaves, strict=True))
        if self.has_loss:
            gradient_step(module, inputs)
            outputs |= {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        save_file({n: v.contiguous() for n, v in outputs.items()}, self.outputs)
        stamp.write_text(digest)
        return path

    def compile(self, tools, mesh, *options):
        artifact = self.folder / f"{self.name}.{mesh}.so"
        run([tools.shardc, "compile", self.path, "--mesh", mesh, *self.gradients, *options, "-o", artifact])
        return artifact

    @property
    def gradients(self):
        return ["--gradients", "0"] if self.has_loss else []

    def command(self, tools, artifact, threads):
        return [tools.shard_run, artifact, "--entry", self.entry, "--weights", self.path, "--inputs", self.inputs,
                "--outputs", self.got, "--steps", STEPS + 1, "--threads", threads, "--format", "json"]

    def run(self, tools, artifact, ranks, threads, options=()):
        text, process_bytes, _ = run_measured([*self.command(tools, artifact, threads), "-n", ranks, *options])
        return json.loads(text) | {"process_bytes": process_bytes}

    def run_processes(self, tools, artifact, ranks, communicator):
        """Over this communicator, with one thread each; over MPI under mpirun."""
        command = self.command(tools, artifact, 1)
        environment = os.environ | {"SHARDRT_COMMUNICATOR": communicator}
        if communicator == "mpi":
            command = ["mpirun.openmpi", "-n", ranks, "--oversubscribe", "--bind-to", "none", *command]
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        else:
            command += ["-n", ranks, "--processes"]
        done = subprocess.run([str(c) for c in command], text=True, capture_output=True, env=environment)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
        return json.loads(done.stdout)

    def difference(self):
        """Between the last run and PyTorch, of the largest magnitude of each output; of a gradient, of the largest of its kind (a
        key's bias has none but for rounding)."""
        import numpy as np
        from safetensors.numpy import load_file

        got, want = load_file(self.got), load_file(self.outputs)
        largest = {}
        for name, value in want.items():
            kind = name.split(".")[-1]
            largest[kind] = max(largest.get(kind, 1e-30), float(np.abs(value).max()))
        return max(float(np.abs(got[n] - w).max()) / largest[n.split(".")[-1]] for n, w in want.items())


def gradient_step(module, inputs):
    """Forward and backward of a module that returns its loss."""
    import torch

    module.zero_grad(set_to_none=True)
    with torch.enable_grad():
        module(**inputs).backward()


def eager_ms(model, threads):
    import torch

    module, inputs = module_and_inputs(model.name)
    torch.set_num_threads(threads)

    def step():
        gradient_step(module, inputs) if model.has_loss else module(**inputs)
    with torch.inference_mode(not model.has_loss):
        step()
        times, end = [], time.perf_counter() + BUDGET_S
        while len(times) < STEPS and (not times or time.perf_counter() < end):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def torch_load_ms(path, rounds):
    import torch
    from transformers import modeling_outputs  # noqa: F401  registers the classes that outputs are made of

    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        torch.export.load(path)
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def eager_process_bytes(name):
    code = (f"import sys; sys.path[:0] = {sys.path!r}\nimport sides, torch\nmodule, inputs = sides.module_and_inputs({name!r})\n"
            "torch.set_num_threads(1)\nfor _ in range(3): module(**inputs)\n")
    return run_measured([sys.executable, "-c", code])[1]


def run_dtensor(steps, *what):
    """Sorted step times and peak memory of rank 0 of benchmarks/dtensor_step.py; `what`: "gradients", or nothing."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4",
               ROOT / "benchmarks/dtensor_step.py", steps, *what]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, env=environment)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])
