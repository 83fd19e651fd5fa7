# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a model keeps and writes, such as the cache of a decoder.

An export in PyTorch's non-strict way calls a tensor that the forward reaches in another way than by its name in the module
(`self.cache.layers[0].keys`) a constant, also where it is a buffer as well; no decomposition takes a constant that is written. And tracing
writes such tensors itself. So each becomes the buffer that it is, or one that no file with weights has, and has the value from before the export.
"""
import contextlib
import sys

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
        known = {id(tensor) for tensor in tensors.values()}
        if replaced := sorted(name for name, tensor in tensors_of(model).items() if id(tensor) not in known):
            print(f"shardc export: note: the forward puts other tensors in the place of {', '.join(replaced)}, which the program does not keep "
                  "from run to run: write into a tensor in place, as with copy_ or index_copy_, or make it an argument and a result. The module "
                  "in Python has what is left of the export there", file=sys.stderr)
    finally:
        for name, (version, has_gradient, value) in before.items():
            tensor = tensors[name]
            if tensor._version != version:
                if tensor.requires_grad != has_gradient and not tensor._is_view():
                    tensor.detach_().requires_grad_(has_gradient)
                with torch.no_grad():
                    tensor.copy_(value)


def written_by(node, keys):
    """The keys of what an operator writes: its first argument as a rule, but also each tensor of a list, or `out`."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return set()
    schema, leaves = node.target._schema.arguments, torch.utils._pytree.tree_leaves
    given = {**dict(zip((argument.name for argument in schema), node.args)), **node.kwargs}
    places = leaves([given.get(argument.name) for argument in schema if argument.alias_info and argument.alias_info.is_write])
    # A node with several results has the keys of all.
    return {key for key in leaves([keys.get(place) for place in places if isinstance(place, torch.fx.Node)]) if key is not None}


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
            continue
        changed |= written_by(node, keys)
        if node.args and isinstance(node.args[0], torch.fx.Node) and node.args[0] in keys:
            source = keys[node.args[0]]
            if isinstance(source, list):  # several results
                keys[node] = source[node.args[1]] if isinstance(node.args[1], int) else None
            elif isinstance(node.target, torch._ops.OpOverload):
                if any(argument.alias_info for argument in node.target._schema.arguments[:1]):
                    returned = node.target._schema.returns
                    many = returned and returned[0].type.kind() == "ListType"
                    keys[node] = [source] * len(node.meta["val"]) if many else source
    return changed, []


def overlap(a, b):
    """Whether two tensors have an element of memory in common, and are not the same."""
    if a is b or "meta" in (a.device.type, b.device.type) or not a.layout == b.layout == torch.strided:
        return False
    storage = a.untyped_storage()
    if storage._cdata != b.untyped_storage()._cdata:
        return False
    if (a.data_ptr(), a.shape, a.stride()) == (b.data_ptr(), b.shape, b.stride()):
        return False
    size = a.element_size()
    if size != b.element_size():
        return True
    taken = torch.zeros(storage.nbytes() // size, dtype=torch.bool)
    taken.as_strided(a.shape, a.stride(), a.storage_offset()).fill_(True)
    return bool(taken.as_strided(b.shape, b.stride(), b.storage_offset()).any())


def refuse_parts(program, changed, names):
    """Two tensors of a program have memory of their own: of a write to one, the other would know nothing."""
    states = [(spec, program.state_dict.get(spec.target, program.constants.get(spec.target)))
              for spec in program.graph_signature.input_specs if spec.target is not None]
    states = [(spec, value) for spec, value in states if isinstance(value, torch.Tensor)]
    for spec, value in states:
        for other, second in states:
            if spec.arg.name in changed and overlap(value, second):
                raise ValueError(f"the forward writes '{names.get(id(value), spec.target)}', which shares memory with "
                                 f"'{names.get(id(second), other.target)}' of the module: keep one of them, and take its parts in the forward")


def make_buffers(program, tensors):
    """Makes buffers of the constants of an exported program that it writes; `tensors` are those of the module."""
    signature, graph = program.graph_signature, program.graph
    nodes = {node.name: node for node in graph.find_nodes(op="placeholder")}
    specs = list(signature.input_specs)
    names = {id(tensor): name for name, tensor in tensors.items()}
    buffers = {spec.target: nodes[spec.arg.name] for spec in specs if spec.kind == InputKind.BUFFER}
    changed, _ = written(program.graph_module, [spec.arg.name for spec in specs])
    refuse_parts(program, changed, names)
    # A constant that is a buffer as well is one tensor with it, which either may write.
    moved = [spec for spec in specs if spec.kind == InputKind.CONSTANT_TENSOR
             and (spec.arg.name in changed or names.get(id(program.constants.get(spec.target))) in buffers)]
    if not moved:
        return
    for spec in moved:
        node, value = nodes[spec.arg.name], program.constants.pop(spec.target)
        specs.remove(spec)
        name = names.get(id(value), spec.target)
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
