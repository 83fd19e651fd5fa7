// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass's side of LocalizeContext: one op at a time, with its layouts, global and local types,
// and the collectives that its local form may need. The models of op families in this folder use
// what is here beyond LocalizeContext through `Localizer::of`.
#ifndef SHARDC_PASSES_LOCALIZE_LOCALIZER_H
#define SHARDC_PASSES_LOCALIZE_LOCALIZER_H

#include "dialects/aten/Emitter.h"
#include "dialects/dist/Dist.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "passes/localize/GlobalSizes.h"
#include "passes/localize/LocalIndices.h"
#include "passes/localize/core/LocalIndexing.h"

#include "mlir/IR/IRMapping.h"

namespace shardc {

/// The type that a placed tensor has on every rank; a dim whose extent is not the same on all ranks
/// is dynamic. A type without layout stays.
mlir::Type getLocalType(mlir::Type placed);

class RemadeBorders;

class Localizer final : public LocalizeContext {
public:
  /// `locals` maps values of the placed program to local ones.
  Localizer(const GlobalSizes &sizes, const mlir::IRMapping &locals);
  ~Localizer();

  static Localizer &of(LocalizeContext &context) { return static_cast<Localizer &>(context); }

  /// Makes `op` the one that is being localised.
  void enter(mlir::Operation *op);
  /// Likewise for a part of what another op becomes, which is told whether sizes were missing.
  void turnTo(mlir::Operation *op);
  mlir::Operation *getOp() const { return op; }
  /// The mesh of the op's layouts; null where no type has a layout.
  dist::MeshAttr getMesh() const { return mesh; }

  // LocalizeContext
  const Layout *operandLayout(unsigned operand) const override;
  const Layout *resultLayout(unsigned result) const override;
  mlir::RankedTensorType globalOperandType(unsigned operand) const override;
  mlir::RankedTensorType globalResultType(unsigned result) const override;
  mlir::RankedTensorType localResultType(unsigned result) const override;
  mlir::Value axisIndex(mlir::OpBuilder &builder, unsigned meshAxis) override;
  mlir::Value localExtent(mlir::OpBuilder &builder, const Layout &layout,
                          mlir::RankedTensorType type, int64_t dim, mlir::Value size) override;
  mlir::Value localOffset(mlir::OpBuilder &builder, const Layout &layout,
                          mlir::RankedTensorType type, int64_t dim, mlir::Value size) override;
  mlir::Value allReduce(mlir::OpBuilder &builder, mlir::Value value,
                        llvm::ArrayRef<unsigned> meshAxes, Reduction reduction) override;
  mlir::Value allGather(mlir::OpBuilder &builder, mlir::Value value, const Layout &layout,
                        mlir::RankedTensorType type, int64_t dim,
                        llvm::ArrayRef<unsigned> meshAxes) override;

  // For this folder.
  LocalIndices indices(mlir::OpBuilder &builder) const;
  Emitter emitter(mlir::OpBuilder &builder) const { return Emitter(builder, op->getLoc()); }

  GlobalSize operandSize(mlir::OpBuilder &builder, unsigned operand, int64_t dim);
  GlobalSize resultSize(mlir::OpBuilder &builder, unsigned result, int64_t dim);
  /// A dim with its split; only for dims of static size.
  SplitDim operandDim(unsigned operand, int64_t dim) const;
  SplitDim resultDim(unsigned result, int64_t dim) const;
  /// Mesh axes that shard any of these dims of an operand, ascending.
  llvm::SmallVector<unsigned> operandAxes(unsigned operand, llvm::ArrayRef<int64_t> dims) const;
  /// The sizes of a result on this rank: static where they are the same on all ranks.
  llvm::SmallVector<mlir::OpFoldResult> localSizes(mlir::OpBuilder &builder, unsigned result);
  /// Likewise of an operand, and of any placed tensor that has been localised.
  llvm::SmallVector<mlir::OpFoldResult> operandSizes(mlir::OpBuilder &builder, unsigned operand);
  llvm::SmallVector<mlir::OpFoldResult> localSizesOf(mlir::OpBuilder &builder, mlir::Value placed);
  /// What a placed value became.
  mlir::Value localOf(mlir::Value placed) const { return locals.lookup(placed); }
  /// How many elements the dims of an operand have, globally: their product as a number, or as an
  /// index value where a size is symbolic.
  mlir::OpFoldResult globalCount(mlir::OpBuilder &builder, unsigned operand,
                                 llvm::ArrayRef<int64_t> dims);

  /// An error at the op that says in which layouts it has its tensors. Add why, and what to do.
  mlir::InFlightDiagnostic refuse() const;
  /// Whether a size that nothing is known of was asked for since `enter`; it has been reported, and
  /// what was built with it is of no use.
  bool lacksSize() const { return missingSize; }
  /// Which images of the function ranks make rows of again.
  RemadeBorders &remadeBorders() { return *remade; }
  /// Collectives that ops needed inside so far.
  int64_t getNumInner() const { return numInner; }

private:
  class BuiltGlobalSizes;
  GlobalSize sizeOf(mlir::OpBuilder &builder, mlir::Value placed, int64_t dim);
  /// Nothing where nothing is known of it, and nothing can be computed.
  std::optional<GlobalSize> findSize(mlir::OpBuilder &builder, mlir::Value placed, int64_t dim);
  /// From the sizes of the operands of the op that makes it.
  std::optional<GlobalSize> buildSize(mlir::OpBuilder &builder, mlir::Value placed, int64_t dim);

  const GlobalSizes &sizes;
  const mlir::IRMapping &locals;
  mlir::Operation *op = nullptr;
  dist::MeshAttr mesh;
  bool missingSize = false;
  /// Sizes that no expression is known of, computed from those of operands; null where they are not
  /// known either, so that nothing is looked for twice.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> builtSizes;
  int64_t numInner = 0;
  std::unique_ptr<RemadeBorders> remade;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_LOCALIZER_H
