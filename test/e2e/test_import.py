# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The imported stage means what PyTorch means: each model's IR, run op by op, gives PyTorch's outputs."""
import collections
import random
import re
import sys

import pytest
import torch
import transformers.modeling_outputs  # its classes are outputs of exported models
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool
from plans import places

sys.path[:0] = [str(ROOT / "test/reference"), str(ROOT / "test/models"), str(ROOT / "tools/export")]

import builders
import interpreter
import program
import shardc_export
import shardc_meta

SMALL = ["mlp", "mlp_odd", "mlp_dynamic", "gpt2", "gpt2_odd", "gpt2_dynamic", "gpt2_training", "llama", "llama_odd",
         "llama_dynamic", "llama_training", "mixed", "mixed_training"]


def load(path):
    text = run(tool("shard-opt"), path, "--test-print-program-json", "-o", "/dev/null").stdout
    return program.parse(text)["forward"]


def first(name):
    return name if isinstance(name, str) else name[0]


def execute(path, inputs):
    """Outputs of the imported program by name, of kind output, and those that were updated in place."""
    function = load(path)
    exported = torch.export.load(path)
    weights = {**dict(exported.named_parameters()), **dict(exported.named_buffers()), **exported.constants}
    arguments = []
    for attributes in function.arg_attrs:
        name, kind = first(attributes["dist.name"]), attributes["dist.kind"]
        arguments.append((inputs if kind == "input" else weights)[name].detach().clone())
    outputs, updated = {}, {}
    with torch.no_grad():
        results = interpreter.run_global(function, arguments)
    for attributes, value in zip(function.result_attrs, results, strict=True):
        (outputs if attributes["dist.kind"] == "output" else updated)[attributes["dist.name"]] = value
    return outputs, updated


def close(got, want):
    scale = want[want.isfinite()].abs().max().item() if want.is_floating_point() and want.numel() else 0
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5 * scale, equal_nan=True)


@pytest.mark.parametrize("name", SMALL + ["minilm", "gpt2_124m"])
def test_models(model, name):
    source = model(name)
    outputs, updated = execute(source.path, load_file(source.inputs))
    want = load_file(source.outputs)
    assert outputs.keys() == want.keys() and set(updated) == ({"steps"} if name.startswith("mixed") else set())
    for output, value in want.items():
        close(outputs[output], value)


@pytest.mark.parametrize("name, batch, sequence", [("gpt2_dynamic", 3, 7), ("llama_dynamic", 1, 2), ("mlp_dynamic", 5, 0)])
def test_other_sizes(model, name, batch, sequence):
    builder = getattr(builders, name.split("_")[0])
    module, inputs = builder(batch=batch, **({"sequence": sequence} if sequence else {}))
    outputs, _ = execute(model(name).path, inputs)
    with torch.no_grad():
        want, = torch.utils._pytree.tree_leaves(module(**inputs))
    close(*outputs.values(), want)


# Ops that are built for the overload of the same name, one each.
ONE_TO_ONE = ["linear", "addmm", "layer_norm", "scaled_dot_product_attention", "embedding", "mul", "transpose", "cat",
              "unsqueeze", "tanh", "gelu", "silu", "cumsum", "index", "mean", "rsqrt", "cos", "sin", "neg", "slice"]


@pytest.mark.parametrize("name", SMALL + ["minilm", "gpt2_124m"])
def test_counts(model, name):
    if name.startswith("mixed") or name.endswith("training"):
        pytest.skip("has updates in place or nested graphs, which are more or other ops")
    path = model(name).path
    nodes = collections.Counter(str(n.target).split(".")[1] for n in torch.export.load(path).graph.nodes
                                if n.op == "call_function" and str(n.target).startswith("aten."))
    ops = collections.Counter(op.name.removeprefix("aten.") for op in load(path).ops)
    assert {n: ops[n] for n in ONE_TO_ONE} == {n: nodes[n] for n in ONE_TO_ONE}


# -- updates in place -------------------------------------------------------------------------------------------------


