// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a dynamic size comes from: an index value that some op was given, or a dim of an argument.
// Sizes with one origin are equal. Found by walking backwards through ops that keep the dim: a
// bounded number of steps, so that a question costs the same in any function, or, while a
// shardc::OriginMemory lives, all of them, each once.
#ifndef SHARDC_DIALECTS_ATEN_DIMORIGINS_H
#define SHARDC_DIALECTS_ATEN_DIMORIGINS_H

#include "dialects/sharding/RuleBuilder.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include <map>

namespace shardc::aten {

struct DimOrigin {
  mlir::Value value; ///< an index, or a tensor
  int64_t dim = -1;  ///< of the tensor; -1: `value` is an index
};

DimOrigin originOf(mlir::Value tensor, int64_t dim);

/// A size as an index: a constant, the value of its origin, or a new `aten.sym_size` of that.
mlir::Value materializeSize(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                            int64_t dim);

/// Sizes as products of symbols, one for each origin; numbers are this object's own.
class DimSizes {
public:
  DimSize of(mlir::Value tensor, int64_t dim);
  DimSize ofIndex(mlir::Value index);

private:
  DimSize symbol(const void *key, int64_t dim);

  std::map<std::pair<const void *, int64_t>, int> symbols;
};

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_DIMORIGINS_H
