# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `shardc compile` refuses: models, meshes, plans, targets, outputs, memory."""

import pytest

from conftest import Model, run, run_python, tool
from plans import MLP_TP, places
from test_bad_input import refused


@pytest.fixture
def compile_mlp(tmp_path):
    def command(*options, mesh="tp=2", output=None, source=None):
        return (tool("shardc"), "compile", source or Model("mlp").path, "--mesh", mesh, *options,
                "-o", output or tmp_path / "out.so")

    return command


def test_models_that_cannot_be_read(compile_mlp, tmp_path):
    bad = tmp_path / "bad.pt2"
    refused(*compile_mlp(source=bad), says=["bad.pt2", "No such file"])
    refused(*compile_mlp(source=tmp_path), says=[str(tmp_path), "Is a directory"])
    good = Model("mlp").path.read_bytes()
    for contents in (b"", b"junk", *(good[:len(good) * cut // 8] for cut in range(1, 8)), good[:-1]):
        bad.write_bytes(contents)
        refused(*compile_mlp(source=bad), says="error:")
    assert not (tmp_path / "out.so").exists()


def test_ops_that_are_not_known(compile_mlp, tmp_path):
    script, model = tmp_path / "make.py", tmp_path / "unknown.pt2"
    script.write_text(f"""
import torch
class Block(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x) + torch.special.bessel_j0(x)[0]
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()
    def forward(self, x):
        return self.first(x) + self.second(x)
torch.export.save(torch.export.export(Model(), (torch.ones(4, 4),)), {str(model)!r})
""")
    run_python(script)
    refused(*compile_mlp(source=model), says=[
        "operators that are not supported: 2, uses: 4", "aten.linalg_svdvals.default, 2 uses: first (make.py:5), second",
        "aten.special_bessel_j0.default, 2 uses: first (make.py:5), second"])


def test_sizes_that_are_read_from_tensors(compile_mlp, tmp_path):
    script, model = tmp_path / "make.py", tmp_path / "item.pt2"
    script.write_text(f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x, n):
        length = n.item()
        torch._check(length >= 0)
        torch._check(length <= 4)
        return x[:length].sum(0), x[n]
torch.export.save(torch.export.export(Model(), (torch.ones(4, 4), torch.tensor(2)), strict=False), {str(model)!r})
""")
    run_python(script)
    refused(*compile_mlp(source=model), says=["the number 'item' is read from a tensor when the program runs", "make.py:8"])


def test_indices_of_bytes(compile_mlp, tmp_path):
    script, model = tmp_path / "make.py", tmp_path / "bytes.pt2"
    script.write_text(f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x, n):
        return x.index_put((n,), torch.tensor(0.5))
torch.export.save(torch.export.export(Model(), (torch.ones(4, 4), torch.ones(4, dtype=torch.uint8))), {str(model)!r})
""")
    run_python(script)
    refused(*compile_mlp(source=model), says=["an index of bytes, which is a mask to PyTorch, is not supported", "make.py:5"])


@pytest.mark.parametrize("mesh, says", [
    ("tp", "'tp' is not NAME=SIZE"), ("tp=0", "size of at least 1"), ("tp=-2", "size of at least 1"),
    ("tp=2,tp=2", "axis 'tp' is given twice"), ("", "no mesh is given"), ("tp=65537", "the most that a mesh may have"),
    ("a=65536,b=65536,c=65536", "the most that a mesh may have"), ("tp=99999999999999999999", "'tp=99999999999999999999'")])
def test_meshes(compile_mlp, mesh, says):
    refused(*compile_mlp(mesh=mesh), says=says)


def test_all_mistakes_of_a_plan_at_once(compile_mlp):
    refused(*compile_mlp(*places("param:upp.weight=tp:S(0)", "param:up.weight=dp:S(0)", "param:down.weight=tp:S(7)",
                                 "module:dwon=colwise", "input:y=tp:S(0)")),
            says=["'upp.weight' matches no parameter", "up.weight", "no axis 'dp'; it has tp", "dim 7 is out of range",
                  "'dwon' matches no module of the model; the nearest are down", "'y' matches no input"])
    refused(*compile_mlp(*places("module:up=colwize", "junk", "module:dwon=colwise", "param:up.weight=dp:S(0)")),
            says=["unknown style 'colwize'", "--place junk: not KIND", "'dwon' matches no module", "no axis 'dp'; it has tp"])


def test_a_mesh_over_which_nothing_is_sharded(compile_mlp):
    warning = "nothing is sharded: every rank computes the whole model"
    assert warning in run(*compile_mlp()).stderr
    assert warning not in run(*compile_mlp(mesh="tp=1")).stderr
    assert warning not in run(*compile_mlp(*MLP_TP)).stderr


def test_outputs_that_cannot_be_written(compile_mlp, tmp_path):
    refused(*compile_mlp(output=tmp_path / "none" / "out.so"), says=["out.so", "there is no folder"])
    refused(*compile_mlp(output=tmp_path), says=[str(tmp_path), "not a regular file"])
    refused(*compile_mlp(output="/dev/null"), says="not a regular file")
    refused(*compile_mlp("--save-stages", "/dev/null/stages"), says="/dev/null/stages")


def test_targets(compile_mlp):
    refused(*compile_mlp("--target", "abacus"), says="unknown target 'abacus'")
    refused(*compile_mlp("--target", "cpu:x86-64-v33"), says=["unknown processor 'x86-64-v33'", "x86-64-v3"])


def test_a_failed_compilation_keeps_the_old_artifact(compile_mlp, tmp_path):
    out = tmp_path / "out.so"
    run(*compile_mlp(output=out))
    before = out.read_bytes()
    refused(*compile_mlp("--memory-limit", "1", output=out), says="the limit is 1 byte")
    assert out.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["out.so"]


def test_memory_limit(compile_mlp, tmp_path):
    # By hand, for a rank of two: half of up (256 x 64, and its bias) and of down, all of the rest.
    parameters = 4 * (64 + 64 + 256 * 64 // 2 + 256 // 2 + 64 * 256 // 2 + 64)
    parameters_of_up = 4 * (256 * 64 // 2 + 256 // 2)
    message = refused(*compile_mlp(*MLP_TP, "--memory-limit", "64KiB"), says=[
        "'forward' needs", "on rank 0 and 1 more, the limit is 65536 bytes (64.0 KiB)",
        "most of it by module is for", f"{parameters_of_up} bytes", ": up, parameters", f"slices of 6 parameters: {parameters} bytes", "32768 bytes (32.0 KiB): up.weight",
        "arena of intermediate results", "inputs and outputs: 4096 bytes"])
    needed = int(message.split("'forward' needs ")[1].split()[0])
    run(*compile_mlp(*MLP_TP, "--memory-limit", str(needed)))
    refused(*compile_mlp(*MLP_TP, "--memory-limit", str(needed - 1)), says=f"needs {needed} bytes")
    refused(*compile_mlp("--memory-limit", "much"), says="--memory-limit is a number of bytes")