class Updates(torch.nn.Module):
    """Runs a list of steps: each makes a view of an earlier tensor, updates one in place, or reads one."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.register_buffer("state", torch.linspace(-1, 1, 24).reshape(4, 6))

    def forward(self, x):
        tensors, reads = [self.state, x.clone()], []
        for step in self.steps:
            kind, source, *rest = step
            value = tensors[source % len(tensors)]
            if kind == "view":
                tensors.append(VIEWS[rest[0] % len(VIEWS)](value))
            elif kind == "update":
                UPDATES[rest[0] % len(UPDATES)](value, x)
            else:
                reads.append(value * 2)
        return *reads, *(t + 0 for t in tensors)


VIEWS = [
    lambda t: t.transpose(0, -1) if t.dim() > 1 else t,
    lambda t: t[1:] if t.dim() and t.shape[0] > 1 else t,
    lambda t: t[..., :-1] if t.dim() and t.shape[-1] > 1 else t,
    lambda t: t.select(0, -1) if t.dim() > 1 else t,
    lambda t: t.unsqueeze(0) if t.dim() < 4 else t,
    lambda t: t.squeeze(0) if t.dim() and t.shape[0] == 1 else t,
    lambda t: t.reshape(-1),
    lambda t: t.view(t.shape) if t.is_contiguous() else t,
    lambda t: torch.split(t, 2, dim=0)[-1] if t.dim() and t.shape[0] > 2 else t,
    lambda t: t.permute(*reversed(range(t.dim()))) if t.dim() else t,
    lambda t: t.narrow(-1, 0, 1) if t.dim() else t,
    lambda t: t.detach(),
    lambda t: t.diagonal() if t.dim() > 1 else t,
    lambda t: t.diagonal(1, -1, 0) if t.dim() > 1 and t.shape[0] > 1 else t,
    lambda t: t[..., 1::2] if t.dim() and t.shape[-1] > 1 else t,
    lambda t: t[::3] if t.dim() else t,
    lambda t: t.movedim(0, -1) if t.dim() > 1 else t,
    lambda t: t.swapaxes(0, -1) if t.dim() > 1 else t,
    lambda t: t.mT if t.dim() > 1 else t,
    lambda t: t.tensor_split(2)[0] if t.dim() and t.shape[0] > 1 else t,
    lambda t: t.hsplit([1])[1] if t.dim() > 1 and t.shape[1] > 2 else t,
    lambda t: t.chunk(2, -1)[-1] if t.dim() and t.shape[-1] > 2 else t,
    lambda t: t.unflatten(0, (-1, 1)) if t.dim() else t,
    lambda t: t.ravel(),
    lambda t: t.type_as(t),
    lambda t: t.to(t.dtype, copy=True),
    lambda t: t.to(t.dtype),
]
UPDATES = [
    lambda t, x: t.add_(1), lambda t, x: t.mul_(x.mean()), lambda t, x: t.fill_(2.0), lambda t, x: t.zero_(),
    lambda t, x: t.copy_(x.sum()), lambda t, x: t.sub_(t.clone()), lambda t, x: t.clamp_(min=-0.25),
    lambda t, x: t.masked_fill_(t > 0.5, -3.0), lambda t, x: t.relu_(), lambda t, x: t.div_(3),
]


def check_updates(steps, path):
    x = torch.linspace(0, 2, 24).reshape(4, 6)
    exported = torch.export.export(Updates(steps), (x,))
    torch.export.save(exported, path)
    outputs, updated = execute(path, {"x": x})
    eager = Updates(steps)
    with torch.no_grad():
        want = eager(x)
    for name, value in zip(exported.graph_signature.user_outputs, want, strict=True):
        close(outputs[name], value)
    # A buffer is a result of its own exactly if something wrote to it.
    if "state" in updated:
        close(updated["state"], eager.state)
    else:
        close(Updates([]).state, eager.state)


@pytest.mark.parametrize("seed", range(70))
def test_updates_in_place_through_views(tmp_path, seed):
    draw = random.Random(seed)
    steps = [(draw.choice(["view", "view", "update", "read"]), draw.randrange(100), draw.randrange(100))
             for _ in range(draw.randrange(4, 16))]
    check_updates(steps, tmp_path / "updates.pt2")


def test_an_updated_input_that_is_returned(tmp_path):
    """The update has the input's name, and what is returned another one."""
    class Returned(torch.nn.Module):
        def forward(self, x):
            x[0] = 1
            return x, x.sum()

    x, path = torch.randn(3, 4), tmp_path / "returned.pt2"
    torch.export.save(torch.export.export(Returned(), (x,)), path)
    want, total = Returned()(x.clone())
    save_file({"x": x}, tmp_path / "in.safetensors")
    run(tool("shardc"), "compile", path, "--mesh", "dp=2", *places("input:x=dp:S(0)"), "-o", tmp_path / "m.so")
    run(tool("shard-run"), tmp_path / "m.so", "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors")
    got = load_file(tmp_path / "out.safetensors")
    assert sorted(got) == ["sum_1", "x", "x.0"]
    for name, value in (("x", want), ("x.0", want), ("sum_1", total)):
        close(got[name], value)


