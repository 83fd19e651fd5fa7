# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All kernel cases and the models give PyTorch's answers, the models those of PyTorch on the same device."""
import time

import torch

import measure

# As in test/e2e/kernels.py: distance of floats that do not come from sums, in parts of the value.
ROUNDING = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}


def wrong(got, want, loose, scale):
    """What is wrong with `got`, or nothing. `scale`: the largest operand, where sums may cancel."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {list(got.shape)} {got.dtype}, not {list(want.shape)} {want.dtype}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(got, want) else f"{int((got != want).sum())} elements differ"
    finite = want[want.isfinite()].double().abs()
    scale = max(scale, float(finite.max()) if finite.numel() and loose > 1 else 0.0)
    limit, rounding = torch.finfo(want.dtype).tiny, ROUNDING[want.dtype] * loose
    got, want = got.double(), want.double()
    same = (got == want) | (got.isnan() & want.isnan())
    near = (got - want).abs() <= rounding * want.abs().clamp(min=scale) + limit
    bad = ~(same | near)
    return f"{int(bad.sum())} of {bad.numel()} differ" if bad.any() else ""


def run(it):
    # One has a position that is out of range: it is for the group `abi`.
    paths = [path for path in sorted((it.folder / "cases").glob("*.pt")) if path.stem != "cases_beyond"]
    it.each(paths, lambda path: cases(it, path))
    it.each(it.chosen("answers"), lambda model: train(it, model) if model.train else answer(it, model))


def cases(it, path):
    data = torch.load(path, weights_only=True)
    with it.open(path.stem) as program:
        call = program.prepare({name: t.to(it.place) for name, t in data["inputs"].items()})
        call()
        it.synchronise()
        problems = []
        for entry in data["wants"]:
            got = call.outputs[entry["output"]].cpu()
            if problem := wrong(got, entry["want"], entry["loose"], entry["scale"]):
                problems.append(f"{entry['case']}: {problem}")
        again = {name: t.clone() for name, t in call.outputs.items()}
        call()
        it.synchronise()
        changed = [name for name, t in call.outputs.items() if not same_bits(t, again[name])]
    it.report.check(path.stem, f"{len(problems)} of {len(data['wants'])}: {'; '.join(problems[:5])}" if problems else None)
    it.report.check(f"{path.stem} again, the same bits", f"others in {', '.join(changed[:5])}" if changed else None)


def same_bits(a, b):
    integer = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[a.element_size()]
    return bool(torch.equal(a.view(integer), b.view(integer))) if a.dtype != torch.bool else bool(torch.equal(a, b))


def answer(it, model):
    """Forward, and gradients where the model has a loss, against PyTorch in f32 (its own answer in 16 bits is no nearer)."""
    began = time.monotonic()
    module = model.module()
    weights = {name: t.detach().contiguous() for name, t in module.state_dict().items()}
    inputs = model.all_inputs(it.place)
    with it.open(model.name, weights) as program:
        call = program.prepare(inputs, model.entry)
        call()
        it.synchronise()
        got = {name: t.cpu() for name, t in call.outputs.items()}
    reference = module.to(it.place, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = False
    if model.gradients:
        loss = reference(**inputs)
        loss.backward()
        wants = {name: p.grad.cpu() for name, p in reference.named_parameters()}
        wants["loss"] = loss.detach().cpu()
        got["loss"] = got.pop(next(name for name in got if name not in wants))
    else:
        with torch.no_grad():
            out = reference(**inputs)
        wants = dict(zip(got, [t.cpu() for t in (out if isinstance(out, tuple) else (out,))], strict=True))
    if missing := wants.keys() - got.keys():
        it.report.check(model.name, f"no {', '.join(sorted(missing)[:5])}")
        return
    # Of all gradients together, as a gradient that cancels has an error of the sum that it comes from.
    largest = max(float(w.abs().max()) for w in wants.values()) if model.gradients else None
    errors = [float((got[n].double() - w.double()).abs().max()) / largest if largest and n != "loss"
              else measure.scaled_error(got[n], w) for n, w in wants.items()]
    it.report.add(f"{model.name}: error", max(errors), model.tolerance, measure.AT_MOST,
                  note=f"{time.monotonic() - began:.1f} s")


def train(it, model, steps=5):
    """The losses of some steps, each of which follows from the update before."""
    began = time.monotonic()
    module = model.module()
    weights = {name: t.detach().contiguous() for name, t in module.state_dict().items()}
    inputs, got, want = model.all_inputs(it.place), [], []
    with it.open(model.name, weights) as program:
        call = program.prepare(inputs, model.entry)
        for _ in range(steps):
            call()
            it.synchronise()
            got.append(next(iter(call.outputs.values())).cpu().clone())
    module = module.to(it.place)
    optimizer = model.optimizer(module)
    del inputs["learning_rate"]
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = module(**inputs)
        loss.backward()
        optimizer.step()
        want.append(loss.detach().cpu())
    if not float(want[-1]) < float(want[0]):
        it.report.check(model.name, "PyTorch's loss does not fall: nothing can be said")
        return
    it.report.add(f"{model.name}: error of the losses", measure.scaled_error(torch.stack(got), torch.stack(want)), model.tolerance,
                  measure.AT_MOST, note=f"{time.monotonic() - began:.1f} s")
