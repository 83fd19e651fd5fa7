# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with symbolic sizes: compiled once, run with several sizes, each within 1e-4 of the output's scale of PyTorch's.
Sizes divide by nothing on purpose, and there are batches smaller than the number of ranks: then some have nothing."""
import functools
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conftest import ROOT, run, tool
from plans import DATA_PARALLEL, LM_HEAD_TP, REPLICATED_OUTPUT, VOCABULARY_TP, tensor_parallel

MESHES = {
    "one": ("tp=1", lambda name: []),
    "tp2": ("tp=2", tensor_parallel),
    "tp4": ("tp=4", tensor_parallel),
    "dp4": ("dp=4", lambda name: DATA_PARALLEL),
    "dp2xtp2": ("dp=2,tp=2", lambda name: DATA_PARALLEL + tensor_parallel(name)),
}
# The first sizes that a program sees are the largest: later ones must not read what those left behind.
SIZES = {
    "mlp": ({"batch": 64}, {"batch": 1}, {"batch": 7}, {"batch": 3}),
    "gpt2": ({"batch": 5, "sequence": 33}, {"batch": 1, "sequence": 2}, {"batch": 3, "sequence": 7}),
    "llama": ({"batch": 5, "sequence": 33}, {"batch": 1, "sequence": 2}, {"batch": 3, "sequence": 7}),
    "minilm": ({"batch": 9, "sequence": 21}, {"batch": 1, "sequence": 5}, {"batch": 3, "sequence": 11}),
}


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """Inputs of given sizes as a file, and PyTorch's output for them."""
    sys.path.insert(0, str(ROOT / "test" / "models"))
    import builders
    import torch

    @functools.cache
    def make(name, sizes):
        module, inputs = getattr(builders, name)(**dict(sizes))
        with torch.no_grad():
            outputs = [leaf for leaf in torch.utils._pytree.tree_leaves(module(**inputs)) if isinstance(leaf, torch.Tensor)]
        path = tmp_path_factory.mktemp("inputs") / f"{name}.safetensors"
        save_file({k: v.contiguous().numpy() for k, v in inputs.items()}, path)
        return path, [o.numpy() for o in outputs]

    return lambda name, sizes: make(name, tuple(sorted(sizes.items())))


def check_sizes(program, reference, tmp_path):
    base = program.source.name.removesuffix("_dynamic")
    (output,) = load_file(program.source.outputs)
    for sizes in SIZES[base]:
        inputs, (expected,) = reference(base, sizes)
        program.run(tmp_path, inputs=inputs, expected={output: expected})


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ["mlp_dynamic", "gpt2_dynamic", "llama_dynamic", "minilm_dynamic"])
def test_forward(compile_model, reference, tmp_path, name, mesh):
    axes, plan = MESHES[mesh]
    check_sizes(compile_model(name, axes, *plan(name), *REPLICATED_OUTPUT), reference, tmp_path)


@pytest.mark.parametrize("name", ["gpt2_dynamic", "llama_dynamic"])
def test_vocabulary_sharded_embedding_and_head(compile_model, reference, tmp_path, name):
    program = compile_model(name, "tp=4", *tensor_parallel(name), *VOCABULARY_TP, *LM_HEAD_TP)
    check_sizes(program, reference, tmp_path)


def test_ranks_with_code_of_their_own(tmp_path):
    """Ranks that have nothing of a dim of known size run other code than the others, and have parts of symbolic sizes of their own."""
    import torch

    class Spread(torch.nn.Module):
        def forward(self, x):
            return x.var(1), x * 2

    dims = {0: torch.export.Dim("n", min=3, max=64), 1: torch.export.Dim("m", min=3, max=64)}
    torch.export.save(torch.export.export(Spread(), (torch.zeros(3, 5, 4),), dynamic_shapes=(dims,)), tmp_path / "m.pt2")
    run(tool("shardc"), "compile", tmp_path / "m.pt2", "--mesh", "dp=2,tp=3", "-o", tmp_path / "m.so", *(
        f"--place={place}" for place in ("input:x=dp:S(0)", "input:x=tp:S(1)", "output:0=tp:S(0)", "output:1=dp:S(1)")))
    for shape in ((64, 64, 4), (3, 4, 4), (7, 5, 4)):
        x = torch.randn(shape)
        save_file({"x": x.numpy()}, tmp_path / "in.safetensors")
        run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
        got = load_file(tmp_path / "out.safetensors")
        for value, want in zip((got["var"], got["mul"]), Spread()(x), strict=True):
            np.testing.assert_allclose(value, want.numpy(), rtol=1e-5, atol=1e-6)


def refuse(program, tmp_path, **inputs):
    """The message of a run that must be refused."""
    save_file(inputs, tmp_path / "inputs.safetensors")
    done = run(tool("shard-run"), "-n", program.world, program.path, "--weights", program.source.path,
               "--inputs", tmp_path / "inputs.safetensors", "--outputs", tmp_path / "outputs.safetensors", check=False)
    assert done.returncode not in (0, -6, -11), done.stderr
    return done.stderr