# -- errors -----------------------------------------------------------------------------------------------------------


def refused(module, arguments, tmp_path, **options):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module.eval(), arguments, **options), path)
    done = run(tool("shard-opt"), path, check=False)
    assert done.returncode != 0 and not done.stdout
    return done.stderr


class Inverts(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x)


class Unsupported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleList([Inverts() for _ in range(5)])

    def forward(self, x):
        for layer in self.inner:
            x = layer(x)
        return torch.linalg.det(x)


def test_unsupported_operators_come_together(tmp_path):
    error = refused(Unsupported(), (torch.randn(1, 1, 2, 2),), tmp_path)
    assert "operators that are not supported: 2, uses: 6." in error
    inverse, = re.findall(r".*linalg_inv.*", error)
    assert "5 uses: inner.0 (" in inverse and "inner.2 (" in inverse and "inner.3" not in inverse
    assert re.search(r"linalg_det.default, 1 use: .*test_import.py:\d+", error)
    assert error.count("error:") == 1
    assert "Export the model with `shardc export`" in error


def test_files_of_shardc_export_are_not_told_to_use_it(tmp_path):
    program = shardc_meta.export(shardc_export.export, Unsupported(), (torch.randn(1, 1, 2, 2),), {})
    shardc_meta.save(program, tmp_path / "model.pt2")
    error = run(tool("shard-opt"), tmp_path / "model.pt2", check=False).stderr
    assert "linalg" in error and "shardc export" not in error
    assert "Write the model without them, register functions for them as docs/custom-ops.md says, or add them as docs/adding-an-op.md does" in error


def test_numbers_cannot_be_inputs_or_outputs(tmp_path):
    class Numbers(torch.nn.Module):
        def forward(self, x):
            return x + 1, x.shape[0]

    dim = torch.export.Dim("n", min=2, max=8)
    assert "is a number" in refused(Numbers(), (torch.randn(4),), tmp_path, dynamic_shapes=({0: dim},))


def test_complex_tensors(tmp_path):
    """Of operators without a form for them, and of half precision."""
    class Complex(torch.nn.Module):
        def forward(self, x):
            return x.prod(0)

    error = refused(Complex(), (torch.randn(4, dtype=torch.complex64),), tmp_path)
    assert re.search(r"'aten.prod\S*' in .*test_import.py:\d+\): it is not supported for complex tensors", error), error
    assert "has the element type complex<f16>, which is not supported" in refused(
        Complex(), (torch.randn(4, dtype=torch.complex32),), tmp_path)


def test_updates_of_expanded_tensors_are_refused_with_their_place(tmp_path):
    class Expanded(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:1].expand(3, 3).add_(1)
            return y

    error = refused(Expanded(), (torch.randn(3, 3),), tmp_path)
    assert re.search(r"test_import.py:\d+:\d+: error: .*a view, made by 'aten.expand', in place", error), error


def test_updates_of_overlapping_windows_are_refused(tmp_path):
    class Overlapping(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            y.unfold(0, 2, 1).add_(1)
            return y

    assert "in place, which is not supported" in refused(Overlapping(), (torch.randn(3, 3),), tmp_path)


def test_export_helper(tmp_path):
    path = tmp_path / "exported.pt2"
    (tmp_path / "small.py").write_text("import torch\ndef build():\n    return torch.nn.Linear(4, 2), (torch.zeros(3, 4),)\n")
    done = run(sys.executable, ROOT / "tools/export/shardc_export.py", f"{tmp_path}/small.py:build", "-o", path,
               "--dynamic", "input:0=batch:1:8")
    assert done.stderr == "", "warnings that the user can do nothing about"
    assert load(path).arg_types[-1].shape == [None, 4]
    wrong = run(sys.executable, ROOT / "tools/export/shardc_export.py", f"{tmp_path}/small.py:build", "-o", path,
                "--dynamic", "inptu:0=batch", check=False)
    assert wrong.returncode == 1 and "the arguments are ['input']" in wrong.stderr
