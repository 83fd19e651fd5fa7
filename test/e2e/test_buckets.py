# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of several tensors, as a group and packed into one buffer: the same answers, those of the definition."""
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import run, tool

WORLD = 4

HEADER = """#mesh = #dist.mesh<["r" = 4]>
#R = #dist.layout<#mesh, [R]>
#r = #dist.axes<#mesh, ["r"]>
module attributes {dist.mesh = #mesh} {
"""


def replicated(name, shape):
    kind = f'tensor<{"x".join(map(str, shape))}xf32>'
    return (f'{kind} {{dist.global_type = {kind}, dist.kind = "{name[0]}", dist.layout = #R, '
            f'dist.name = "{name[1]}"}}')


def program(inputs, body, outputs):
    arguments = ", ".join(f"%{n}: {replicated(('input', n), s)}" for n, s in inputs.items())
    results = ", ".join(replicated(("output", n), s) for n, s in outputs.items())
    return f"{HEADER}func.func @forward({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n"


def tensor(*shape):
    return f'tensor<{"x".join(map(str, shape))}xf32>'


def f32(rng, *shape):
    return rng.integers(-8, 8, shape).astype(np.float32)


@pytest.fixture
def answers(tmp_path):
    def execute(text, inputs, form):
        source, artifact = tmp_path / "p.mlir", tmp_path / f"{form}.so"
        source.write_text(text)
        run(tool("shardc"), "compile", source, "--bucket-form", form, "-o", artifact)
        save_file(inputs, tmp_path / "in.safetensors")
        run(tool("shard-run"), "-n", WORLD, artifact, "--inputs", tmp_path / "in.safetensors",
            "--outputs", tmp_path / "out.safetensors")
        return load_file(tmp_path / "out.safetensors")

    return execute


@pytest.mark.parametrize("form", ["auto", "grouped", "packed"])
def test_all_reduce(answers, form):
    rng = np.random.default_rng(0)
    inputs = {"x": f32(rng, 4, 3), "y": f32(rng, 5), "z": f32(rng, 2, 1, 7)}
    shapes = {n: v.shape for n, v in inputs.items()}
    types = ", ".join(tensor(*s) for s in shapes.values())
    # z is an argument: it cannot be moved into the bucket.
    body = f"""  %0 = aten.relu %x : ({tensor(4, 3)}) -> {tensor(4, 3)}
  %1 = aten.neg %y : ({tensor(5)}) -> {tensor(5)}
  %2:3 = dist.all_reduce sum over #r %0, %1, %z : ({types}) -> ({types})
  %3 = aten.neg %2#0 : ({tensor(4, 3)}) -> {tensor(4, 3)}
  return %3, %2#1, %2#2 : {types}"""
    got = answers(program(shapes, body, {f"o{i}": s for i, s in enumerate(shapes.values())}), inputs, form)
    np.testing.assert_array_equal(got["o0"], -WORLD * np.maximum(inputs["x"], 0))
    np.testing.assert_array_equal(got["o1"], -WORLD * inputs["y"])
    np.testing.assert_array_equal(got["o2"], WORLD * inputs["z"])


@pytest.mark.parametrize("form", ["auto", "grouped", "packed"])
def test_all_gather_on_different_dims(answers, form):
    rng = np.random.default_rng(1)
    inputs = {"x": f32(rng, 2, 3), "y": f32(rng, 5, 2), "z": f32(rng, 2, 1, 3)}
    shapes = {n: v.shape for n, v in inputs.items()}
    outputs = {"o0": (8, 3), "o1": (5, 8), "o2": (2, 4, 3)}
    given, delivered = (", ".join(tensor(*s) for s in d.values()) for d in (shapes, outputs))
    futures = ", ".join(f"!dist.future<{tensor(*s)}>" for s in outputs.values())
    body = f"""  %f:3 = dist.all_gather over #r %x dim 0, %y dim 1, %z dim 1 : ({given}) -> ({futures})
  %0:3 = dist.wait %f#0, %f#1, %f#2 : {futures}
  return %0#0, %0#1, %0#2 : {delivered}"""
    got = answers(program(shapes, body, outputs), inputs, form)
    np.testing.assert_array_equal(got["o0"], np.concatenate([inputs["x"]] * WORLD, 0))
    np.testing.assert_array_equal(got["o1"], np.concatenate([inputs["y"]] * WORLD, 1))
    np.testing.assert_array_equal(got["o2"], np.concatenate([inputs["z"]] * WORLD, 1))


@pytest.mark.parametrize("form", ["auto", "grouped", "packed"])
def test_reduce_scatter_then_gather_of_uneven_shards(answers, form):
    """Shards of 2, 2, 2, 1 rows and of 3, 0, 0, 2 columns: each rank has its own program."""
    rng = np.random.default_rng(2)
    inputs = {"x": f32(rng, 7, 3), "y": f32(rng, 4, 5)}
    shapes = {n: v.shape for n, v in inputs.items()}
    whole = ", ".join(tensor(*s) for s in shapes.values())
    parts = f'{tensor("?", 3)}, {tensor(4, "?")}'
    body = f"""  %0:2 = dist.reduce_scatter sum over #r %x dim 0 extents [2, 2, 2, 1], %y dim 1 extents [3, 0, 0, 2] : ({whole}) -> ({parts})
  %1:2 = dist.all_gather over #r %0#0 dim 0 extents [2, 2, 2, 1], %0#1 dim 1 extents [3, 0, 0, 2] : ({parts}) -> ({whole})
  return %1#0, %1#1 : {whole}"""
    got = answers(program(shapes, body, {"o0": (7, 3), "o1": (4, 5)}), inputs, form)
    np.testing.assert_array_equal(got["o0"], WORLD * inputs["x"])
    np.testing.assert_array_equal(got["o1"], WORLD * inputs["y"])
