// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ops that need more than local types are localised: external models of LocalizableOpInterface,
// one file for each family.
#ifndef SHARDC_PASSES_LOCALIZE_MODELS_H
#define SHARDC_PASSES_LOCALIZE_MODELS_H

#include "dialects/aten/Aten.h"
#include "passes/localize/Localizer.h"

namespace shardc {

using LocalValues = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;

/// Base of the models. A model defines `static LocalValues run(Localizer &, OpBuilder &, OpT,
/// ValueRange)` and is attached with `attachModel<OpT, Model>(context)`.
template <typename Model, typename OpT>
struct LocalizeModel : LocalizableOpInterface::ExternalModel<Model, OpT> {
  LocalValues localize(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange operands,
                       LocalizeContext &context) const {
    return Model::run(Localizer::of(context), builder, mlir::cast<OpT>(op), operands);
  }
};

/// An op that takes the interface's default in its own definition would silently keep it: that is a
/// mistake in the source, and every tool says so when it starts.
template <typename OpT, typename Model> void attachModel(mlir::MLIRContext *context) {
  mlir::OperationName name(OpT::getOperationName(), context);
  if (name.hasInterface<LocalizableOpInterface>())
    llvm::report_fatal_error(llvm::Twine(OpT::getOperationName()) +
                             " has a local form of its own and gets another");
  OpT::template attachInterface<Model>(*context);
}

/// The same op on local types, with these operands.
inline LocalValues sameOp(Localizer &localizer, mlir::OpBuilder &builder,
                          mlir::ValueRange operands) {
  return localizeAsSameOp(localizer.getOp(), builder, operands, localizer);
}

/// One value as the result of a model, or failure for null.
inline LocalValues single(mlir::Value value) {
  if (!value)
    return mlir::failure();
  return llvm::SmallVector<mlir::Value>{value};
}

/// The dims that an op with an optional list reduces: all where it is absent or empty.
llvm::SmallVector<int64_t> reducedDims(std::optional<llvm::ArrayRef<int64_t>> dims, int64_t rank);

/// Whether result 0 is P(reduction) over every one of these axes.
bool isPartialOver(const Localizer &localizer, llvm::ArrayRef<unsigned> axes, Reduction reduction);

/// Where the result is P(sum), every rank adds the operand (`added` is null where it is absent): it
/// must be P(sum) as well, or be refused.
llvm::LogicalResult checkAddedOnce(Localizer &localizer, mlir::Value added, unsigned operand);

/// The global indices of what this rank holds of a dim, as a vector of i64.
mlir::Value globalRange(Localizer &localizer, mlir::OpBuilder &builder, const GlobalSize &size,
                        const DimSplit &split);

/// A number that no other of the type is below.
double lowestOf(mlir::Type elementType);

/// `vector` along dim `dim` of a tensor of this rank: all other dims have size 1.
mlir::Value alongDim(Emitter &emit, mlir::Value vector, mlir::OpFoldResult length, int64_t dim,
                     int64_t rank);

void attachAdaptivePoolModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachContractionModels(mlir::MLIRContext *context);
void attachCreationModels(mlir::MLIRContext *context);
void attachCustomOpModels(mlir::MLIRContext *context);
void attachGroupNormModels(mlir::MLIRContext *context);
void attachLookupModels(mlir::MLIRContext *context);
void attachNeighborhoodModels(mlir::MLIRContext *context);
void attachNormalizationModels(mlir::MLIRContext *context);
void attachPartModels(mlir::MLIRContext *context);
void attachRandomModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachRowDispatchModels(mlir::MLIRContext *context);
void attachScanModels(mlir::MLIRContext *context);
void attachScatterModels(mlir::MLIRContext *context);
void attachSoftmaxModels(mlir::MLIRContext *context);
void attachSortModels(mlir::MLIRContext *context);
void attachSpatialModels(mlir::MLIRContext *context);
void attachViewModels(mlir::MLIRContext *context);

/// All of them, when the aten dialect is loaded.
void registerLocalizeModels(mlir::DialectRegistry &registry);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_MODELS_H
