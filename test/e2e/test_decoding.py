# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoding with a cache: prompt and steps give the tokens of transformers' `generate`. `benchmarks/decoding.py` has more families."""
import importlib
import json
import shutil
import sys

import numpy as np
import pytest
import torch

from conftest import BUILD, ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "benchmarks"))
import decoding  # noqa: E402


@pytest.fixture
def example(monkeypatch):
    """decode.py of runtime/examples. Other tests of this process may have modules of these names, and keep them."""
    monkeypatch.setenv("SHARDRT", str(BUILD / "lib/libshardrt.so"))
    monkeypatch.syspath_prepend(str(ROOT / "runtime/examples"))
    for name in ("run", "decode"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("decode")


@pytest.fixture(scope="module", params=["gpt2-static", "llama-dynamic", "llama-static"])
def exported(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("decoding") / "model.pt2"
    family, form = request.param.split("-")
    decoding.EXPORTS[form](family, path)
    return family, form, path


@pytest.mark.parametrize("mesh", ["tp=1", "tp=2", "dp=2,tp=2"])
def test_tokens_of_generate(exported, example, tmp_path, mesh):
    family, form, path = exported
    program = tmp_path / "model.so"
    run(tool("shardc"), "compile", path, "--mesh", mesh, *decoding.plan(family, mesh, form), "-o", program)
    manifest = json.loads(run(tool("shard-run"), "--manifest", program).stdout)
    specs = [*manifest["entries"][0]["inputs"], *({**spec, "name": spec["names"][0]} for spec in manifest["parameters"])]
    caches = [spec["layout"] for spec in specs if "key_cache" in spec["name"]]
    assert caches and all(layout == {"tp=1": layout, "tp=2": "[S(1)]", "dp=2,tp=2": "[S(0), S(1)]"}[mesh] for layout in caches)
    tokens = example.decode(str(program), str(path), decoding.PROMPT, 32)
    assert tokens.tolist() == decoding.generated(family, 32)


def test_the_example_in_cpp(tmp_path):
    """decode.cpp gives the tokens of `generate` too, from one prompt in every row."""
    source, program = tmp_path / "model.pt2", tmp_path / "model.so"
    decoding.export_static("llama", source)
    run(tool("shardc"), "compile", source, "--mesh", "dp=2,tp=2", *decoding.plan("llama", "dp=2,tp=2", "static"), "-o", program)
    run(shutil.which("c++") or shutil.which("clang++-22"), "-std=c++20", "-Wall", "-Wextra", "-Werror", ROOT / "runtime/examples/decode.cpp", "-I",
        ROOT / "runtime/include", "-L", BUILD / "lib", f"-Wl,-rpath,{BUILD / 'lib'}", "-lshardrt", "-lpthread", "-o", tmp_path / "decode")
    tokens = run(tmp_path / "decode", program, source, 4, 2, 16, *decoding.PROMPT[0]).stdout
    assert [int(token) for token in tokens.split(",")] == decoding.generated("llama", 16)[0]
    refused = run(tmp_path / "decode", program, source, 4, 3, 16, 5, check=False)
    assert refused.returncode == 1 and "dim 0 of input input_ids is 3, expected 2" in refused.stderr


class Rows(torch.nn.Module):
    """Adds rows to a cache that it keeps, which no file with weights has."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 4, 4096, 8), persistent=False)
        self.scale = torch.nn.Parameter(torch.arange(8.0))

    def forward(self, x, at):
        self.cache.index_add_(2, at, x * self.scale)
        return self.cache[:, :, :6]


def test_a_state_is_written_in_rows_alone(example, tmp_path):
    """Two ranks: the arena of a step has no room for a cache, and the rows are PyTorch's after several runs."""
    sys.path.insert(0, str(ROOT / "tools/export"))
    import shardc_export
    model, x = Rows(), torch.arange(128.0).view(2, 4, 2, 8)
    torch.export.save(shardc_export.export(model, (x, torch.arange(2))), tmp_path / "rows.pt2")
    assert not model.cache.any()
    program = tmp_path / "rows.so"
    run(tool("shardc"), "compile", tmp_path / "rows.pt2", "--mesh", "tp=2", *places("param:cache=tp:S(1)"), "-o", program)
    memory = json.loads(run(tool("shard-run"), "--manifest", program).stdout)["entries"][0]["memory"][0]
    assert memory["arena_bytes"] < 16 * 1024 < 2 * 2 * 4096 * 8 * 4
    world = importlib.import_module("train").World(str(program), str(tmp_path / "rows.pt2"))
    for at in ([0, 1], [1, 5], [4, 2]):
        given = {"x": x.numpy(), "at": np.array(at)}
        got = next(iter(world.run(next(iter(world.entries)), **given).values()))
        np.testing.assert_array_equal(got, model(x, torch.tensor(at)).detach().numpy())
    world.close()
