// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Extents along the dim that a collective cuts or concatenates, by position in the group: what
// `extents` of a collective says.
#ifndef SHARDC_PASSES_LOCALIZE_EXTENTLISTS_H
#define SHARDC_PASSES_LOCALIZE_EXTENTLISTS_H

#include "passes/localize/LocalIndices.h"

namespace shardc {

/// `fixed` is empty where the pieces are PyTorch's chunks of the whole (L3); an entry kDynamic
/// stands for the next of `dynamic`, an index that differs between groups or depends on a symbolic
/// size.
struct ExtentList {
  llvm::SmallVector<int64_t> fixed;
  llvm::SmallVector<mlir::Value> dynamic;
};

/// The innermost `count` axes of `split` cut what the axes outside them leave of a dim (one block
/// of it, where the one axis has blocks: `count` is 1 then). More than one axis needs a known size.
ExtentList makeExtentList(LocalIndices &indices, const GlobalSize &size, const DimSplit &split,
                          size_t count);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_EXTENTLISTS_H
