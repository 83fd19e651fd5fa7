# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript models, traced and scripted, through the whole main job with PyTorch's answers; and files that are
refused."""
import fcntl
import pathlib
import random
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from conftest import BUILD, MODELS, ROOT, run, run_python, tool
from plans import GPT2_TP, MLP_TP, places

PLUGIN = BUILD / "lib/shardc/shardc-torchscript"
pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="built without the TorchScript plugin")

BLOCK_TP = places("module:*{q,k,v,up}_proj=colwise", "module:*{o,down}_proj=rowwise")
RESNET_TP = places("module:layers.*.conv1=colwise", "module:layers.*.conv2=rowwise")
TP = {"mlp": MLP_TP, "block": BLOCK_TP, "gpt": BLOCK_TP, "gpt2": GPT2_TP, "resnet": RESNET_TP,
      "images": places("param:grouped.weight=tp:S(0)", "module:pointwise=rowwise")}
SHAPES = {"mlp": "x=8x64xf32", "block": "x=2x12x48xf32", "gpt": "input_ids=2x12xi64", "resnet": "x=4x3x32x32xf32",
          "images": "0=3x3x23x17xf32"}
NAMES = ["mlp_traced", "mlp_scripted", "block_traced", "block_scripted", "resnet_traced", "resnet_scripted",
         "images_traced", "images_scripted", "gpt_traced", "gpt_scripted", "gpt2_traced"]


@pytest.fixture(scope="session")
def folder():
    target = MODELS / "torchscript"
    sources = [ROOT / "test/models/builders.py", ROOT / "test/models/export_torchscript.py"]
    stamp = target / "stamp"
    target.mkdir(parents=True, exist_ok=True)
    with open(target / ".lock", "w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.stat().st_mtime < max(s.stat().st_mtime for s in sources):
            run_python(sources[1], "-o", target)
            stamp.touch()
    return target


def shape_options(name):
    """Traced models know their inputs."""
    base, form = name.rsplit("_", 1)
    return ["--input", SHAPES[base]] if form == "scripted" else []


MESHES = {"one": ("tp=1", 1), "dp2": ("dp=2", 2), "tp2": ("tp=2", 2), "tp3": ("tp=3", 3), "dp2xtp2": ("dp=2,tp=2", 4)}


@pytest.mark.parametrize("name,mesh", [(n, m) for n in NAMES for m in ("one", "dp2xtp2")]
                         + [(n, m) for n in ("resnet_traced", "images_scripted") for m in ("dp2", "tp2", "tp3")])
def test_forward(folder, tmp_path, name, mesh):
    axes, ranks = MESHES[mesh]
    options = TP[name.rsplit("_", 1)[0]] if "tp" in axes else []
    options = options + (places("input:*=dp:S(0)") if "dp" in axes else [])
    model, program, out = folder / f"{name}.pt", tmp_path / "m.so", tmp_path / "out.safetensors"
    run(tool("shardc"), "compile", model, *shape_options(name), "--mesh", axes, *options, *places("output:0=R"),
        "-o", program)
    run(tool("shard-run"), "-n", ranks, program, "--weights", model, "--inputs", folder / f"{name}.inputs.safetensors",
        "--outputs", out)
    (got,), want = load_file(out).values(), load_file(folder / f"{name}.output.safetensors")["output"]
    assert got.shape == want.shape
    assert np.abs(got.astype(np.float64) - want).max() <= 1e-4 * np.abs(want).max()


class Convolves(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.body = op

    def forward(self, x):
        return torch.relu(self.body(x))


def saved(module, x, form, path):
    made = torch.jit.trace(module.eval(), (x,)) if form == "traced" else torch.jit.script(module.eval())
    made.save(str(path))
    return path, [] if form == "traced" else ["--input", f"x={'x'.join(map(str, x.shape))}xf32"]


@pytest.mark.parametrize("form", ["traced", "scripted"])
@pytest.mark.parametrize("op,shape", [
    (torch.nn.Conv1d(6, 9, 4, stride=2, padding=1, dilation=2, groups=3), (2, 6, 17)), (torch.nn.Conv1d(3, 4, 3), (3, 9)),
    (torch.nn.Conv3d(2, 3, 3), (2, 2, 5, 6, 7)), (torch.nn.ConvTranspose1d(3, 4, 3, stride=2, output_padding=1), (2, 3, 5)),
    (torch.nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2), (2, 4, 5, 5))],
    ids=["conv1d", "no batch", "conv3d", "conv_transpose1d", "conv_transpose2d"])
def test_convolutions(tmp_path, form, op, shape):
    """A trace has one operator for all convolutions."""
    torch.manual_seed(0)
    module, x = Convolves(op), torch.randn(shape)
    path, shapes = saved(module, x, form, tmp_path / "m.pt")
    save_file({"x": x.numpy()}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", path, *shapes, "--mesh", "tp=1", "-o", tmp_path / "m.so")
    run(tool("shard-run"), "-n", 1, tmp_path / "m.so", "--weights", path, "--inputs", tmp_path / "in.safetensors", "--outputs",
        tmp_path / "out.safetensors")
    (got,), want = load_file(tmp_path / "out.safetensors").values(), module(x).detach().numpy()
    assert got.shape == want.shape and np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("name,place", [
    ("gpt2_traced", "model.transformer.h.1.mlp.c_fc"), ("block_scripted", "up_proj"),
    ("resnet_scripted", "layers.1.conv2")])
def test_locations(folder, name, place):
    text = run(tool("shard-opt"), folder / f"{name}.pt", *shape_options(name), "--mlir-print-debuginfo").stdout
    assert f'fused<"{place}">[' in text
    assert "builders.py" in text or "modeling_gpt2.py" in text


def import_error(path, *options):
    done = run(tool("shard-opt"), path, *options, check=False)
    assert done.returncode == 1, done.stderr[-2000:]
    return done.stderr


class Unsupported(torch.nn.Module):
    def forward(self, x):
        y = torch.fft.fft(x).real
        for _ in range(3):
            y = torch.special.bessel_j0(y) + torch.special.airy_ai(y)
        return y


def scripted(module, path):
    torch.jit.script(module.eval()).save(str(path))
    return path


def test_all_unsupported_ops_are_reported_together(tmp_path):
    error = import_error(scripted(Unsupported(), tmp_path / "m.pt"), "--input", "x=8xf32")
    assert "aten.special_bessel_j0.default, 3 uses" in error and "aten.special_airy_ai.default, 3 uses" in error
    assert "test_torchscript.py:" in error


def test_inputs_without_shape(folder, tmp_path):
    path = folder / "block_scripted.pt"
    assert "the shapes of these inputs are not known: 'x' (Tensor)" in import_error(path)
    assert "no such inputs: 'y=3xf32'; forward has x" in import_error(path, "--input", "x=2x12x48xf32", "--input", "y=3xf32")
    assert "is no shape and element type" in import_error(path, "--input", "x=2x12x48xf33")
    # The shape is wrong for the model: where, and why.
    error = import_error(path, "--input", "x=2x12x47xf32")
    assert "module 'ln_1'" in error and "normalized_shape" in error


class Restores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    @torch.jit.export
    def __getstate__(self):
        return (self.weight, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]):
        self.weight = state[0]
        self.training = state[1]

    def forward(self, x):
        return x + self.weight


class Reads(torch.nn.Module):
    def forward(self, x):
        return x + torch.from_file("/etc/passwd", False, 3)


class Endless(torch.nn.Module):
    def forward(self, x):
        n = 0
        while n >= 0:
            n = (n + 1) % 7
        return x


def test_hostile_models_are_refused(tmp_path):
    assert "is not run" in import_error(scripted(Restores(), tmp_path / "a.pt"), "--input", "x=3xf32")
    assert "'aten::from_file' is not run" in import_error(scripted(Reads(), tmp_path / "b.pt"), "--input", "x=3xf32")
    assert "takes more than" in import_error(scripted(Endless(), tmp_path / "c.pt"), "--input", "x=3xf32")


class DependsOnValues(torch.nn.Module):
    def forward(self, x):
        return x if bool(x.sum() > 0) else -x


def test_control_flow_on_values_of_tensors(tmp_path):
    error = import_error(scripted(DependsOnValues(), tmp_path / "m.pt"), "--input", "x=3xf32")
    assert "depends on the values of a tensor" in error and "test_torchscript.py" in error


def rewrite(source, target, change):
    """The archive with the bytes of some records changed, and checksums that fit."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if data:
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                del data[at:at + rng.randint(1, 40)]
            elif kind == 2:
                data[at:at] = data[rng.randrange(len(data)):][:rng.randint(1, 40)]
            else:
                data[at:at + 4] = struct.pack("<i", rng.choice([-1, 0, 2**31 - 1]))
    return bytes(data)


