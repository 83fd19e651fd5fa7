# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps in bf16 and f16: as PyTorch under autocast, with torch.amp.GradScaler, and with masters in f32 of a module that is bf16."""
import copy
import functools
import pathlib
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import BUILD, run, tool
from plans import places
from test_model_gradients import BUILDER
from training import Trainee, difference, shardc_export


class Towers(nn.Module):
    """Odd sizes, a parameter that is used twice, and one that meets both types."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 11), nn.Linear(11, 3)
        self.norm, self.scale = nn.LayerNorm(11), nn.Linear(11, 11, bias=False)
        self.factor = nn.Parameter(torch.randn(11))

    def forward(self, x, target):
        h = F.gelu(self.first(x)) * self.factor
        h = self.scale(self.norm(self.scale(h)))
        return F.mse_loss(self.second(h).float(), target)


DP, TP = places("input:*=dp:S(0)"), places("module:first=colwise", "module:second=rowwise")
MESHES = {"one": ("--mesh", "dp=1"), "dp2": ("--mesh", "dp=2", *DP), "tp2": ("--mesh", "tp=2", *TP), "dp2-tp2": ("--mesh", "dp=2,tp=2", *DP, *TP)}


PLANS = {"gpt2": places("module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise", "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise"),
         "llama": places("module:*layers.*.self_attn.{q,k,v}_proj=colwise", "module:*layers.*.self_attn.o_proj=rowwise")}
# A gradient that is a rounding error moves a parameter by a whole step of AdamW, unless eps is above it. Products that are split over
# tp are rounded twice as often.
EPS = 0.1
BOUNDS = {torch.bfloat16: 2**-6, torch.float16: 2**-9}


# Of h, which a product made, so that it is short, and of x in f32.
POLICY = {
    "linear": lambda h, x: F.linear(x, h), "matmul": lambda h, x: x @ h.mT, "addmm": lambda h, x: torch.addmm(x[:, :1], x, h.mT),
    "bmm": lambda h, x: torch.bmm(h[None], x.mT[None]),
    "conv2d": lambda h, x: F.conv2d(x[None, None], h[None, None, :3, :3]), "scaled_dot_product_attention": lambda h, x: F.scaled_dot_product_attention(h[None], x[None], x[None]),
    "softmax": lambda h, x: h.softmax(1), "log_softmax": lambda h, x: h.log_softmax(0), "layer_norm": lambda h, x: F.layer_norm(h, (8,), x[0]),
    "rms_norm": lambda h, x: F.rms_norm(h, (8,), x[0]), "group_norm": lambda h, x: F.group_norm(h, 2), "sum": lambda h, x: h.sum(1), "prod": lambda h, x: h.prod(1),
    "cumsum": lambda h, x: h.cumsum(1), "cumprod": lambda h, x: h.cumprod(1), "erfinv": lambda h, x: h.erfinv(), "logsumexp": lambda h, x: h.logsumexp(1), "linalg_vector_norm": lambda h, x: torch.linalg.vector_norm(h, dim=1),
    "exp": lambda h, x: h.exp(), "expm1": lambda h, x: h.expm1(), "log": lambda h, x: h.abs().log(), "log1p": lambda h, x: h.abs().log1p(), "log2": lambda h, x: h.log2(),
    "log10": lambda h, x: h.log10(), "pow": lambda h, x: h.pow(3), "reciprocal": lambda h, x: h.reciprocal(), "rsqrt": lambda h, x: h.abs().rsqrt(),
    "softplus": lambda h, x: F.softplus(h), "tan": lambda h, x: h.tan(), "sinh": lambda h, x: h.sinh(), "cosh": lambda h, x: h.cosh(), "acos": lambda h, x: h.acos(),
    "asin": lambda h, x: h.asin(), "relu": lambda h, x: h.relu(), "gelu": lambda h, x: F.gelu(h), "silu": lambda h, x: F.silu(h), "tanh": lambda h, x: h.tanh(),
    "sigmoid": lambda h, x: h.sigmoid(), "erf": lambda h, x: h.erf(), "sin": lambda h, x: h.sin(), "sqrt": lambda h, x: h.abs().sqrt(), "exp2": lambda h, x: h.exp2(),
    "add": lambda h, x: h + x, "scaled": lambda h, x: h * 2.5, "scalar": lambda h, x: h * x[0, 0], "div": lambda h, x: h / h, "maximum": lambda h, x: torch.maximum(h, x),
    "where": lambda h, x: torch.where(x > 0, h, 0.0), "masked": lambda h, x: h.masked_fill(x > 0, 1.0), "cat": lambda h, x: torch.cat([h, x]), "amax": lambda h, x: h.amax(1),
    "clamp": lambda h, x: h.clamp(-1, 1), "views": lambda h, x: h.reshape(4, 16).mT[1:].flip(0), "embedding": lambda h, x: F.embedding((h[0] > 0).long(), x),
    "gather": lambda h, x: h.gather(1, (x > 0).long()), "lerp": lambda h, x: torch.lerp(h, h, 0.5), "mse_loss": lambda h, x: F.mse_loss(h, x),
    "nll_loss": lambda h, x: F.cross_entropy(h, (x[:, 0] > 0).long(), label_smoothing=0.1), "binary_cross_entropy_with_logits": lambda h, x: F.binary_cross_entropy_with_logits(h, (x > 0).float()),
}


class Policies(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        h = F.linear(x, self.weight)
        return tuple(of(h, x) for of in POLICY.values())


def test_policy_is_that_of_autocast(tmp_path):
    """The element type of each result: by the lists of autocast on accelerators, as PyTorch's header has them, else by type promotion."""
    header = (pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()

    def listed(macro):
        return set(re.findall(r"_\((\w+)", re.search(rf"define {macro}\(_\)(.*?)\n\n", header, re.S)[1]))
    short, wide = listed("AT_FORALL_LOWER_PRECISION_FP"), listed("AT_FORALL_FP32") | listed("AT_FORALL_FP32_SET_OPT_DTYPE")
    assert len(short & set(POLICY)) > 5 and len(wide & set(POLICY)) > 20
    h, x = torch.randn(8, 8).bfloat16(), torch.randn(8, 8)
    want = {name: torch.bfloat16 if name in short else torch.float32 if name in wide else of(h, x).dtype for name, of in POLICY.items()}
    torch.export.save(shardc_export.export(Policies(), (torch.randn(8, 8),)), tmp_path / "m.pt2")
    text = run(tool("shard-opt"), tmp_path / "m.pt2", "--aten-lower-precision=type=bf16").stdout
    # Outputs are f32: what was short is cast at the end.
    casts = set(re.findall(r"(%\d+) = aten.to_copy %\w+ to f32 : \(tensor<[0-9x]*bf16>\)", text))
    returned = re.search(r"return (.*) :", text)[1].split(", ")
    assert {name: torch.bfloat16 if value in casts else torch.float32 for name, value in zip(POLICY, returned, strict=True)} == want


def train(*settings):
    return [option for setting in settings for option in ("--train", setting)]


def autocast(one, dtype, steps=5, lr=1e-2, micro_batches=1, clip=None, scaler=None):
    """Losses, scales, skipped steps and the module after steps of AdamW under torch.autocast."""
    module = copy.deepcopy(one.module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=lr, eps=EPS)
    scaler = torch.amp.GradScaler("cpu", **scaler) if scaler is not None else torch.amp.GradScaler("cpu", enabled=False)
    count = len(next(iter(one.batches.values())))
    losses, scales, skipped = [], [], []
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(micro_batches):
            batch = {k: v[(step * micro_batches + micro) % count] for k, v in one.batches.items()}
            with torch.autocast("cpu", dtype=dtype):
                result = module(**batch)
            loss = (result[0] if isinstance(result, tuple) else result) / micro_batches
            scaler.scale(loss).backward()
            total += float(loss.detach())
        scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        losses.append(total)
        scales.append(scaler.get_scale())
        skipped.append(scaler.get_scale() < before)
    return module, losses, scales, skipped


@pytest.fixture(scope="module")
def trainee(tmp_path_factory):
    folder = tmp_path_factory.mktemp("precision")

    @functools.cache
    def make(kind):
        if kind in ("gpt2", "llama"):
            space = {}
            exec(BUILDER, space)
            return Trainee(folder, kind, *space["make"](kind))
        torch.manual_seed(3)
        module, inputs = Towers(), {"x": torch.randn(9, 7), "target": torch.randn(9, 3)}
        if kind == "short":
            module, inputs = module.bfloat16(), {"x": inputs["x"].bfloat16(), "target": inputs["target"]}
        return Trainee(folder, kind, module, inputs)
    make.folder = folder
    return make


def compare(log, saved, module, losses, bound):
    for got, want in zip(log, losses, strict=True):
        assert abs(got["loss"] - want) <= bound * abs(want), (got, want)
    for name, parameter in module.named_parameters():
        if name in saved:
            assert saved[name].dtype == parameter.dtype
            assert difference(saved[name], parameter) <= bound, name


@pytest.mark.parametrize("mesh, settings", [("one", []), ("dp2", ["zero=3", "precision.reduce=compute"]), ("dp2-tp2", ["zero=1"])], ids=["one", "dp2", "dp2-tp2"])
def test_bf16(trainee, mesh, settings):
    """Parameters are f32, and what is computed is what autocast computes; in the first step to the last bit of the loss, on one rank."""
    one, program = trainee("towers"), trainee.folder / f"bf16-{mesh}.so"
    module, losses, _, _ = autocast(one, torch.bfloat16)
    one.compile(program, *MESHES[mesh], *train("loss=0", "optimizer=adamw", f"optimizer.eps={EPS}", "precision=bf16", *settings))
    log, saved = one.train(program)
    compare(log, saved, module, losses, BOUNDS[torch.bfloat16])
    if mesh == "one":
        assert abs(log[0]["loss"] - losses[0]) <= 1e-6
    exact, _, _, _ = one.pytorch("adamw", eps=EPS)
    assert max(difference(saved[k], p) for k, p in exact.named_parameters()) > 1e-4, "nothing was rounded"
    assert not any(key.startswith(("master.", "loss_scale")) for key in saved)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_models_in_bf16(trainee, kind):
    one, program = trainee(kind), trainee.folder / f"{kind}.so"
    module, losses, _, _ = autocast(one, torch.bfloat16, steps=3, lr=1e-3)
    one.compile(program, "--mesh", "dp=2,tp=2", *DP, *PLANS[kind], *train("loss=0", "optimizer=adamw", f"optimizer.eps={EPS}", "precision=bf16", "zero=3"))
    log, saved = one.train(program, steps=3, lr=1e-3)
    compare(log, saved, module, losses, BOUNDS[torch.bfloat16])


@pytest.mark.parametrize("mesh, zero", [("one", 0), ("dp2", 3), ("tp2", 0), ("dp2-tp2", 1)])
def test_masters(trainee, mesh, zero):
    """A module in bf16 whose optimizer works on copies in f32: a checkpoint has both, and goes on on another mesh."""
    one, program = trainee("short"), trainee.folder / f"masters-{mesh}.so"
    module = copy.deepcopy(one.module)
    masters = {name: nn.Parameter(p.detach().float()) for name, p in module.named_parameters()}
    optimizer = torch.optim.AdamW(masters.values(), lr=1e-2, eps=EPS)
    losses = []
    for step in range(5):
        module.zero_grad()
        loss = module(**{k: v[step] for k, v in one.batches.items()})
        loss.backward()
        losses.append(float(loss.detach()))
        for name, parameter in module.named_parameters():
            masters[name].grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(masters[name])
    one.compile(program, *MESHES[mesh], *train("loss=0", "optimizer=adamw", f"optimizer.eps={EPS}", "precision=bf16", f"zero={zero}"))
    log, saved = one.train(program)
    compare(log, saved, module, losses, BOUNDS[torch.bfloat16])
    for name, master in masters.items():
        assert difference(saved[f"master.{name}"], master) <= BOUNDS[torch.bfloat16], name
        assert torch.equal(saved[f"master.{name}"].bfloat16(), saved[name]), name
        assert saved[f"optimizer.exp_avg.{name}"].dtype == torch.float32
    if mesh != "dp2":
        return
    first, _ = one.train(program, steps=2)
    halfway = program.with_suffix(".checkpoint.safetensors").rename(trainee.folder / "halfway.safetensors")
    rest, again = one.train(program, "--resume", halfway, weights=False)
    assert [line["loss"] for line in first + rest] == [line["loss"] for line in log]
    assert all(torch.equal(again[k], saved[k]) for k in saved)
    # Whoever only computes takes the parameters.
    forward, inputs, outputs = (trainee.folder / name for name in ("forward.so", "in", "out"))
    one.compile(forward, "--mesh", "dp=1")
    save_file(one.inputs, inputs)
    run(tool("shard-run"), forward, "--weights", program.with_suffix(".checkpoint.safetensors"), "--inputs", inputs, "--outputs", outputs)
    module.load_state_dict({name: saved[name] for name in masters})
    (got,) = load_file(outputs).values()
    assert abs(float(got) - float(module(**one.inputs).detach())) <= 1e-3


SCALER = dict(init_scale=2.0**10, growth_interval=2)


@pytest.mark.parametrize("mesh, settings, keywords", [
    ("one", [], {}), ("dp2", ["zero=3"], {}), ("tp2", ["non_finite=stop"], {}),
    ("dp2-tp2", ["zero=1", "micro_batches=2", "clip_norm=0.5", "non_finite=skip"], dict(micro_batches=2, clip=0.5))], ids=["one", "dp2", "tp2", "dp2-tp2"])
def test_loss_scale(trainee, mesh, settings, keywords):
    """Some batches have gradients far above what f16 holds: the same steps are skipped as by torch.amp.GradScaler, with the same scales."""
    one, program = copy.copy(trainee("towers")), trainee.folder / f"f16-{mesh}.so"
    one.batches, one.file = {k: v.clone() for k, v in one.batches.items()}, trainee.folder / f"f16-{mesh}.batches"
    one.batches["target"][[0, 7]] = 1e6
    save_file(one.batches, one.file)
    module, losses, scales, skipped = autocast(one, torch.float16, steps=8, scaler=SCALER, **keywords)
    assert 1 < skipped.count(True) < 5 and any(after > before for before, after in zip(scales, scales[1:]))
    one.compile(program, *MESHES[mesh], *train("loss=0", "optimizer=adamw", f"optimizer.eps={EPS}", "precision=f16",
                                               "precision.loss_scale={init_scale: 1024, growth_interval: 2}", *settings))
    log, saved = one.train(program, steps=8)
    assert [line["skipped"] for line in log] == skipped
    assert float(saved["loss_scale"]) == scales[-1]
    assert int(saved["train.step"]) == skipped.count(False) and int(saved["train.runs"]) == 8
    compare(log, saved, module, losses, BOUNDS[torch.float16])


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
def test_loss_scale_on_a_device(trainee, monkeypatch):
    monkeypatch.setenv("SHARDC_TEST_DEVICE", "emulated")
    test_loss_scale(trainee, "dp2", ["zero=3"], {})


def test_loss_that_is_not_finite_stops(trainee, tmp_path):
    """With a scale that changes, only the loss says that a training is to stop."""
    one, program = trainee("towers"), tmp_path / "stop.so"
    batches = {k: v.clone() for k, v in one.batches.items()}
    batches["x"][2, 0, 0] = float("inf")
    save_file(batches, tmp_path / "batches")
    one.compile(program, *MESHES["dp2"], *train("loss=0", "precision=f16", "non_finite=stop", "precision.loss_scale.init_scale=1048576"))
    done = one.train(program, "--batches", tmp_path / "batches", check=False, file=False)
    assert done.returncode == 1 and "step 3: the loss or a gradient is not finite" in done.stderr
