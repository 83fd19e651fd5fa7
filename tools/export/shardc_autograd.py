# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model tells PyTorch's autograd beside its operators, of which an exported program has only the forward.

  - A checkpoint that runs its part again (`use_reentrant=True`) is a plain call of that part: it would leave autograd switched off behind it,
    and recomputation is what the plan says.
  - A function with a backward of its own, and a hook, are left out of the program. A note says so, because its gradients are those of the forward.
"""
import contextlib
import inspect
import pathlib
import sys

import torch
from torch.utils.checkpoint import CheckpointFunction

TORCH = str(pathlib.Path(torch.__file__).parent)


def place(part):
    """File and line of a class or a function, as far as they are known."""
    try:
        return f" ({pathlib.Path(inspect.getsourcefile(part)).name}:{inspect.getsourcelines(part)[1]})"
    except (TypeError, OSError):
        return ""


def depends_on_training(values):
    return torch.is_grad_enabled() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in torch.utils._pytree.tree_leaves(values))


@contextlib.contextmanager
def watched(model):
    """Tells at the end what of the forward the program does not have."""
    function, tensor = torch.autograd.Function, torch.Tensor
    apply, register = function.__dict__["apply"], tensor.register_hook
    functions, hooks = {}, set()

    def applied(cls, *args, **kwargs):
        if cls is CheckpointFunction:
            part, _, *rest = args
            return part(*rest)
        if not cls.__module__.startswith("torch.") and depends_on_training((args, kwargs)):
            functions[cls.__qualname__] = place(cls)
        return apply.__func__(cls, *args, **kwargs)

    def registered(self, hook):
        frame = sys._getframe(1)
        if not frame.f_code.co_filename.startswith(TORCH):  # PyTorch has hooks of its own
            hooks.add(f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return register(self, hook)

    function.apply, tensor.register_hook = classmethod(applied), registered
    try:
        yield
    finally:
        function.apply, tensor.register_hook = apply, register
    for name, where in functions.items():
        print(f"shardc export: note: {name}{where} has a backward of its own, which the program does not have: gradients of the program are those "
              "of its forward. Where a result is to have another gradient than its own, write y + (x - y).detach(), which has the value of x "
              "and the gradient of y", file=sys.stderr)
    hooks.update(f"of '{name}'" if name else "of the model" for name, one in [*model.named_parameters(), *model.named_modules()] if one._backward_hooks)
    if hooks:
        print(f"shardc export: note: the program does not have the hooks on gradients ({', '.join(sorted(hooks))}): its gradients are those "
              "without them", file=sys.stderr)
