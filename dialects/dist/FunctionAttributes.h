// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a function says about its arguments and results, and a module about its program, beyond
// types.
//
// Arguments and results:
//   dist.name         string, or array of strings for tied weights: the name in the model, such as
//                     "fc.weight"; of a mutation or gradient result the name of what is mutated or
//                     differentiated
//   dist.kind         what it is: see `argumentKinds()` and `resultKinds()`
//   dist.initial      of a state: what each element is before the first run, a number (f64)
//   dist.unsaved      of a state, unit: it is in no checkpoint, and is initial again after a load
//   dist.frozen       of a parameter, unit: PyTorch would not give it a gradient
//                     (`requires_grad=False`); or array of strings: those of its names that have
//                     none
//   dist.annotation   imported stage: layout asked for, placements may be open
//   dist.origin       imported stage: who asked for the annotation (`plan.yaml:7`), one string per
//                     mesh axis, empty where open
//   dist.strength     imported stage: "pinned", "normal" or "weak" per mesh axis: how far the
//                     annotation is followed where others disagree (absent: normal)
//   dist.sharding     imported stage: what dist-propagate found for it (Shardings.h), until
//                     dist-place
//   dist.layout       local stage: the layout that the local tensor has; with
//   dist.global_type  local stage: type of the whole tensor, without a layout
//   dist.sizes        array of #dist.size, one per dim of the whole tensor: names its dynamic dims
// Functions:
//   dist.sequence_hash  string: hash of the sequence of collectives, 16 hexadecimal digits
//   dist.symbols      array of #dist.symbol: the symbols that sizes and extents may use, and their
//                     ranges
// Modules:
//   dist.mesh         the mesh that the program is for
//   dist.meshes       dictionary: name -> #dist.mesh, further meshes that inputs, outputs and
//                     values may be on
//   dist.train        string: what a training step does, the section `train:` of a plan on one line
//   dist.training     dictionary: the entries of training and the names of what they take and
//                     return, for the manifest
//   dist.specializations  dictionary: name of a function that was specialised -> #dist.variants
//// Collectives of functions that dist-specialize made:
//   dist.ordinal      number of the collective in the sequence that all ranks share, where some
//                     ranks have a part of it only
//
// All are verified by the dialect; an unknown `dist.` attribute of an argument or result is an
// error.

#ifndef SHARDC_DIALECTS_DIST_FUNCTIONATTRIBUTES_H
#define SHARDC_DIALECTS_DIST_FUNCTIONATTRIBUTES_H

#include "dialects/dist/Dist.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc::dist {

inline constexpr llvm::StringLiteral kNameAttr = "dist.name";
inline constexpr llvm::StringLiteral kKindAttr = "dist.kind";
inline constexpr llvm::StringLiteral kInitialAttr = "dist.initial";
inline constexpr llvm::StringLiteral kUnsavedAttr = "dist.unsaved";
inline constexpr llvm::StringLiteral kFrozenAttr = "dist.frozen";
inline constexpr llvm::StringLiteral kAnnotationAttr = "dist.annotation";
inline constexpr llvm::StringLiteral kOriginAttr = "dist.origin";
inline constexpr llvm::StringLiteral kStrengthAttr = "dist.strength";
inline constexpr llvm::StringLiteral kLayoutAttr = "dist.layout";
inline constexpr llvm::StringLiteral kGlobalTypeAttr = "dist.global_type";
inline constexpr llvm::StringLiteral kSizesAttr = "dist.sizes";
inline constexpr llvm::StringLiteral kSymbolsAttr = "dist.symbols";
inline constexpr llvm::StringLiteral kMeshAttr = "dist.mesh";
inline constexpr llvm::StringLiteral kMeshesAttr = "dist.meshes";
inline constexpr llvm::StringLiteral kTrainAttr = "dist.train";
inline constexpr llvm::StringLiteral kTrainingAttr = "dist.training";
inline constexpr llvm::StringLiteral kSequenceHashAttr = "dist.sequence_hash";
inline constexpr llvm::StringLiteral kOrdinalAttr = "dist.ordinal";
inline constexpr llvm::StringLiteral kSpecializationsAttr = "dist.specializations";

/// "parameter", "buffer", "constant", "state", "input".
llvm::ArrayRef<llvm::StringLiteral> argumentKinds();
/// "output", "loss", "parameter_mutation", "buffer_mutation", "state_mutation", "input_mutation",
/// "gradient".
llvm::ArrayRef<llvm::StringLiteral> resultKinds();

/// Whether a result of this kind is the new value of a parameter, buffer or state.
bool isStateUpdate(mlir::StringAttr kind);

/// The names in `dist.name`, in order; none where it is absent.
llvm::SmallVector<llvm::StringRef> getNames(mlir::DictionaryAttr attributes);

/// The names that have a gradient: all but those in `dist.frozen`.
llvm::SmallVector<llvm::StringRef> getTrainedNames(mlir::DictionaryAttr attributes);

/// The number of a collective in the sequence that all ranks share: `dist.ordinal`, or its place in
/// the function.
int64_t getOrdinal(mlir::Operation *op, int64_t place);

/// The symbol of that name in the function's `dist.symbols`; null where there is none.
SymbolAttr findSymbol(mlir::FunctionOpInterface function, llvm::StringRef name);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_FUNCTIONATTRIBUTES_H
