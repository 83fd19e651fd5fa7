# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Brings all dropouts of an exported graph into the form `dropout`, before the decompositions run: they would
make random numbers and products of the others, of which nobody could tell any more that inference leaves them out.
  - `dropout_` is a `dropout` that is written over its input;
  - `feature_dropout` multiplies by a `dropout` of ones, one for each channel;
  - alpha dropout has no such form: it is an error in training.
"""
import torch

import shardc_grad_modes

aten = torch.ops.aten
FEATURES = (aten.feature_dropout.default, aten.feature_dropout_.default)
ALPHA = (aten.alpha_dropout.default, aten.alpha_dropout_.default, aten.feature_alpha_dropout.default,
         aten.feature_alpha_dropout_.default)
IN_PLACE = (aten.dropout_.default, aten.feature_dropout_.default)


def unify(program):
    """Changes the exported program. Raises ValueError where there is an alpha dropout in training."""
    refused = []
    for module in program.graph_module.modules():
        for node in list(module.graph.nodes) if isinstance(module, torch.fx.GraphModule) else ():
            if node.op != "call_function" or len(node.args) < 3 or not node.args[2] or node.args[1] == 0:
                continue
            if node.target in ALPHA:
                refused.append(shardc_grad_modes.place(node))
            elif node.target in FEATURES or node.target in IN_PLACE:
                made = rewrite(module.graph, node)
                program.graph_signature.replace_all_uses(node.name, made.name)
    if refused:
        raise ValueError("alpha dropout in training is not supported: " + "; ".join(refused))
    program.graph_module.recompile()


def rewrite(graph, node):
    source, p, train = node.args
    value = source.meta["val"]

    def call(target, args, result):
        made = graph.call_function(target, args)
        made.meta = {**node.meta, "val": result}
        return made
    with graph.inserting_before(node):
        if node.target in FEATURES:
            sizes = [*value.shape[:2], *[1] * (value.dim() - 2)]
            if not all(isinstance(n, int) for n in sizes):
                sizes = [call(aten.sym_size.int, (source, d), n) if not isinstance(n, int) else n for d, n in enumerate(sizes)]
            mask = value.new_ones([n.meta["val"] if isinstance(n, torch.fx.Node) else n for n in sizes])
            kept = call(aten.dropout.default, (call(aten.new_ones.default, (source, sizes), mask), p, train), mask)
            result = call(aten.mul.Tensor, (source, kept), value)
        else:
            result = call(aten.dropout.default, (source, p, train), value)
        if node.target in IN_PLACE:
            result = call(aten.copy_.default, (source, result), value)
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    return result
