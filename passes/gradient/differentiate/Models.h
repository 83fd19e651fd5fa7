// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derivatives of ops: external models of DifferentiableOpInterface, one file for each family. All
// are as PyTorch's autograd has them, ties and kinks included.
#ifndef SHARDC_PASSES_GRADIENT_DIFFERENTIATE_MODELS_H
#define SHARDC_PASSES_GRADIENT_DIFFERENTIATE_MODELS_H

#include "dialects/aten/Expr.h"
#include "dialects/interfaces/DifferentiableOpInterface.h"

namespace shardc {

/// One op that is differentiated: its values and cotangents as expressions.
class Derivation {
public:
  Derivation(mlir::Operation *op, mlir::OpBuilder &builder, GradientContext &context)
      : emit(builder, context.getLoc()), op(op), builder(builder), context(context) {}

  /// A value of the forward; null stays null.
  Expr of(mlir::Value value) { return {value, &emit}; }
  Expr result(unsigned index = 0) { return of(op->getResult(index)); }
  /// The cotangent of a result; null where the loss does not depend on it.
  Expr grad(unsigned index = 0) { return of(context.cotangent(index)); }

  bool needs(mlir::OpOperand &operand) const {
    return context.isNeeded(operand.getOperandNumber());
  }
  bool needs(unsigned operand) const { return context.isNeeded(operand); }
  void add(unsigned operand, Expr cotangent) { context.add(operand, cotangent.value); }
  mlir::InFlightDiagnostic refuse() { return context.refuse(); }

  /// Sizes of a value of the forward: numbers where the type has them.
  mlir::OpFoldResult size(mlir::Value value, int64_t dim);
  llvm::SmallVector<mlir::OpFoldResult> sizes(mlir::Value value);
  /// An index as a 0-dim tensor.
  Expr scalar(mlir::OpFoldResult size, mlir::Type elementType);
  /// The number of elements in these dims, as a 0-dim tensor.
  Expr count(mlir::Value value, llvm::ArrayRef<int64_t> dims, mlir::Type elementType);
  Expr zeros(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elementType) {
    return of(emit.zeros(sizes, elementType));
  }
  Expr zerosLike(mlir::Value value) { return zeros(sizes(value), aten::elementTypeOf(value)); }
  /// 0, 1, 2 ... along `dim` of a tensor of this rank.
  Expr positions(mlir::OpFoldResult length, int64_t dim, int64_t rank, mlir::Type elementType);
  /// Each element of `dim` followed by step - 1 zeros.
  Expr spread(Expr x, int64_t dim, int64_t step);

  Emitter emit;
  mlir::Operation *op;
  mlir::OpBuilder &builder;
  GradientContext &context;
};

/// Base of the models. A model defines `static LogicalResult run(Derivation &, OpT)`.
template <typename Model, typename OpT>
struct GradientModel : DifferentiableOpInterface::ExternalModel<Model, OpT> {
  llvm::LogicalResult differentiate(mlir::Operation *op, mlir::OpBuilder &builder,
                                    GradientContext &context) const {
    Derivation derivation(op, builder, context);
    return Model::run(derivation, mlir::cast<OpT>(op));
  }
};

/// The dims that an op with an optional list reduces: all where it is absent or empty, ascending.
llvm::SmallVector<int64_t> allOrThese(std::optional<llvm::ArrayRef<int64_t>> dims, int64_t rank);
/// With the dims that a reduction without `keepdim` removed, as size 1 again.
Expr restoreDims(Expr reduced, llvm::ArrayRef<int64_t> dims, bool keepdim);
/// begin, begin + 1, ... end - 1
llvm::SmallVector<int64_t> dimRange(int64_t begin, int64_t end);

void attachAttentionGradients(mlir::MLIRContext *context);
void attachContractionGradients(mlir::MLIRContext *context);
void attachCustomOpGradients(mlir::MLIRContext *context);
void attachElementwiseGradients(mlir::MLIRContext *context);
void attachFourierGradients(mlir::MLIRContext *context);
void attachIndexingGradients(mlir::MLIRContext *context);
void attachNeighborhoodGradients(mlir::MLIRContext *context);
void attachNormalizationGradients(mlir::MLIRContext *context);
void attachPartGradients(mlir::MLIRContext *context);
void attachReductionGradients(mlir::MLIRContext *context);
void attachScanGradients(mlir::MLIRContext *context);
void attachSpatialGradients(mlir::MLIRContext *context);
void attachSortingGradients(mlir::MLIRContext *context);
void attachViewGradients(mlir::MLIRContext *context);
void attachWritingGradients(mlir::MLIRContext *context);

/// All of them, when the dialects are loaded.
void registerDifferentiateModels(mlir::DialectRegistry &registry);

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_DIFFERENTIATE_MODELS_H
