// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values that the names of a program stand for while it is imported: tensors, symbolic sizes
// and collectives in flight, of the graph that is being read and of those around it.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ENVIRONMENT_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ENVIRONMENT_H

#include "importers/torch_export/import/Call.h"
#include "importers/torch_export/import/RandomNumbers.h"
#include "importers/torch_export/import/Storages.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace shardc::torch_export {

/// A collective in flight.
struct Future {
  mlir::Value value;
  /// The tensor that it writes into; the result shares its storage once it has been waited for.
  std::optional<Storages::Tensor> target;
};

/// The names of one graph: the program's, or one nested in a node.
struct Frame {
  const Graph *graph;
  /// Inside `torch.no_grad()`: what is read is a constant to gradients.
  bool noGrad = false;
  llvm::StringMap<Storages::Tensor> tensors = {};
  llvm::StringMap<mlir::OpFoldResult> sizes = {};  // null: could not be built
  llvm::StringMap<mlir::Value> items = {};         // numbers read from these tensors of one element
  llvm::StringMap<Future> futures = {};            // not waited for yet
  llvm::StringMap<const Node *> postponed = {};    // views of futures, built after the wait
  std::optional<llvm::StringSet<>> used = {};      // by nodes or as outputs, once asked for
  llvm::SmallVector<Storages::Tensor> copied = {}; // operands with storages of their own here
};

class Environment final : public ValueSource {
public:
  /// `isLocal`: the program is what one rank does, with collectives.
  Environment(mlir::OpBuilder &builder, bool isLocal)
      : storages(builder), random(builder), builder(builder), isLocal(isLocal) {}

  mlir::Value tensor(llvm::StringRef name, mlir::Location loc) override;
  mlir::FailureOr<mlir::OpFoldResult> size(const SymIntArg &value, mlir::Location loc) override;
  mlir::Value item(const SymIntArg &value) override;
  bool isUsed(llvm::StringRef name) override;
  const TensorMeta *recorded(llvm::StringRef name) override;
  mlir::FailureOr<mlir::Value> draw(mlir::Location loc, llvm::StringRef distribution,
                                    mlir::Type elementType,
                                    llvm::ArrayRef<mlir::OpFoldResult> sizes) override;

  Frame &frame() { return frames.back(); }
  std::optional<Storages::Tensor> find(llvm::StringRef name);

  /// Whether the name stands for a collective in flight, or a view of one.
  bool isPending(llvm::StringRef name) {
    return frame().futures.contains(name) || frame().postponed.contains(name);
  }
  /// The first tensor argument, list elements included, that is pending; empty if there is none.
  llvm::StringRef findPending(const Node &node);

  /// Waits for the collective; from then on the name stands for the tensor that it delivers.
  void wait(llvm::StringRef name, mlir::Location loc);

  /// Gives values of one frame names in another.
  mlir::LogicalResult bindNames(llvm::ArrayRef<Argument> names,
                                llvm::ArrayRef<const Argument *> arguments, Frame &from, Frame &to,
                                mlir::Location loc);

  /// What is read inside `no_grad` is detached, but for this name: of a tensor that is written, or
  /// that a view is made of. Set for one node.
  void keepGradientOf(llvm::StringRef name) { kept = name; }
  /// Updates a tensor. Inside `no_grad` that passes autograd by: no gradient of the old value says
  /// anything about the new one, and whoever differentiates refuses it.
  void write(Storages::Tensor tensor, mlir::Value value, mlir::Location loc);
  /// Updates the tensor that an argument names, if it names one, with a value that no gradient
  /// passes.
  void writeStatistic(const Argument *argument, mlir::Value value, mlir::Location loc);
  /// A tensor that shares the storage of `source`, of which one op made `value`; inside `no_grad`
  /// it has no gradient, while `source` keeps its own.
  Storages::Tensor addView(Storages::Tensor source, mlir::Value value, mlir::Location loc);
  /// The tensor without its gradient, on the same storage.
  Storages::Tensor addDetached(Storages::Tensor source, mlir::Location loc);

  /// Takes the gradient from a tensor, under all its names; those that share its storage keep
  /// theirs.
  void detachInPlace(Storages::Tensor tensor, llvm::StringRef result, mlir::Location loc);
  /// `squeeze_` and its kin: all names of the tensor, and `result`, stand for `value` from then on,
  /// which a view op made of it.
  void viewInPlace(Storages::Tensor tensor, mlir::Value value, llvm::StringRef result,
                   mlir::Location loc);

  /// Whether the node that is imported is inside `no_grad`, by its graph or by itself.
  bool isNoGrad() { return frame().noGrad || nodeIsNoGrad; }
  bool nodeIsNoGrad = false;

  Storages storages;
  RandomNumbers random;
  llvm::SmallVector<Frame, 1> frames;

private:
  void rename(Storages::Tensor tensor, Storages::Tensor becomes, llvm::StringRef result);

  mlir::OpBuilder &builder;
  bool isLocal;
  llvm::StringRef kept;
};

/// Calls `visit(number, name, metadata)` for each tensor that a node makes; numbers count all
/// outputs but numbers and None.
void forEachTensor(const Node &node, const Graph &graph,
                   llvm::function_ref<void(unsigned, llvm::StringRef, const TensorMeta &)> visit);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ENVIRONMENT_H
