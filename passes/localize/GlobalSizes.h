// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Global sizes of the dims of placed values, symbolic ones included. A local program must know
// them: the extent of a shard, and that of what a gather gives, follow from the global size and not
// from what one rank holds.
#ifndef SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H
#define SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H

#include "passes/localize/LocalIndices.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class GlobalSizes {
public:
  explicit GlobalSizes(mlir::func::FuncOp function);

  /// Size of a dim of a placed value. Neither expression nor value is set where nothing is known of
  /// a dynamic dim.
  GlobalSize of(mlir::Value placed, int64_t dim) const;

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<dist::SizeAttr>> dynamic;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H
