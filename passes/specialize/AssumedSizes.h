// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the dynamic sizes of a program are taken to be where something is estimated: noted at the
// module by `dist-assume-sizes`.

#ifndef SHARDC_PASSES_SPECIALIZE_ASSUMEDSIZES_H
#define SHARDC_PASSES_SPECIALIZE_ASSUMEDSIZES_H

#include "passes/specialize/BindSymbols.h"

#include <vector>

namespace shardc {

/// A symbol of a program, and an input dim of that size ("dim 0 of x"; empty where there is none).
struct SizeSymbol {
  dist::SymbolAttr attribute;
  std::string where;
};

/// Of all functions, once each.
std::vector<SizeSymbol> sizeSymbols(mlir::ModuleOp module);

/// What the module's `dist.assumed_sizes` says; empty where it is absent. The dialect has verified
/// it.
SymbolValues assumedSizes(mlir::ModuleOp module);

/// The same with the values of `texts` ("batch=8") over it. Fails as `parseSymbolValues` does.
mlir::FailureOr<SymbolValues> assumedSizes(mlir::ModuleOp module,
                                           llvm::ArrayRef<std::string> texts);

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_ASSUMEDSIZES_H
