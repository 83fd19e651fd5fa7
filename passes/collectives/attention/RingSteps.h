// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rings of attention are made of, whichever rows a rank works on: blocks that travel,
// attention over one block, and results of several blocks combined.

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSTEPS_H
#define SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSTEPS_H

#include "dialects/aten/Emitter.h"
#include "passes/collectives/attention/RingSite.h"

namespace shardc {

/// Attention over some keys: the output in the type of sums, and the logsumexp of each query, -inf
/// where it has seen none of them.
struct RingPart {
  mlir::Value output, logsumexp;
};

/// The cotangents of a query, and of the keys and values that it was given.
struct RingGradients {
  mlir::Value query, key, value;
};

class RingSteps {
public:
  RingSteps(const RingSite &site, RankValues &ranks)
      : site(site), ranks(ranks), builder(site.op), emit(builder, site.op->getLoc()) {}

protected:
  using Value = mlir::Value;

  static int64_t rankOf(Value value);
  static int64_t rowsDim(Value value) { return rankOf(value) - 2; }
  /// One entry per device, of its position and the block that it has at a step.
  DeviceTable tableOf(int64_t step, llvm::function_ref<int64_t(int64_t, int64_t)> entry) const;
  /// The number of rows that a table gives: static where it is the same everywhere.
  static int64_t fixedOf(const DeviceTable &table);
  mlir::OpFoldResult build(const DeviceTable &table);
  /// Rows [begin, end) along a dim; the value itself where these are all `length`.
  Value rows(Value value, int64_t dim, const DeviceTable &begin, const DeviceTable &end,
             const DeviceTable &length);
  Value join(mlir::ValueRange parts, int64_t dim, int64_t fixed);
  Value zerosLike(Value value, int64_t dim, const DeviceTable &length);

  /// What the rank before sends of blocks that ranks had at `step`, along these dims.
  mlir::SmallVector<Value> hop(llvm::ArrayRef<Value> sent, llvm::ArrayRef<int64_t> dims,
                               int64_t step);
  mlir::SmallVector<Value> permute(llvm::ArrayRef<Value> sent, llvm::ArrayRef<int64_t> dims,
                                   llvm::ArrayRef<int64_t> pairs, llvm::ArrayRef<int64_t> extents);

  RingPart attend(Value query, Value key, Value value, Value mask, bool isCausal);
  RingPart merge(const RingPart &a, const RingPart &b);
  /// The backward of such an attention, with the cotangent, output and logsumexp of all keys.
  RingGradients differentiate(Value cotangent, Value query, Value key, Value value, Value output,
                              Value logsumexp, Value mask, bool isCausal);

  /// Puts what was made in place of the results of the op.
  void finish(const RingPart &whole);
  /// In the element type of the op.
  Value narrow(Value value);
  void replace(Value result, Value by);
  /// The cotangent of this rank's block in place of what was scattered; null: nobody asks for it.
  void replaceScattered(const RingTensor &tensor, Value cotangent);
  /// The op and the collectives around it, what nothing uses without them, and of `unused` what
  /// nothing does use.
  void erase(llvm::function_ref<void(mlir::Operation *)> erased);

  const RingSite &site;
  RankValues &ranks;
  mlir::OpBuilder builder;
  Emitter emit;
  llvm::SmallVector<Value> unused;
};

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTION_RINGSTEPS_H
