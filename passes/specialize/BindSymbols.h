// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbols as constants.

#ifndef SHARDC_PASSES_SPECIALIZE_BINDSYMBOLS_H
#define SHARDC_PASSES_SPECIALIZE_BINDSYMBOLS_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace shardc {

/// Elements, by the name of a symbol.
using SymbolValues = llvm::StringMap<int64_t>;

/// Reads "batch=8". Fails, after reporting all mistakes, where a value is not written so, names no
/// symbol of the module's functions or is outside the symbol's range.
mlir::FailureOr<SymbolValues> parseSymbolValues(mlir::ModuleOp module,
                                                llvm::ArrayRef<std::string> texts);

/// Gives symbols of a function these values, and all others typical ones if asked for. Every size
/// and extent that names them becomes a constant, and so do the global types of arguments and
/// results; `dist.symbols` keeps the others. Where there is a mesh, the positions of ranks become
/// tables. Types of values stay as they are: specialisation infers them again.
void bindSymbols(mlir::func::FuncOp function, const SymbolValues &values, bool typical,
                 dist::MeshAttr mesh);

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_BINDSYMBOLS_H
