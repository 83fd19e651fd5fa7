# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of whole models: the host's time until it has the result over that of PyTorch, eager and compiled, in turns in one
process; and how long the host takes to launch a captured step."""
import re
import statistics
import time
import traceback

import torch

import measure

LAUNCH_LIMIT = 20.0  # microseconds


def run(it):
    torch.backends.cuda.matmul.allow_tf32 = False
    it.each(it.chosen("models"), lambda model: compare(it, model))


def compare(it, model):
    module = model.module()
    weights = {name: t.detach().contiguous() for name, t in module.state_dict().items()}
    inputs, log = model.all_inputs(it.place), []
    with it.open(model.name, weights, log=log.append) as program:
        del weights
        call = program.prepare(inputs, model.entry)
        inputs.pop("learning_rate", None)
        call()
        it.synchronise()
        eager = step(module.to(it.place), inputs, model)
        error = difference(it, call, eager, model)
        compiled, why = compile_step(it, model, module, inputs)
        functions = [call, eager] + ([compiled] if compiled else [])
        times = it.steps(*functions, seconds=min(4.0, it.left / 4))
        launch = launch_time(it, call, log)
    it.report.add(f"{model.name}: step", times[0] * 1e3, unit="ms")
    it.report.add(f"{model.name}: over eager", times[0] / times[1], model.limits[0], measure.AT_MOST,
                  note=f"eager {times[1] * 1e3:.4g} ms")
    if compiled:
        it.report.add(f"{model.name}: over torch.compile", times[0] / times[2], model.limits[1], measure.AT_MOST,
                      note=f"compiled {times[2] * 1e3:.4g} ms")
    else:
        it.report.add(f"{model.name}: over torch.compile", None, model.limits[1], measure.AT_MOST, note=why)
    it.report.add(f"{model.name}: launch of a captured step", launch and launch * 1e6, LAUNCH_LIMIT, measure.AT_MOST, "us",
                  note="" if launch else "no step was launched as a graph")
    it.report.add(f"{model.name}: difference from eager", error, model.tolerance, measure.AT_MOST)


def step(module, inputs, model):
    """Forward, or forward and backward into the gradients of all parameters, or a step of training."""
    if model.train:
        optimizer = model.optimizer(module)

        def update():
            optimizer.zero_grad(set_to_none=True)
            loss = module(**inputs)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return update
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
    """The step, or None and why there is none: torch.compile may take longer than is left, or fail."""
    if it.left < it.facts.get("compile_seconds", 45):
        return None, "no time was left to compile it"
    torch._dynamo.reset()
    mode = "default"
    # A step of one token is bound by launches: with CUDA graphs it is the comparison that counts. They need not copy inputs.
    if model.name.startswith("decode"):
        mode = "reduce-overhead"
        for tensor in inputs.values():
            torch._dynamo.mark_static_address(tensor)
    compiled = step(torch.compile(module, mode=mode, fullgraph=True, dynamic=False), inputs, model)
    try:
        for _ in range(3):
            compiled()
        it.synchronise()
    except Exception as error:  # any of a compiler's: the other figures stand
        traceback.print_exc()
        return None, f"torch.compile failed: {type(error).__name__}"
    return compiled, ""


def difference(it, call, eager, model):
    """Of what the last call returned; of a training step, of the loss after two updates."""
    want = eager()
    for _ in range(2 if model.train else 0):
        call()
        it.synchronise()
        want = eager()
    want = list(want) if isinstance(want, tuple) else [want]
    # Of a training step, the loss; gradients are compared in the group `answers`.
    got = list(call.outputs.values())
    if len(want) != len(got):
        want = want[:1]
    by_shape = [g for g in got if g.shape == want[0].shape]
    return measure.scaled_error(by_shape[0], want[0])


def launch_time(it, call, log, count=30):
    """Seconds from a call until its graph is launched on a device that waits, all checks of the call and Python's part of it
    included; the median. None if steps are no graphs. The log says when that was, on the clock that Python reads too."""
    taken = []
    for _ in range(count):
        it.synchronise()
        log.clear()
        begin = time.monotonic()
        call()
        found = [re.search(r"its graph was launched at ([0-9.]+) us", line) for line in log]
        taken += [float(match[1]) * 1e-6 - begin for match in found if match]
    return statistics.median(taken) if len(taken) == count else None
