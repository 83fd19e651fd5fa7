# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls torch.export in one way and, where that fails, in the other, and says in a few lines why both failed and what to do."""
import contextlib
import io
import logging
import pathlib
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensor

import shardc_autograd

TORCH = str(pathlib.Path(torch.__file__).parent)
RUN_IT = "run the module on the factory's arguments in Python first: the same error comes there"
# What PyTorch's errors say, and what to do about it. The first entry counts of which a part is in the error.
ADVICE = (
    (("GuardOnDataDependentSymNode", "Could not guard on data-dependent", "data-dependent expression", "DataDependentOutputException",
      "Data-dependent branching", "data dependent control flow", ".item()", "aten._local_scalar_dense"),
     "the forward decides by the values of a tensor, which are not known before it runs: write it with torch.where, or pass "
     "the decision as a plain Python value, which the export then fixes"),
    (("PyTorch has lost the values of",), "use x.detach() in place of x.data, and buffers of the module as constants"),
    (("Constraints violated", "were specialized to", "specialized to a constant", "ConstraintViolation"),
     "the model fixes a size that --dynamic leaves open: leave that dim out of --dynamic, or give it the range that the model can take "
     "(--dynamic ARG:DIM=NAME:MIN:MAX), and an example of a size inside the range, neither 0 nor 1"),
    (("dynamic_shapes", "Dim.", "derived dim"),
     "--dynamic and the arguments do not fit together: an argument inside a list, a dict or a cache is named with dots, as in pair.0"),
    (("Unsupported input type", "is not a valid pytree", "unsupported type", "Unsupported type"),
     "pass tensors, numbers, strings and lists, tuples or dicts of those; register classes of your own with torch.export.register_dataclass "
     "or torch.utils._pytree.register_pytree_node, or wrap the model in a module that takes tensors"),
    (("missing a required argument", "unexpected keyword argument", "required positional argument", "positional arguments but"),
     "the factory returns other arguments than the forward takes: return (module, args) or (module, args, kwargs)"),
    # An operator does not take what it is given, such as matrices that do not fit.
    (("Error when making fake tensor call",), RUN_IT),
    (("Graph break", "torch._dynamo", "Unsupported", "graph-break", "call_function BuiltinVariable"),
     "the forward uses Python that PyTorch cannot follow: move it out of the forward, into the factory, or wrap the model in a module whose "
     "forward has tensor code alone"),
    (("must be", "size mismatch", "cannot be multiplied", "not match", "Expected"),
     RUN_IT),
)


class ExportError(ValueError):
    """Its message is for whoever exports, and complete."""


def place(error):
    """The last line of the model's own code behind an error: neither PyTorch's nor this helper's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not frame.filename.startswith((TORCH, "<")) and pathlib.Path(frame.filename).parent != pathlib.Path(__file__).parent]
    if frames:
        return f"{frames[-1].filename}:{frames[-1].lineno}"
    # The strict way reads the forward and never runs it: its errors have the place in their text.
    lines = [line.strip() for line in str(error).splitlines() if line.strip().startswith("File \"")]
    own = [line for line in lines if TORCH not in line]
    if not own:
        return ""
    name, line = own[-1].split(",")[:2]
    return f"{name[len('File '):].strip(chr(34))}:{line.removeprefix(' line ')}"


def reason(error):
    """What PyTorch says, in its own words, without its traceback: the first line that says anything."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and set(line.strip()) - set("=-*")]
    first = lines[0] if lines else type(error).__name__
    return first if len(first) < 300 else first[:297] + "..."


def advice(errors):
    texts = [f"{type(error).__name__}: {error}" for error in errors]
    for parts, text in ADVICE:
        if any(part in whole for whole in texts for part in parts):
            return text
    return "run the module on the factory's arguments in Python first; if it runs, leave out what of it is not needed until it exports"


def describe(way, error):
    at = place(error)
    return f"the {way} way fails" + (f" at {at}" if at else "") + f": {reason(error)}"


@contextlib.contextmanager
def without_logs():
    """PyTorch logs errors with their tracebacks before it raises them."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def refuse_lost_constants(program):
    """A constant of which PyTorch has the shape alone: decompositions would read memory that is not there."""
    lost = sorted(name for name, value in program.constants.items() if isinstance(value, FakeTensor))
    if lost:
        raise ExportError(f"PyTorch has lost the values of {', '.join(lost)}, tensors of the forward that it takes for constants: write x.detach() "
                          "in place of x.data, and make constants outside of torch.vmap, or as buffers of the module")


def trace(model, args, kwargs, shapes, strict=False):
    """What torch.export makes of a module. Raises ExportError where it makes nothing of it in either way."""
    failed = {}
    for way in ("strict", "non-strict") if strict else ("non-strict", "strict"):
        printed, said = io.StringIO(), io.StringIO()
        try:
            # So that the program says where the model itself disables it. PyTorch prints the graph that it has so far where it fails.
            with without_logs(), torch.enable_grad(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
                # The strict way reads the calls that the other one makes, and knows those of PyTorch by what they are.
                with shardc_autograd.watched(model) if way != "strict" else contextlib.nullcontext():
                    program = torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=way == "strict")
            refuse_lost_constants(program)
        except Exception as error:  # PyTorch raises errors of many kinds, and a module's code any
            failed[way] = error
            torch._dynamo.reset()
            continue
        sys.stdout.write(printed.getvalue())
        sys.stderr.write(said.getvalue())
        for other, error in failed.items():
            print(f"shardc export: note: exported in PyTorch's {way} way, because {describe(other, error)}", file=sys.stderr)
        return program
    lines = [describe(way, error) for way, error in failed.items()]
    raise ExportError("PyTorch cannot export this model.\n  " + "\n  ".join(lines) + f"\n  What to do: {advice(list(failed.values()))}.")
