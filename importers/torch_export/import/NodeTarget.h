// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the target of a node is.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NODETARGET_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NODETARGET_H

#include "importers/torch_export/import/Builders.h"

namespace shardc::torch_export {

/// `overload` is set only for kinds that need it; `schema` wherever there is one.
struct Target {
  enum Kind {
    Unsupported,
    Sizes,       // makes symbolic numbers only
    Nested,      // runs the graph among its arguments as it is (ControlFlow.h)
    ControlFlow, // runs the graphs among its arguments on parts of tensors, or under a condition
    Plain,       // `overload` or `complex` and `schema` are set
    InPlace,     // likewise, of the functional form; the first argument or `out` is updated
    Dropped,     // has no effect on values
    Collective,
    Wait
  };
  Kind kind = Unsupported;
  const Overload *overload = nullptr;
  const Overload *complex = nullptr; // where it has complex tensors; null: refused
  const Schema *schema = nullptr;
  bool hasOut = false; // writes its result into the argument `out`
};

/// The name of the tensor that is this argument, or the first one. Empty if it is none.
llvm::StringRef tensorArgument(const Node &node, llvm::StringRef argument = {});

/// The node without its argument `out`.
Node withoutOut(const Node &node);

Target classify(const Node &node, mlir::MLIRContext *context);

/// Name, module path and source line of a node.
mlir::Location locationOf(mlir::MLIRContext *context, const Node &node, bool withName = true);

/// "torch.ops.aten.add.Tensor" without its prefix.
llvm::StringRef shortTarget(const Node &node);

/// Whether the node reads a number out of a tensor of one element (`Tensor.item`).
bool readsElement(const Node &node);

/// Whether more depends on a number of the graph than other numbers and checks of them, which are
/// dropped.
bool isNumberUsed(const Graph &graph, llvm::StringRef name);

/// Whether it is `detach_`.
bool isDetach(const Node &node);
/// Whether PyTorch's operator gives back its operand itself, where it has nothing to change, and no
/// view of it.
bool returnsOperand(const Node &node);
/// Whether a result of the node shares the storage of its first tensor argument, as PyTorch ran it.
bool sharesStorage(const Node &node, const Schema &schema, const Graph &graph);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NODETARGET_H
