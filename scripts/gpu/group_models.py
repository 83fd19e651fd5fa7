# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of whole models: their time over that of PyTorch, eager and compiled, measured in turns in one process; and how long
the host takes to launch a step."""
import statistics
import time

import torch

import measure

LAUNCH_LIMIT = 20.0  # microseconds


def run(it):
    torch.backends.cuda.matmul.allow_tf32 = False
    it.each(it.chosen("models"), lambda model: compare(it, model))


def compare(it, model):
    module = model.module()
    weights = {name: t.detach().contiguous() for name, t in module.state_dict().items()}
    inputs = {name: t.to(it.place) for name, t in model.inputs().items()}
    with it.open(model.name, weights) as program:
        del weights
        call = program.prepare(inputs, "gradients" if model.gradients else None)
        call()
        it.synchronise()
        eager = step(module.to(it.place), inputs, model)
        error = difference(call, eager)
        compiled = compile_step(it, model, module, inputs)
        functions = [call, eager] + ([compiled] if compiled else [])
        times = it.measure(*functions, seconds=min(4.0, it.left / 4))
        launch = host_time(call)
    it.report.add(f"{model.name}: step", times[0] * 1e3, unit="ms")
    it.report.add(f"{model.name}: over eager", times[0] / times[1], model.limits[0], measure.AT_MOST,
                  note=f"eager {times[1] * 1e3:.4g} ms")
    if compiled:
        it.report.add(f"{model.name}: over torch.compile", times[0] / times[2], model.limits[1], measure.AT_MOST,
                      note=f"compiled {times[2] * 1e3:.4g} ms")
    else:
        it.report.add(f"{model.name}: over torch.compile", None, model.limits[1], measure.AT_MOST, note="not compiled in time")
    it.report.add(f"{model.name}: launch and end of a step", launch * 1e6, LAUNCH_LIMIT, measure.AT_MOST, "us")
    it.report.add(f"{model.name}: difference from eager", error, model.tolerance, measure.AT_MOST)


def step(module, inputs, model):
    """Forward, or forward and backward into the gradients of all parameters."""
    if not model.gradients:
        def forward():
            with torch.inference_mode():
                return module(**inputs)
        return forward

    parameters = [p for p in module.parameters() if p.requires_grad]

    def training():
        loss = module(**inputs)
        return loss.detach(), *torch.autograd.grad(loss, parameters)
    return training


def compile_step(it, model, module, inputs):
    """None where the time does not allow it."""
    if it.left < 60:
        return None
    torch._dynamo.reset()
    mode = "max-autotune-no-cudagraphs" if it.left > 400 else "default"
    # A step of one token is bound by launches: with CUDA graphs it is the comparison that counts.
    if model.name.startswith("decode"):
        mode = "reduce-overhead"
    compiled = step(torch.compile(module, mode=mode), inputs, model)
    for _ in range(3):
        compiled()
    it.synchronise()
    return compiled


def difference(call, eager):
    want = eager()
    want = list(want) if isinstance(want, tuple) else [want]
    # Of a training step, the loss; gradients are compared in the group `answers`.
    got = list(call.outputs.values())
    if len(want) != len(got):
        want = want[:1]
    by_shape = [g for g in got if g.shape == want[0].shape]
    return measure.scaled_error(by_shape[0], want[0])


def host_time(call, count=20):
    """Seconds that a step takes beyond the device's own work: until it is launched, and until its end is known. The device's
    time is that of a step that was launched while the device was still busy."""
    wall, device = [], []
    for _ in range(count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        wall.append(time.perf_counter() - begin)
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)  # cycles, about a millisecond
        first.record()
        call()
        last.record()
        last.synchronize()
        device.append(first.elapsed_time(last) * 1e-3)
    return statistics.median(wall) - statistics.median(device)
