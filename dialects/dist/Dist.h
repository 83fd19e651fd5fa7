// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `dist` dialect: meshes, layouts, redistribution, collectives, futures.
//
// Attributes wrap the value types of dialects/sharding (`MeshAttr::getValue()` is a `const Mesh
// &`, `LayoutAttr::getValue()` a `const Layout &`); `MeshAttr::get(context, mesh)` and
// `LayoutAttr::get(context, layout)` go the other way.

#ifndef SHARDC_DIALECTS_DIST_DIST_H
#define SHARDC_DIALECTS_DIST_DIST_H

#include "dialects/sharding/Layout.h"
#include "dialects/sharding/RedistributeStep.h"
#include "support/CollectiveKind.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace shardc {

struct Sharding; // dialects/sharding/Sharding.h

// Hashes for the uniquing of attributes, found by argument-dependent look-up.
inline llvm::hash_code hash_value(const Mesh &mesh) { return mesh.hash(); }
inline llvm::hash_code hash_value(const Layout &layout) { return layout.hash(); }
llvm::hash_code hash_value(const DimSplit &split);
llvm::hash_code hash_value(const Sharding &sharding);

} // namespace shardc

namespace shardc::dist {

/// What an asynchronous collective writes: its place in the order of starts.
struct CommunicationResource : mlir::SideEffects::Resource::Base<CommunicationResource> {
  llvm::StringRef getName() final { return "Communication"; }
};

/// Verifiers and folds enumerate the ranks of meshes and groups; no machine comes near this bound.
inline constexpr int64_t maxDevices = int64_t(1) << 20;

class GroupAttrInterface;
class LayoutAttr;
class StepKindAttr;

/// Rank lists where known, else the attribute itself; see `GroupAttrInterface::getCanonicalGroup`.
mlir::Attribute canonicalizeGroup(GroupAttrInterface group);

/// Simplified, with the symbols it uses sorted by name: equal sizes become identical.
std::pair<llvm::SmallVector<mlir::StringAttr>, mlir::AffineExpr>
canonicalizeSize(llvm::ArrayRef<mlir::StringAttr> symbols, mlir::AffineExpr expr);

/// The layout in the encoding of a ranked tensor type; null where there is none.
LayoutAttr getLayout(mlir::Type type);

/// The tensor type of a future, or the tensor type itself.
mlir::RankedTensorType getDeliveredType(mlir::Type tensorOrFuture);

/// Parses what follows, in parentheses and after a comma, the dim of a layout or the axis of
/// extents: `blocks = 3, granule = 64`, `blocks = [64, 32]`. Fills in all of `split` but its axis.
mlir::ParseResult parseSplitOptions(mlir::AsmParser &parser, AxisSplit &split);
/// Parses `R`, `S(1, blocks = 3)`, `P(sum)` or `?`.
mlir::ParseResult parsePlacement(mlir::AsmParser &parser, Placement &placement);
/// Parses `sum`, `avg`, `min`, `max` or `prod`.
mlir::ParseResult parseReductionKeyword(mlir::AsmParser &parser, Reduction &reduction);
/// Parses `all_gather`, `slice` or another step of a redistribution.
mlir::ParseResult parseStepName(mlir::AsmParser &parser, StepKindAttr &step);

} // namespace shardc::dist

#include "dialects/dist/Dialect.h.inc"

#include "dialects/dist/GroupInterface.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/Attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dist/Types.h.inc"

#include "dialects/dist/CollectiveInterface.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/Ops.h.inc"

namespace shardc::dist {

/// The index operands of one tensor of a collective.
struct TensorSizes {
  mlir::ValueRange splitExtents;  ///< in order, for the dynamic entries of its split extents
  mlir::ValueRange concatExtents; ///< in order, for the dynamic entries of its concat extents
  /// The full extent along the concat dim where neither list nor result type says it; else null.
  mlir::Value full;
};

/// Hands out `op.getSizes()` tensor by tensor. `needed` is how many the op must have: others are
/// missing or left over in an op that has not been verified.
llvm::SmallVector<TensorSizes> getTensorSizes(CollectiveOpInterface op, int64_t *needed = nullptr);

/// Whether a collective must be given the full extent along `concatDim` of a result as an operand.
bool needsFullExtent(int64_t splitDim, int64_t concatDim, bool hasConcatExtents,
                     mlir::RankedTensorType resultType);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_DIST_H
