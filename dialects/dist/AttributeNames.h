// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of the discardable attributes that functions, their arguments and results, and modules
// carry.
#ifndef SHARDC_DIALECTS_DIST_ATTRIBUTENAMES_H
#define SHARDC_DIALECTS_DIST_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace shardc::dist {

// Arguments and results of an entry function, from import on.

/// StringAttr, or ArrayAttr of StringAttr for tied weights: the name in the exported signature, or
/// of the parameter.
inline constexpr llvm::StringLiteral kNameAttrName = "dist.name";
/// StringAttr. Arguments: "input", "parameter", "buffer", "constant". Results: "output",
/// "buffer_mutation", ...
inline constexpr llvm::StringLiteral kKindAttrName = "dist.kind";

// Imported stage.

/// LayoutAttr with open placements (`?`) where nothing was asked for.
inline constexpr llvm::StringLiteral kAnnotationAttrName = "dist.annotation";
/// ArrayAttr of StringAttr, one per mesh axis: who asked (`plan.yaml:7`), empty where open.
inline constexpr llvm::StringLiteral kOriginAttrName = "dist.origin";

// Local stage and after.

/// LayoutAttr of the global tensor that the local one is a part of.
inline constexpr llvm::StringLiteral kLayoutAttrName = "dist.layout";
/// TypeAttr of that global tensor.
inline constexpr llvm::StringLiteral kGlobalTypeAttrName = "dist.global_type";

/// On functions: ArrayAttr of SymbolAttr, the symbols of dynamic dims with their ranges.
inline constexpr llvm::StringLiteral kSymbolsAttrName = "dist.symbols";
/// On modules: MeshAttr, the mesh of the program.
inline constexpr llvm::StringLiteral kMeshAttrName = "dist.mesh";

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_ATTRIBUTENAMES_H
