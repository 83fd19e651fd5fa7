# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a random program that differs from PyTorch smaller."""
import dataclasses

from program_source import evaluate, results_of


def smaller(program):
    """Programs with less in them."""
    source = program.source
    if len(source.returned) > 1:
        for i in range(len(source.returned)):
            yield dataclasses.replace(program, source=dataclasses.replace(source, returned=[source.returned[i]]))
    needed = set(source.returned)
    kept = []
    for line in reversed(source.lines):
        if needed & {n.rstrip(",") for n in line.names}:
            kept.insert(0, line)
            needed |= set(line.inputs)
    if len(kept) < len(source.lines):
        yield dataclasses.replace(program, source=dataclasses.replace(source, lines=kept))
    for name, axes in program.shardings.items():
        for axis in axes:
            fewer = {**program.shardings, name: {a: d for a, d in axes.items() if a != axis}}
            yield dataclasses.replace(program, shardings=fewer)
    # A line becomes an input.
    for at, line in enumerate(source.lines):
        if len(line.names) == 1 and not line.names[0].endswith(","):
            yield with_input(program, at, line)


def with_input(program, at, line):
    variables = {**program.inputs, "self": type("Weights", (), program.weights)}
    for before in program.source.lines[:at + 1]:
        for name, value in zip(before.names, results_of(evaluate(before.text, variables))):
            variables[name.rstrip(",")] = value
    value = variables[line.names[0]].contiguous()
    lines = program.source.lines[:at] + program.source.lines[at + 1:]
    inputs = {**program.inputs, line.names[0]: value}
    declared = {**program.source.inputs, line.names[0]: (list(value.shape), value.dtype)}
    return dataclasses.replace(program, inputs=inputs, source=dataclasses.replace(program.source, lines=lines, inputs=declared))


def without_unused(program):
    text = program.source.body()
    inputs = {n: t for n, t in program.inputs.items() if n in text} or program.inputs
    weights = {n: t for n, t in program.weights.items() if f"self.{n}" in text}
    program = dataclasses.replace(program, inputs=inputs, weights=weights,
                               source=dataclasses.replace(program.source, inputs={n: program.source.inputs[n] for n in inputs}),
                               shardings={n: a for n, a in program.shardings.items() if n in inputs or n in weights})
    return program.computed()


def shrink(program, problem, outcome_of):
    """The smallest program with a problem that is found by taking one thing away at a time. `outcome_of`: what is wrong with
    one, or nothing."""
    kind, found = problem.split(":")[0], True
    while found:
        found = False
        for candidate in smaller(program):
            candidate = without_unused(candidate)
            if not candidate:
                continue
            text = outcome_of(candidate)
            if text and (text.split(":")[0] == kind or kind.startswith("output") and text.startswith("output")):
                program, problem, found = candidate, text, True
                break
    return program, problem