def check_broken(path):
    """A module or an error, in time."""
    done = run(tool("shard-opt"), path, "-o", "/dev/null", check=False, timeout=120)
    assert done.returncode in (0, 1), f"{path}: status {done.returncode}\n{done.stderr[-2000:]}"
    assert done.returncode == 0 or "error:" in done.stderr


class Frozen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 6, bias=False), torch.nn.Linear(6, 4, bias=False)
        self.scale = torch.nn.Parameter(torch.randn(4), requires_grad=False)

    def forward(self, x):
        h = self.up(x)
        with torch.no_grad():
            largest = h.abs().amax(1, keepdim=True)
            rows = h[:, :4]
        return ((self.down(h / largest) + rows) * self.scale).pow(2).mean()


def test_gradients_of_scripted_regions(tmp_path):
    """Inside no_grad nothing has a gradient, and neither have frozen parameters."""
    torch.manual_seed(0)
    model, x = Frozen(), torch.randn(6, 8)
    model(x).backward()
    wants = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    torch.jit.script(model).save(tmp_path / "m.pt")
    save_file({"x": x.numpy()}, tmp_path / "in.safetensors")
    for mesh, plan in {"r=1": [], "dp=2,tp=2": places("input:x=dp:S(0)", "param:up.weight=tp:S(0)")}.items():
        run(tool("shardc"), "compile", tmp_path / "m.pt", "--input", "x=6x8xf32", "--mesh", mesh, *plan, "--gradients", 0, "-o", tmp_path / "m.so")
        run(tool("shard-run"), tmp_path / "m.so", "--entry", "gradients", "--weights", tmp_path / "m.pt", "--inputs",
            tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
        got = load_file(tmp_path / "out.safetensors")
        assert "scale" not in got
        for name, want in wants.items():
            np.testing.assert_allclose(got[name], want.numpy(), rtol=1e-4, atol=1e-6)


def test_broken_archives(folder, tmp_path):
    """What is wrong on the outside; thousands more without libtorch are in the unit test archive_test."""
    whole = (folder / "mlp_traced.pt").read_bytes()
    broken = tmp_path / "broken.pt"
    for size in (0, 3, 100, len(whole) // 2, len(whole) - 10):
        broken.write_bytes(whole[:size])
        check_broken(broken)
    bomb = tmp_path / "bomb.pt"
    with zipfile.ZipFile(folder / "mlp_traced.pt") as old, zipfile.ZipFile(bomb, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("mlp_traced/code/bomb.py", b"\0" * (300 << 20), zipfile.ZIP_DEFLATED)
    assert "would unpack to" in import_error(bomb)


def test_broken_code_and_objects(folder, tmp_path):
    """Mutations of what libtorch reads, with checksums that fit."""
    rng = random.Random(5)
    for i in range(24):
        source = folder / rng.choice(["mlp_traced.pt", "block_traced.pt"])
        part = rng.choice(["data.pkl", "constants.pkl", ".py", ".debug_pkl"])
        broken = pathlib.Path(tmp_path / f"{i}.pt")
        rewrite(source, broken, lambda name, data: mutate(data, rng) if name.endswith(part) else data)
        check_broken(broken)
