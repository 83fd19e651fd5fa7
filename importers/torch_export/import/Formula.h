// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that are formulas of other ops: a call's arguments as expressions, and ops by name.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FORMULA_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FORMULA_H

#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Expr.h"

#include <limits>

namespace shardc::torch_export {

/// What fails says so at the call, and `failed` holds from then on. A builder reads all arguments,
/// asks whether that failed, and writes its formula then.
class Formula {
public:
  explicit Formula(Call &call) : call(call), emit(call.builder, call.loc) {}

  bool failed() const { return isBad; }

  /// Null where it is None.
  Expr tensor(llvm::StringRef name) { return of(take(call.tensor(name))); }
  llvm::SmallVector<Expr> tensors(llvm::StringRef name);
  /// A tensor, or a number as a 0-dim tensor of this element type.
  Expr tensorOrNumber(llvm::StringRef name, mlir::Type elementType);
  /// Likewise, in the type in which floats of the result's element type are summed.
  Expr floats(llvm::StringRef name);
  /// `otherwise` where it is None.
  double real(llvm::StringRef name, double otherwise = 0) {
    return take(call.real(name)).value_or(otherwise);
  }
  int64_t integer(llvm::StringRef name, int64_t otherwise = 0) {
    return take(call.integer(name)).value_or(otherwise);
  }
  bool flag(llvm::StringRef name) { return take(call.boolean(name)); }
  llvm::StringRef text(llvm::StringRef name);
  /// A dim of a tensor of this rank; all dims where the argument is None or an empty list.
  int64_t dim(llvm::StringRef name, int64_t rank) { return take(call.dimArgument(name, rank)); }
  llvm::SmallVector<int64_t> dims(llvm::StringRef name, int64_t rank);

  Expr of(mlir::Value value) { return {value, &emit}; }
  llvm::SmallVector<mlir::OpFoldResult> sizes(Expr x) {
    return sizesOf(call.builder, call.loc, x.value);
  }
  mlir::OpFoldResult one() { return call.builder.getIndexAttr(1); }
  mlir::OpFoldResult product(llvm::ArrayRef<mlir::OpFoldResult> sizes);
  /// 0, 1, 2 ... as a vector of i64.
  Expr range(mlir::OpFoldResult length);
  /// An index as a 0-dim tensor.
  Expr number(mlir::OpFoldResult size, mlir::Type elementType);

  /// An op with one result.
  Expr op(llvm::StringRef name, llvm::ArrayRef<aten::NamedOperand> operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::NamedAttribute realAttr(llvm::StringRef name, double value) {
    return call.builder.getNamedAttr(name, call.builder.getF64FloatAttr(value));
  }
  Expr reduce(llvm::StringRef name, Expr x, llvm::ArrayRef<int64_t> dims, bool keepdim);
  Expr slice(Expr x, int64_t dim, mlir::OpFoldResult start, mlir::OpFoldResult end = {});
  /// Without a derivative.
  Expr detached(Expr x);
  Expr permute(Expr x, llvm::ArrayRef<int64_t> order);
  /// Without a dim of size 1.
  Expr squeeze(Expr x, int64_t dim);
  Expr constant(Expr like, double value) {
    return of(emit.full(sizes(like), like.number(value).value));
  }

  /// In the element type that PyTorch recorded.
  mlir::FailureOr<Results> result(Expr x);

  Call &call;
  Emitter emit;

private:
  template <typename T> T take(mlir::FailureOr<T> value) {
    isBad |= mlir::failed(value);
    return mlir::succeeded(value) ? *value : T();
  }
  bool isBad = false;
};

/// A function of the argument `self`, in f64 whatever the element type of the result is.
template <typename Function> mlir::FailureOr<Results> inDouble(Call &call, Function function) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return mlir::failure();
  return f.result(function(f, shardc::cast(self, call.builder.getF64Type())));
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Expr isNaN(Expr x) { return x.with(x.emit->unary<aten::IsnanOp>(x.value)); }
inline Expr maximum(Expr x, Expr y) {
  return x.with(x.emit->binary<aten::MaximumOp>(x.value, y.value));
}

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FORMULA_H