def test_sizes_out_of_range_are_named(compile_model, tmp_path):
    program = compile_model("mlp_dynamic", "dp=4", *DATA_PARALLEL)
    message = refuse(program, tmp_path, x=np.zeros((65, 64), np.float32))
    assert "dim 0 of input x" in message and "65 is outside its range 1 to 64" in message, message
    message = refuse(program, tmp_path, x=np.zeros((0, 64), np.float32))
    assert "0 is outside its range 1 to 64" in message, message
    message = refuse(program, tmp_path, x=np.zeros((4, 63), np.float32))
    assert "dim 1 of input x is 63, expected 64" in message, message


def test_all_sizes_out_of_range_are_reported_together(compile_model, tmp_path):
    program = compile_model("gpt2_dynamic", "tp=2", *tensor_parallel("gpt2"))
    message = refuse(program, tmp_path, input_ids=np.zeros((65, 1), np.int64))
    assert "dim 0 of input input_ids" in message and "65 is outside its range 1 to 64" in message, message
    assert "dim 1 of input input_ids" in message and "1 is outside its range 2 to 64" in message, message


def test_inputs_that_share_a_size_must_agree(compile_model, tmp_path):
    program = compile_model("minilm_dynamic", "dp=2", *DATA_PARALLEL)
    message = refuse(program, tmp_path, input_ids=np.ones((3, 8), np.int64), attention_mask=np.ones((4, 8), np.int64))
    assert "dim 0 of input attention_mask is 4" in message and "= 3" in message, message
    assert "by dim 0 of input input_ids" in message, message


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """An export without named dims: what it relies on is in its guards only."""
    import torch

    class Guarded(torch.nn.Module):
        def forward(self, x, y):
            torch._check(x.shape[0] % 4 == 0)
            torch._check(x.shape[0] != 12)
            return x * 2 + y[:x.shape[0]]

    auto = torch.export.Dim.AUTO
    program = torch.export.export(Guarded(), (torch.zeros(8, 3), torch.zeros(9, 3)), dynamic_shapes=({0: auto}, {0: auto}))
    path = tmp_path_factory.mktemp("guarded") / "guarded.pt2"
    torch.export.save(program.run_decompositions({}), path)
    return path


def compile_under(limit, source, tmp_path, *options):
    done = run(tool("shardc"), "compile", source, "--mesh", "tp=4", "--memory-limit", limit, *options,
               "-o", tmp_path / "limited.so", check=False)
    return done.returncode, done.stderr


def test_a_memory_limit_is_for_the_largest_sizes(model, tmp_path):
    source, options = model("mlp_dynamic").path, tensor_parallel("mlp")
    code, message = compile_under("90000", source, tmp_path, *options)
    # By hand: input and output are 64 x 64 f32 each; x goes through the norm and the 64 hidden values of a rank.
    assert code == 1 and "=64, the limit is 90000 bytes" in message, message
    assert "inputs and outputs: 32768 bytes" in message, message
    (symbol,) = {word.split("=")[0] for word in message.split() if word.endswith("=64,")}
    weights = (2 * 64 + 64 * 64 + 64 + 64 * 64 + 64) * 4
    assert f"slices of 6 parameters: {weights} bytes" in message, message
    assert compile_under("1MiB", source, tmp_path, *options)[0] == 0
    # For eight rows that limit is enough.
    assert compile_under("90000", source, tmp_path, *options, "--size", f"{symbol}=8")[0] == 0


def test_a_memory_limit_needs_bounds(guarded, tmp_path):
    code, message = compile_under("1GiB", guarded, tmp_path)
    assert code == 1 and message.count("has no upper bound") == 2, message
    assert "(dim 0 of x)" in message and "(dim 0 of y)" in message and "--size" in message, message
    symbols = [line.split("the dynamic size ")[1].split()[0] for line in message.splitlines() if "no upper bound" in line]
    sizes = [option for symbol in symbols for option in ("--size", f"{symbol}=64")]
    assert compile_under("1GiB", guarded, tmp_path, *sizes)[0] == 0


def test_guards_of_the_export_are_checked(guarded, tmp_path):
    artifact, inputs, outputs = tmp_path / "guarded.so", tmp_path / "inputs.safetensors", tmp_path / "outputs.safetensors"
    run(tool("shardc"), "compile", guarded, "--mesh", "tp=2", "-o", artifact)

    def step(rows, others):
        x, y = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3), np.ones((others, 3), np.float32)
        save_file({"x": x, "y": y}, inputs)
        done = run(tool("shard-run"), "-n", 2, artifact, "--inputs", inputs, "--outputs", outputs, check=False)
        if done.returncode == 0:
            (result,) = load_file(outputs).values()
            np.testing.assert_allclose(result, 2 * x + 1)
        return done.returncode, done.stderr

    assert step(8, 9)[0] == 0
    assert step(4, 4)[0] == 0
    assert step(100, 1000)[0] == 0      # no upper bound
    for rows, others, condition in ((6, 9, "% 4) == 0"), (12, 20, "!= 12"), (8, 5, "<=")):
        code, message = step(rows, others)
        assert code != 0 and "the program needs" in message and condition in message, message
        assert "dim 0 of input x" in message, message
