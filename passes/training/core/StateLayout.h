// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the state of a training step is: layouts that follow from a parameter's.
#ifndef SHARDC_PASSES_TRAINING_CORE_STATELAYOUT_H
#define SHARDC_PASSES_TRAINING_CORE_STATELAYOUT_H

#include "dialects/sharding/Layout.h"

namespace shardc::training {

/// The layout in which a parameter of `shape` can be updated: elementwise ops have no factor for a
/// dim of one element, so that a part of such a dim (which one rank has, and the others nothing) is
/// replicated, and so is one of no elements. Sizes must be static.
Layout updatedLayout(const Layout &parameter, std::span<const int64_t> shape);

/// The layout of a parameter of `shape` with what `axes` replicate sharded over them too: each
/// takes the lowest dim of which it gives every rank an equal part, or else the dim with the most
/// elements a rank (the lowest of several). An axis on the dim of another splits that one's shards
/// (L2): the state of a tensor-parallel weight is sharded within each rank's part. A dim of one
/// element, and an axis of one rank, are left alone; sizes must be static.
Layout shardedState(const Layout &parameter, std::span<const int64_t> shape,
                    std::span<const unsigned> axes);

/// The same with sums over `axes` instead: what gradients are accumulated in before they are
/// reduced.
Layout partialState(const Layout &parameter, std::span<const unsigned> axes);

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_CORE_STATELAYOUT_H
