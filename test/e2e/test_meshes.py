# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs and outputs on other meshes than the one that computes (R3): compiled programs on 4 to 8 ranks against PyTorch, forward
and with gradients."""
import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from conftest import run, tool
from plans import places

ROWS, FEATURES, HIDDEN, CLASSES = 5, 6, 8, 3
TYPES = {"x": (ROWS, FEATURES), "t": (ROWS, CLASSES), "up": (HIDDEN, FEATURES), "down": (CLASSES, HIDDEN)}
WEIGHTS = ("up", "down")

# Name: mesh, other meshes, plan, ranks of the world.
LAYOUTS = {
    "apart": ("dp=2,tp=2", ["readers:io=2,devices=[4,5]"],
              ["input:x=mesh:readers,io:S(0)", "output:y=mesh:readers,io:S(1)"], 6),
    "only-others-read": ("tp=2", ["io:io=2,devices=[2,3]"],
                         ["input:*=mesh:io,io:S(0)", "output:*=mesh:io"], 4),
    "reversed": ("tp=4", ["back:tp=4,devices=[3,2,1,0]"], ["input:x=mesh:back,tp:S(1)", "output:y=mesh:back,tp:S(0)"], 4),
    "two-of-four": ("dp=2,tp=2", ["odd:io=2,devices=[1,3]"], ["input:x=mesh:odd,io:S(0)", "output:y=mesh:odd"], 4),
    "two-others": ("dp=2,tp=4", ["a:p=2,q=2", "b:io=2,devices=[6,7]"],
                   ["input:x=mesh:a,p:S(0),q:S(1)", "output:y=mesh:b,io:S(0)", "output:loss=mesh:b"], 8),
    "idle-ranks": ("dp=2,tp=2,devices=[4,5,6,7]", ["first:io=2"], ["input:x=mesh:first,io:S(1)", "output:y=mesh:first"], 8),
    "line": ("dp=2,tp=2", ["line:r=4"], ["input:x=mesh:line,r:S(0)", "output:y=mesh:line,r:S(1)"], 4),
}


def tensor_type(shape):
    return f"tensor<{'x'.join([*map(str, shape), 'f32'])}>"


def program():
    """An MLP with a mean squared error, in MLIR."""
    names = {"x": "input", "t": "input", "up": "parameter", "down": "parameter"}
    arguments = ", ".join(f'%{n}: {tensor_type(TYPES[n])} {{dist.name = "{n}", dist.kind = "{kind}"}}'
                          for n, kind in names.items())
    x, t, up, down = (tensor_type(TYPES[n]) for n in names)
    h = tensor_type((ROWS, HIDDEN))
    return f"""func.func @forward({arguments}) -> ({t} {{dist.name = "y"}}, tensor<f32> {{dist.name = "loss"}}) {{
  %h = aten.linear %x, %up : ({x}, {up}) -> {h}
  %a = aten.gelu %h : ({h}) -> {h}
  %y = aten.linear %a, %down : ({h}, {down}) -> {t}
  %d = aten.sub %y, %t : ({t}, {t}) -> {t}
  %s = aten.mul %d, %d : ({t}, {t}) -> {t}
  %loss = aten.mean %s : ({t}) -> tensor<f32>
  return %y, %loss : {t}, tensor<f32>
}}
"""


def values():
    torch.manual_seed(7)
    return {name: torch.randn(shape) for name, shape in TYPES.items()}


def expected(tensors):
    weights = [tensors[n].clone().requires_grad_() for n in WEIGHTS]
    y = F.linear(F.gelu(F.linear(tensors["x"], weights[0])), weights[1])
    loss = ((y - tensors["t"]) ** 2).mean()
    loss.backward()
    return {"y": y.detach(), "loss": loss.detach()}, dict(zip(WEIGHTS, (w.grad for w in weights)))


def compiled(folder, mesh, others, plan, *options):
    (folder / "mlp.mlir").write_text(program())
    meshes = [option for other in others for option in ("--other-mesh", other)]
    run(tool("shardc"), "compile", folder / "mlp.mlir", "--mesh", mesh, *meshes, *places("param:up=tp:S(0)", "param:down=tp:S(1)", *plan),
        *options, "-o", folder / "mlp.so")
    tensors = values()
    save_file({n: tensors[n] for n in WEIGHTS}, folder / "weights.safetensors")
    save_file({n: tensors[n] for n in ("x", "t")}, folder / "in.safetensors")
    return folder / "mlp.so", tensors


def manifest(artifact):
    return json.loads(run(tool("shard-run"), "--manifest", artifact).stdout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_forward_and_gradients(layout, tmp_path):
    mesh, others, plan, world = LAYOUTS[layout]
    artifact, tensors = compiled(tmp_path, mesh, others, plan, "--gradients", "loss")
    assert manifest(artifact)["world_size"] == world
    outputs, gradients = expected(tensors)
    for entry in ("forward", "gradients"):
        run(tool("shard-run"), artifact, "-n", str(world), "--entry", entry, "--weights", tmp_path / "weights.safetensors",
            "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors", "--check")
        got = load_file(tmp_path / "out.safetensors")
        wants = outputs | (gradients if entry == "gradients" else {})
        assert got.keys() == wants.keys()
        for name, want in wants.items():
            torch.testing.assert_close(got[name], want, rtol=1e-5, atol=1e-5, msg=lambda m: f"{entry} {name}: {m}")


def test_ranks_outside_have_empty_shards(tmp_path):
    """Each rank's own files: a rank outside of the mesh of an input or output has nothing of it."""
    mesh, others, plan, world = LAYOUTS["apart"]
    artifact, tensors = compiled(tmp_path, mesh, others, plan)
    described = {t["name"]: t for t in manifest(artifact)["entries"][0]["inputs"] + manifest(artifact)["entries"][0]["outputs"]}
    assert described["x"]["mesh"] == described["y"]["mesh"] == "readers" and "mesh" not in described["t"]
    assert manifest(artifact)["meshes"] == [{"name": "readers", "axes": [{"name": "io", "size": 2}], "devices": [4, 5]}]
    for rank in range(world):
        x = tensors["x"].tensor_split([3])[rank - 4].contiguous() if rank >= 4 else torch.zeros(0, 0)
        t = tensors["t"] if rank < 4 else torch.zeros(0, 0)
        save_file({"x": x, "t": t}, tmp_path / f"in.{rank}.safetensors")
    run(tool("shard-run"), artifact, "--local", "--weights", tmp_path / "weights.safetensors",
        "--inputs", tmp_path / "in.%r.safetensors", "--outputs", tmp_path / "out.%r.safetensors")
    want, _ = expected(tensors)
    parts = [load_file(tmp_path / f"out.{rank}.safetensors")["y"] for rank in range(world)]
    assert [tuple(part.shape) for part in parts] == [(0, 0)] * 4 + [(ROWS, 2), (ROWS, 1)]
    torch.testing.assert_close(torch.cat(parts[4:], 1), want["y"], rtol=1e-5, atol=1e-5)


def test_explain_counts_what_crosses(tmp_path):
    """Five rows of six numbers go to four ranks that need them all, and the result to two others."""
    (tmp_path / "mlp.mlir").write_text(program())
    mesh, others, plan, world = LAYOUTS["apart"]
    meshes = [option for other in others for option in ("--other-mesh", other)]
    report = json.loads(run(tool("shardc"), "explain", tmp_path / "mlp.mlir", "--mesh", mesh, *meshes,
                            *places("param:up=tp:S(0)", "param:down=tp:S(1)", *plan), "--format", "json").stdout)
    assert report["world"] == world
    assert report["meshes"] == {"readers": {"axes": {"io": 2}, "ranks": [4, 5]}}
    crossing = [c for c in report["collectives"] if c["kind"] == "all_to_all"]
    # Rank 4 has three rows of x and sends them to each of four ranks.
    assert crossing[0]["bytes_per_rank"] == 4 * 3 * FEATURES * 4
