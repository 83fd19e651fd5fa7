# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a model keeps and writes, such as the cache of a decoder.

An export in PyTorch's non-strict way calls a tensor that the forward reaches in another way than by its name in the module
(`self.cache.layers[0].keys`) a constant, also where it is a buffer as well; no decomposition takes a constant that is written. And tracing
writes such tensors itself. So each becomes the buffer that it is, or one that no file with weights has, and has the value from before the export.
"""
import contextlib

import torch
from torch.export.graph_signature import InputKind, InputSpec

OUTSIDE = (type, type(torch), torch.dtype, torch.device, torch.Size, str, bytes, int, float, complex, bool, type(None))


def tensors_of(model):
    """All tensors that a module reaches through attributes, lists and dicts: a dict from names as a plan may write them."""
    found, seen, waiting = {}, set(), [("", model)]
    names = {id(tensor): name for name, tensor in [*model.named_buffers(), *model.named_parameters()]}
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, OUTSIDE) or callable(value) and not isinstance(value, torch.nn.Module) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found[names.get(id(value), path)] = value
            continue
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
        attributes = getattr(value, "__dict__", {})
        parts = [*parts, *(() if isinstance(value, dict) else attributes.items())]
        for name, part in parts:
            # A module keeps its tensors and modules in dicts of its own, whose names are not in the path.
            hidden = isinstance(value, torch.nn.Module) and name in ("_parameters", "_buffers", "_modules")
            waiting.append((path if hidden else f"{path}.{name}" if path else str(name), part))
    return found


@contextlib.contextmanager
def kept(model):
    """Gives the tensors of a module, and puts back at the end what was written in between."""
    tensors = tensors_of(model)
    before = {name: (tensor._version, tensor.requires_grad, tensor.detach().clone()) for name, tensor in tensors.items()
              if not isinstance(tensor, torch.nn.Parameter) and not tensor.is_inference()}
    try:
        yield tensors
    finally:
        for name, (version, has_gradient, value) in before.items():
            tensor = tensors[name]
            if tensor._version != version:
                if tensor.requires_grad != has_gradient and not tensor._is_view():
                    tensor.detach_().requires_grad_(has_gradient)
                with torch.no_grad():
                    tensor.copy_(value)


def written(module, inputs):
    """Which of `inputs`, a key of each placeholder of a graph, some operator writes, and the key of each result."""
    keys, changed = dict(zip(module.graph.find_nodes(op="placeholder"), inputs)), set()
    for node in module.graph.nodes:
        if node.op == "output":
            return changed, [keys.get(result) for result in torch.utils._pytree.tree_leaves(node.args[0])]
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            for at, arg in enumerate(node.args):
                inner = getattr(module, arg.target, None) if isinstance(arg, torch.fx.Node) and arg.op == "get_attr" else None
                if isinstance(inner, torch.fx.GraphModule):
                    given = torch.utils._pytree.tree_leaves(node.args[at + 1:])
                    count = len(inner.graph.find_nodes(op="placeholder"))
                    more, results = written(inner, [keys.get(value) for value in given[len(given) - count:]])
                    changed |= more
                    keys[node] = results
        elif node.args and isinstance(node.args[0], torch.fx.Node) and node.args[0] in keys:
            source = keys[node.args[0]]
            if isinstance(source, list):  # several results
                keys[node] = source[node.args[1]] if isinstance(node.args[1], int) else None
            elif isinstance(node.target, torch._ops.OpOverload):
                aliases = [argument.alias_info for argument in node.target._schema.arguments[:1] if argument.alias_info]
                if any(alias.is_write for alias in aliases):
                    changed.add(source)
                if aliases:
                    returned = node.target._schema.returns
                    many = returned and returned[0].type.kind() == "ListType"
                    keys[node] = [source] * len(node.meta["val"]) if many else source
    return changed, []


def make_buffers(program, tensors):
    """Makes buffers of the constants of an exported program that it writes; `tensors` are those of the module."""
    signature, graph = program.graph_signature, program.graph
    nodes = {node.name: node for node in graph.find_nodes(op="placeholder")}
    specs = list(signature.input_specs)
    changed, _ = written(program.graph_module, [spec.arg.name for spec in specs])
    moved = [spec for spec in specs if spec.kind == InputKind.CONSTANT_TENSOR and spec.arg.name in changed]
    if not moved:
        return
    buffers = {spec.target: nodes[spec.arg.name] for spec in specs if spec.kind == InputKind.BUFFER}
    for spec in moved:
        node, value = nodes[spec.arg.name], program.constants.pop(spec.target)
        specs.remove(spec)
        name = next((name for name, tensor in tensors.items() if tensor is value), spec.target)
        if name in buffers:
            node.replace_all_uses_with(buffers[name])
            graph.erase_node(node)
            continue
        # Buffers stand in front of constants and inputs.
        at = next((at for at, other in enumerate(specs) if other.kind not in (InputKind.PARAMETER, InputKind.BUFFER)), len(specs))
        if at < len(specs):
            nodes[specs[at].arg.name].prepend(node)
        specs.insert(at, InputSpec(InputKind.BUFFER, spec.arg, name, persistent=False))
        program.constants[name] = value
        buffers[name] = node
    signature.input_specs = specs
    program.graph_module.recompile()
