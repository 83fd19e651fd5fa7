// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring in place of an attention over gathered keys and values.

#ifndef SHARDC_PASSES_COLLECTIVES_ATTENTION_APPLYRING_H
#define SHARDC_PASSES_COLLECTIVES_ATTENTION_APPLYRING_H

#include "passes/collectives/attention/RingSite.h"

namespace shardc {

/// Each rank works on its own queries. `erased` is told of every op that goes: the op, its
/// collectives, and what nothing uses without them.
void applyRing(const RingSite &site, RankValues &ranks,
               llvm::function_ref<void(mlir::Operation *)> erased);

/// What ranks have in the balanced order, by what it is made of. An op that is erased takes what
/// was made of its results along: call `forget`.
class BalancedValues {
public:
  mlir::Value lookup(mlir::Value value) const { return known.lookup(value); }
  void add(mlir::Value value, mlir::Value balanced) { known[value] = balanced; }
  void forget(mlir::Operation *op);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

/// Of causal attention (RingSite::canBalance). Of 2 n chunks of queries and keys the rank at
/// position p works on the chunks p and 2 n - 1 - p, which it gets from their owners: at each step
/// all ranks have the same number of pairs of a query and a key that it sees. What is made goes
/// back to the owners. Of a function's forward attention `values` keeps what its backward reads.
void applyBalancedRing(const RingSite &site, RankValues &ranks, BalancedValues &values,
                       llvm::function_ref<void(mlir::Operation *)> erased);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ATTENTION_APPLYRING_H
