# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose parameters have shapes and no values: no memory is filled for them, and an export of theirs has no weights."""
import contextlib
import json

import torch
from torch.utils import _pytree
from torch.utils.weak import WeakTensorKeyDictionary

# Of the archive: which names of a tensor without data are one tensor.
TIES = "shardc_ties.json"
# Of the archive: the program has the decompositions of `shardc export`, so that nobody is told to use it.
DECOMPOSED = "shardc_decomposed"


def _like(tensor, device):
    """A tensor of the same kind elsewhere, with no values: memory that nothing touches takes no room."""
    twin = torch.empty_like(tensor, device=device)
    if isinstance(tensor, torch.nn.Parameter):
        twin = torch.nn.Parameter(twin, requires_grad=tensor.requires_grad)
        twin.__dict__.update(tensor.__dict__)
    return twin


@contextlib.contextmanager
def parameters_on_meta():
    """Parameters go to the device meta when a module registers them, so that what fills them costs nothing. Buffers are as ever."""
    register = torch.nn.Module.register_parameter
    moved = WeakTensorKeyDictionary()  # tied ones stay one

    def registered(module, name, parameter):
        register(module, name, parameter)
        if parameter is None or parameter.is_meta:
            return
        if parameter not in moved:
            moved[parameter] = _like(parameter, "meta")
        module._parameters[name] = moved[parameter]

    torch.nn.Module.register_parameter = registered
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def export(exporter, model, args, kwargs):
    """What `exporter(model, args, kwargs)` returns, without values of what is on the device meta. It sees the model on the CPU, so that constants of
    the forward have their values, and with tensors that nothing has written."""
    twins = WeakTensorKeyDictionary()

    def real(tensor):
        if not tensor.is_meta:
            return tensor
        if tensor not in twins:
            twins[tensor] = _like(tensor, "cpu")
        return twins[tensor]

    names = {}  # of each tensor without values
    for path, module in model.named_modules(remove_duplicate=False):
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and (tensor.is_meta or id(tensor) in names):
                    tensors[name] = real(tensor)
                    names.setdefault(id(tensors[name]), []).append(f"{path}.{name}" if path else name)
    args, kwargs = _pytree.tree_map_only(torch.Tensor, real, (tuple(args), dict(kwargs or {})))
    program = exporter(model, args, kwargs)
    for name in (name for tied in names.values() for name in tied):
        for values in (program.state_dict, program.constants):
            if name in values:
                values[name] = _like(values[name], "meta")
    program.shardc_ties = [tied for tied in names.values() if len(tied) > 1]
    return program


def save(program, path, decomposed=True):
    extra = {DECOMPOSED: ""} if decomposed else {}
    if program.shardc_ties:
        extra[TIES] = json.dumps(program.shardc_ties)
    torch.export.save(program, path, extra_files=extra or None)
