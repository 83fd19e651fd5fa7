# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what PyTorch's autograd knows beside the operators into an exported graph, as detaches.

The decompositions inline the regions of `torch.no_grad()`, and make an in-place write through a detached
view a value that replaces the tensor itself; a gradient of the graph would then pass where PyTorch's does
not, or be zero where PyTorch's is not. So, before they run:
  - each tensor that an operator reads inside `no_grad` is read through a detach, if a parameter is in it;
  - `detach_` is a `detach` whose result the later uses read;
  - what has no such form is an error: a write past autograd, inside `no_grad` or through a detached view,
    into a tensor that has a gradient and that the model reads afterwards.
"""
import dataclasses
import operator

import torch

aten = torch.ops.aten
FROZEN, TRAINED = 1, 2  # what is in a value: parameters without a gradient, parameters with one


@dataclasses.dataclass
class Storage:
    """Memory that some tensors share; they have one gradient, except those that are detached from it."""
    level: int = 0
    detached_level: int = 0
    # The errors if the tensors, or the detached ones, are read after a write past autograd.
    written: str = ""
    detached_written: str = ""


@dataclasses.dataclass(frozen=True)
class Value:
    storage: Storage
    detached: bool = False

    @property
    def level(self):
        return self.storage.detached_level if self.detached else self.storage.level

    @property
    def error(self):
        return self.storage.detached_written if self.detached else self.storage.written


def is_differentiable(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def is_nested(node, module):
    return isinstance(node, torch.fx.Node) and node.op == "get_attr" and isinstance(getattr(module, node.target, None), torch.fx.GraphModule)


def place(node):
    """The module and the source line of a node, as far as PyTorch recorded them."""
    modules = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path]
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip().startswith("File ")]
    return f"in module '{modules[-1] if modules else ''}'" + (f", {lines[-1]}" if lines else "")


def is_copy(node, source):
    """Whether an operator that may return its operand returns a copy of it here."""
    given, result = source.meta.get("val"), node.meta.get("val")
    if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor):
        return False
    return given.dtype != result.dtype or node.target is aten.contiguous.default and given.stride() != result.stride()


def returns_operand(node, given):
    """Whether an operator gives back its first operand itself, and no view of it, as it is called here."""
    packet = node.target._schema.name.split("::")[1]
    if packet in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
        return not given["train"]
    return packet in ("to", "contiguous") and not is_copy(node, node.args[0]) and not given.get("copy", False)


class GradModes:
    """Walks the graphs in the order in which they run."""

    def __init__(self):
        self.errors = {}

    def run(self, module, inputs, enabled):
        """Rewrites one graph, whose inputs have the values `inputs`, and returns those of its outputs."""
        values, inputs = {}, iter(inputs)
        results = None
        for node in list(module.graph.nodes):
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "get_attr" and not is_nested(node, module):
                values[node] = Value(Storage())
            elif node.op == "call_function":
                self.call(node, module, values, enabled)
            elif node.op == "output":
                results = [values.get(result) for result in torch.utils._pytree.tree_leaves(node.args[0])]
        module.recompile()
        return results

    def call(self, node, module, values, enabled):
        if node.target is operator.getitem:
            if node.args[0] in values:  # else they are numbers
                values[node] = values[node.args[0]][node.args[1]]
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            values[node] = self.nested(node, module, values, enabled)
        elif node.target is aten.detach_.default:
            self.detach_in_place(node, values)
        elif node.target is aten.detach.default:
            values[node] = Value(values[node.args[0]].storage, True)
        elif isinstance(node.target, torch._ops.OpOverload):
            self.operator(node, values, enabled)

    def nested(self, node, module, values, enabled):
        graphs = [index for index, arg in enumerate(node.args) if is_nested(arg, module)]
        if str(node.target) in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
            inside = node.args[0] if str(node.target) == "wrap_with_set_grad_enabled" else enabled
            body = getattr(module, node.args[graphs[0]].target)
            return self.run(body, [values.get(arg) for arg in node.args[graphs[0] + 1:]], inside)
        read = [value for value in map(values.get, node.all_input_nodes) if isinstance(value, Value)]
        if enabled:
            self.check_reads(read)
        level = max((value.level for value in read), default=0)
        for index in graphs:
            body = getattr(module, node.args[index].target)
            self.run(body, [self.fresh(inner, level) for inner in body.graph.find_nodes(op="placeholder")], enabled)
        return self.fresh(node, level if enabled else 0)

    def detach_in_place(self, node, values):
        """The operand is the result from here on, also for those uses that name the operand."""
        operand, graph = node.args[0], node.graph
        with graph.inserting_before(node):
            result = graph.call_function(aten.detach.default, (operand,))
        result.meta = dict(node.meta)
        # Tensors that share its memory and are read later still see what is written into it. Where there is none, it is
        # a tensor of its own, so that it may have another gradient once it is written.
        storage = values[operand].storage
        shared = operand.op == "placeholder" or any(
            isinstance(value, Value) and value.storage is storage and other is not operand and any(node < user for user in other.users)
            for other, value in values.items())
        values[result] = Value(storage, True)
        if not shared:
            with graph.inserting_before(node):
                result = graph.call_function(aten.clone.default, (result,))
            result.meta = dict(node.meta)
            values[result] = Value(Storage())
        node.replace_all_uses_with(result)
        operand.replace_all_uses_with(result, delete_user_cb=lambda user: node < user)
        graph.erase_node(node)

    def operator(self, node, values, enabled):
        schema = node.target._schema
        given = dict(zip((argument.name for argument in schema.arguments), node.args)) | node.kwargs
        read = {argument: values[node] for argument, node in given.items()
                if isinstance(node, torch.fx.Node) and isinstance(values.get(node), Value)}
        everything = [value for value in map(values.get, node.all_input_nodes) if isinstance(value, Value)]
        aliases = {argument.name: argument.alias_info for argument in schema.arguments
                   if argument.alias_info is not None and argument.name in read}
        writes = [name for name, alias in aliases.items() if alias.is_write]
        seen = {name: value if enabled or not value.level else Value(value.storage, True) for name, value in read.items()}
        level = max((value.level for value in everything), default=0) if enabled else 0
        if any(is_differentiable(val) for val in self.vals(node)) and enabled:
            self.check_reads(everything)
        if not enabled and returns_operand(node, given):
            values[node] = values[node.args[0]]
            return
        if not enabled:
            self.detach_reads(node, values)
        # What an operator writes besides making its results are statistics, into which no gradient passes.
        returns_written = not schema.returns or any(result.alias_info is not None for result in schema.returns)
        for name in writes:
            self.write(node, read[name], seen[name], level if returns_written else 0)
        if writes and returns_written:
            results = [read[name] for name in writes]  # the tensors themselves
            values[node] = results[0] if len(schema.returns) < 2 else results
            return
        source = next(iter(aliases), None) if any(result.alias_info is not None for result in schema.returns) else None
        if source is not None and not is_copy(node, given[source]):
            val = node.meta.get("val")
            values[node] = [seen[source]] * len(val) if isinstance(val, (list, tuple)) else seen[source]
            return
        name = node.target._schema.name.split("::")[1]
        values[node] = self.fresh(node, 0 if name.endswith("_like") or name.startswith("new_") else level)

    def write(self, node, target, seen, level):
        storage = target.storage
        if seen.detached and max(storage.level, level) == TRAINED:
            past = "through a detached view" if target.detached else "inside torch.no_grad()"
            way = "write into a clone of the detached tensor" if target.detached else "write it out of place, or outside torch.no_grad()"
            storage.written = (f"{place(node)}: '{node.target}' writes in place, {past}, into a tensor that has a gradient and "
                               f"that the model reads afterwards; {way}")
            if level == TRAINED:  # the view is made anew of the tensor, detached
                storage.detached_written = (f"{place(node)}: '{node.target}' writes a tensor that has a gradient in place, {past}, which "
                                            f"the model reads afterwards; {way}")
        if seen.detached:
            storage.detached_level = max(storage.detached_level, level)
        storage.level = max(storage.level, level)

    def detach_reads(self, node, values):
        def detached(arg):
            value = values.get(arg)
            if not isinstance(value, Value) or value.detached or not value.level:
                return arg
            with node.graph.inserting_before(node):
                result = node.graph.call_function(aten.detach.default, (arg,))
            result.meta = {key: entry for key, entry in node.meta.items() if key in ("nn_module_stack", "stack_trace")}
            result.meta["val"] = arg.meta.get("val")
            values[result] = Value(value.storage, True)
            return result
        node.args, node.kwargs = (torch.fx.map_arg(part, detached) for part in (node.args, node.kwargs))

    def check_reads(self, read):
        self.errors.update((value.error, None) for value in read if value.error)

    @staticmethod
    def vals(node):
        val = node.meta.get("val")
        return val if isinstance(val, (list, tuple)) else [val]

    def fresh(self, node, level):
        made = [Value(Storage(level if is_differentiable(val) else 0)) for val in self.vals(node)]
        return made if isinstance(node.meta.get("val"), (list, tuple)) else made[0]


def detach_as_autograd(program):
    """Rewrites `program`, as torch.export.export returns it. Raises ValueError with all that has no such form."""
    parameters, modes = program.graph_signature.inputs_to_parameters, GradModes()

    def level(node):
        if node.name not in parameters:
            return 0
        return TRAINED if program.state_dict[parameters[node.name]].requires_grad else FROZEN

    inputs = [modes.fresh(node, level(node)) for node in program.graph.find_nodes(op="placeholder")]
    results = modes.run(program.graph_module, inputs, True)
    modes.check_reads([value for value in results if isinstance(value, Value)])
    if modes.errors:
        raise ValueError("\n".join(modes.errors))
