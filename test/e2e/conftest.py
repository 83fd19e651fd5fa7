# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""End-to-end tests: exported models, compiled and run on several ranks, against PyTorch's own answers."""
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from python_scripts import run_script

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHARDC_BUILD", ROOT / "build"))
MODELS = BUILD / "test-models"


def tool(name):
    return BUILD / "bin" / name


def on_device(command):
    """Commands that compile and run programs do so for the device that SHARDC_TEST_DEVICE names, so that any of these tests can be
    run for it: SHARDC_TEST_DEVICE=emulated pytest test/e2e/test_small_models.py."""
    device = os.environ.get("SHARDC_TEST_DEVICE")
    if device and command[:2] == [str(tool("shardc")), "compile"]:
        return [*command, "--target", "cuda:emulated" if device == "emulated" else "cuda"]
    if device and command[0] == str(tool("shard-run")) and "--manifest" not in command:
        return [*command, "--device", device]
    return command


ORDERS = ("eager", "lazy", "random:3")


def in_other_orders(command, done, **kwargs):
    """Where SHARDC_TEST_ORDERS is set, what ran on the emulated device runs again with its streams in each of these orders: it ends in
    the same way, and its outputs have the same bits, so that one comparison of them holds for all orders. A command that gets an environment
    of its own, and one that writes no outputs, runs once."""
    orders = os.environ.get("SHARDC_TEST_ORDERS", "").split()
    if not orders or command[0] != str(tool("shard-run")) or "emulated" not in command or "--outputs" not in command or "env" in kwargs:
        return
    outputs = pathlib.Path(command[command.index("--outputs") + 1])
    first = outputs.read_bytes() if done.returncode == 0 else b""
    for order in orders:
        again = subprocess.run(command, text=True, capture_output=True, env=os.environ | {"CUDA_EMULATED_ORDER": order}, **kwargs)
        assert again.returncode == done.returncode, f"{' '.join(command)} ended with {again.returncode} in the order {order}:\n{last_of(again)}"
        assert done.returncode or outputs.read_bytes() == first, f"{' '.join(command)}: other bits in the order {order}"


def last_of(done):
    """The ends of what a command wrote to its output and to its error output: some tools say on the first what was wrong."""
    streams = {"output": done.stdout, "error output": done.stderr}
    return "\n".join(f"-- the end of its {name}:\n{text[-6000:]}" for name, text in streams.items() if text) or "it said nothing"


def run(*command, timeout=900, check=True, **kwargs):
    """The limit is a guard against commands that hang: no command takes a tenth of it on an idle machine."""
    command = on_device([str(c) for c in command])
    done = subprocess.run(command, text=True, capture_output=True, timeout=timeout, **kwargs)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)} failed with {done.returncode}:\n{last_of(done)}")
    in_other_orders(command, done, timeout=timeout, **kwargs)
    return done


def run_python(script, *arguments, timeout=900):
    """As run(sys.executable, script, ...), which takes some seconds more: see python_scripts.py."""
    done = run_script(script, *arguments, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"{' '.join(done.args)} failed with {done.returncode}:\n{last_of(done)}")
    return done


class Model:
    """An exported model with its inputs and PyTorch's outputs: that of the build if it is there and newer than
    what makes it, else exported once, and again when the exporter changes."""

    def __init__(self, name):
        self.name = name
        sources = [ROOT / "test/models/builders.py", ROOT / "test/models/export_models.py",
                   ROOT / "tools/export/shardc_export.py"]
        built = BUILD / "test/models" / f"{name}.outputs.safetensors"
        fresh = built.exists() and built.stat().st_mtime > max(s.stat().st_mtime for s in sources)
        folder = built.parent if fresh else MODELS
        self.path = folder / f"{name}.pt2"
        self.inputs = folder / f"{name}.inputs.safetensors"
        self.outputs = folder / f"{name}.outputs.safetensors"
        if not fresh:
            self.export(sources)

    def export(self, sources):
        digest = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
        stamp = MODELS / f"{self.name}.stamp"
        MODELS.mkdir(parents=True, exist_ok=True)
        with open(MODELS / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists() or stamp.read_text() != digest:
                run_python(ROOT / "test/models/export_models.py", "-o", MODELS, self.name)
                stamp.write_text(digest)


@pytest.fixture
def all_orders(monkeypatch):
    """Programs of a test run on the emulated device with its streams in every order."""
    monkeypatch.setenv("CUDA_EMULATED_ORDER", ORDERS[0])
    monkeypatch.setenv("SHARDC_TEST_ORDERS", " ".join(ORDERS[1:]))


@pytest.fixture(autouse=True, scope="session")
def code_of_kernels(tmp_path_factory):
    """Programs that run again, in other orders or on more ranks, find the kernels that the emulated device has compiled."""
    os.environ.setdefault("CUDA_EMULATED_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))


@pytest.fixture(scope="session")
def model():
    return functools.cache(Model)


class Program:
    """A compiled model. `run` checks every output against PyTorch's, relative to the output's scale."""

    def __init__(self, source, path, world, options):
        self.source, self.path, self.world, self.options = source, path, world, options

    def run(self, tmp_path, tolerance=1e-4, inputs=None, expected=None, options=()):
        out = tmp_path / "outputs.safetensors"
        run(tool("shard-run"), "-n", self.world, self.path, "--weights", self.source.path,
            "--inputs", inputs or self.source.inputs, "--outputs", out, *options)
        got, want = load_file(out), expected or load_file(self.source.outputs)
        assert got.keys() == want.keys()
        for name, reference in want.items():
            assert got[name].shape == reference.shape, name
            assert got[name].dtype == reference.dtype, name
            scale = max(np.abs(reference.astype(np.float64)).max(initial=0.0), 1e-30)
            error = np.abs(got[name].astype(np.float64) - reference).max(initial=0.0) / scale
            assert error <= tolerance, f"{name}: differs by {error:.3g} of its scale"
        return got



@pytest.fixture
def explain(model):
    """What `shardc explain` says of a model for a mesh and placement options."""
    def report(name, mesh, *options):
        command = (tool("shardc"), "explain", model(name).path, "--mesh", mesh, *options, "--format", "json")
        return json.loads(run(*command).stdout)

    return report


@pytest.fixture
def totals(explain):
    """Collectives by kind: {"all_reduce": 5, ...}."""
    def count(name, mesh, *options):
        return {kind: entry["count"] for kind, entry in explain(name, mesh, *options)["totals"].items() if entry["count"]}

    return count


@pytest.fixture
def compile_model(model, tmp_path):
    def build(name, mesh, *options):
        source = model(name)
        path = tmp_path / f"{name}.so"
        options = ("--mesh", mesh, *options)
        run(tool("shardc"), "compile", source.path, *options, "-o", path)
        world = int(np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")]))
        return Program(source, path, world, options)

    return build
