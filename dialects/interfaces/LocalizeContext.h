// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op may ask for and emit while it is turned from its placed form into what one rank
// computes. Ops are localised one by one; the pass that does it (passes/localize) implements this
// class, so that an op's implementation names neither the dist dialect nor the pass.
#ifndef SHARDC_DIALECTS_INTERFACES_LOCALIZECONTEXT_H
#define SHARDC_DIALECTS_INTERFACES_LOCALIZECONTEXT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <cstdint>

namespace shardc {

struct Layout;
struct Placement;
enum class Reduction : uint8_t;

class LocalizeContext {
public:
  virtual ~LocalizeContext();

  /// Layouts of the op that is being localised. Operands and results are numbered as in the op; an
  /// index operand has no layout, and asking for it is an error of the caller (null).
  virtual const Layout *operandLayout(unsigned operand) const = 0;
  virtual const Layout *resultLayout(unsigned result) const = 0;

  /// Global types, without encoding.
  virtual mlir::RankedTensorType globalOperandType(unsigned operand) const = 0;
  virtual mlir::RankedTensorType globalResultType(unsigned result) const = 0;

  /// The type that a result has on every rank: a dim whose extent differs between ranks is dynamic.
  virtual mlir::RankedTensorType localResultType(unsigned result) const = 0;

  /// This rank's coordinate on a mesh axis, an index.
  virtual mlir::Value axisIndex(mlir::OpBuilder &builder, unsigned meshAxis) = 0;

  /// Extent of a dim on this rank, an index: a constant where it is the same on all ranks. `size`
  /// is the global size (an index; null means the static size in `type`).
  virtual mlir::Value localExtent(mlir::OpBuilder &builder, const Layout &layout,
                                  mlir::RankedTensorType type, int64_t dim, mlir::Value size) = 0;

  /// Global index of the first element that this rank holds of a dim split in one block (without
  /// `blocks`), an index. For an empty shard: the global size.
  virtual mlir::Value localOffset(mlir::OpBuilder &builder, const Layout &layout,
                                  mlir::RankedTensorType type, int64_t dim, mlir::Value size) = 0;

  /// Reduction of a local value over all ranks that differ on these mesh axes only. Same type.
  virtual mlir::Value allReduce(mlir::OpBuilder &builder, mlir::Value value,
                                llvm::ArrayRef<unsigned> meshAxes, Reduction reduction) = 0;

  /// Concatenation of local values along `dim` over these mesh axes, in the order of the shards.
  /// `layout` is the layout of `value`, `type` its global type.
  virtual mlir::Value allGather(mlir::OpBuilder &builder, mlir::Value value, const Layout &layout,
                                mlir::RankedTensorType type, int64_t dim,
                                llvm::ArrayRef<unsigned> meshAxes) = 0;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_LOCALIZECONTEXT_H
