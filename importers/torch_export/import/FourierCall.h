// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What calls that transform share: one op for each dim.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FOURIERCALL_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FOURIERCALL_H

#include "importers/torch_export/import/Complex.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Fourier.h"

namespace shardc::torch_export {

/// How a result is scaled, as ATen counts it.
namespace normalization {
enum Kind : int64_t { None, ByRoot, ByCount };
}

struct FourierCall {
  Call &call;
  Emitter emit;
  Pairs pairs;
  aten::BuiltSizes sizes;

  FourierCall(const FourierCall &) = delete; // `pairs` refers to `emit`
  explicit FourierCall(Call &call)
      : call(call), emit(call.builder, call.loc), pairs(emit), sizes(call.builder, call.loc) {}

  mlir::NamedAttribute flag(llvm::StringRef name) {
    return call.builder.getNamedAttr(name, call.builder.getUnitAttr());
  }
  mlir::FailureOr<mlir::Value> along(llvm::StringRef op, mlir::Value x, int64_t dim,
                                     int64_t normalization, llvm::StringRef set = "") {
    llvm::SmallVector<mlir::NamedAttribute> attributes = {
        call.integerAttr("dim", dim), call.integerAttr("normalization", normalization)};
    if (!set.empty())
      attributes.push_back(flag(set));
    return call.buildOne(op, {{"self", {x}}}, attributes);
  }
  /// Over several dims.
  mlir::FailureOr<mlir::Value> ofComplex(mlir::Value z, llvm::ArrayRef<int64_t> dims,
                                         int64_t normalization, bool forward) {
    mlir::FailureOr<mlir::Value> result = z;
    for (int64_t dim : llvm::reverse(dims)) {
      result = along("aten.fft_c2c", *result, dim, normalization, forward ? "forward" : "");
      if (mlir::failed(result))
        return mlir::failure();
    }
    return result;
  }
  mlir::FailureOr<mlir::Value> ofReal(mlir::Value x, int64_t dim, int64_t normalization,
                                      bool onesided) {
    return along("aten.fft_r2c", x, dim, normalization, onesided ? "onesided" : "");
  }
  mlir::FailureOr<mlir::Value> toReal(mlir::Value z, int64_t dim, int64_t normalization,
                                      mlir::OpFoldResult size) {
    llvm::SmallVector<int64_t> fixed;
    llvm::SmallVector<mlir::Value> dynamic;
    splitMixed(size, fixed, dynamic);
    return call.buildOne("aten.fft_c2r", {{"self", {z}}, {"last_dim_size", dynamic}},
                         {call.integerAttr("dim", dim),
                          call.integersAttr("static_last_dim_size", fixed),
                          call.integerAttr("normalization", normalization)});
  }

  /// `dim` counted from the front.
  mlir::FailureOr<llvm::SmallVector<int64_t>> dims(mlir::Value self) {
    mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>> listed = call.integers("dim");
    if (mlir::failed(listed))
      return mlir::failure();
    llvm::SmallVector<int64_t> dims = listed->value_or(llvm::SmallVector<int64_t>());
    for (int64_t &value : dims) {
      mlir::FailureOr<int64_t> dim = call.dim(value, aten::typeOf(self).getRank());
      if (mlir::failed(dim))
        return mlir::failure();
      value = *dim;
    }
    return dims;
  }

  /// Cut off or with zeros at the end.
  mlir::FailureOr<mlir::Value> resized(mlir::Value x, int64_t dim, int64_t size) {
    int64_t have = aten::shapeOf(x)[dim];
    if (have == size)
      return x;
    if (mlir::ShapedType::isDynamic(have))
      return call.error() << "a length is given for a dim of a size that is not known";
    llvm::SmallVector<int64_t> widths(2 * (aten::typeOf(x).getRank() - dim), 0);
    widths.back() = size - have;
    return mlir::Value(
        aten::ConstantPadNdOp::create(call.builder, call.loc, x, widths, llvm::APFloat(0.0)));
  }
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_FOURIERCALL_H
