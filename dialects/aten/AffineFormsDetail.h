// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the two files that find forms share: AffineForms.cpp (integers), MaskForms.cpp (bools).
#ifndef SHARDC_DIALECTS_ATEN_AFFINEFORMSDETAIL_H
#define SHARDC_DIALECTS_ATEN_AFFINEFORMSDETAIL_H

#include "dialects/aten/AffineForms.h"

namespace shardc::aten::detail {

using Form = std::optional<AffineForm>;
using Mask = std::optional<MaskForm>;
using Bound = std::optional<int64_t>;

/// What is needed to know where forms come from: those of the operands.
struct FormContext {
  const AffineForms &forms;
  mlir::Operation *op;

  const AffineForm *operand(unsigned i) const { return forms.getAffine(op->getOperand(i)); }
  llvm::ArrayRef<int64_t> resultShape() const;
};

AffineForm splatForm(int64_t value, size_t rank);

/// a + factor * b, in the positions of a result of this shape; both are broadcast to it. Nothing on
/// overflow.
Form combine(const AffineForm &a, const AffineForm &b, int64_t factor,
             llvm::ArrayRef<int64_t> shape);

/// Smallest and largest element, nothing where unbounded. (Of an empty tensor: anything will do.)
std::pair<Bound, Bound> range(const AffineForm &form, llvm::ArrayRef<int64_t> shape);

/// For views that keep every element: the dim of operand 0 that each dim of the result comes from
/// (-1: none). Nothing for other ops.
std::optional<llvm::SmallVector<int64_t>> sourceDims(mlir::Operation *op);
AffineForm rearrange(const AffineForm &form, llvm::ArrayRef<int64_t> dims);

Form integerForm(const FormContext &context);
Mask boolForm(const FormContext &context);
Mask additiveForm(const FormContext &context);

} // namespace shardc::aten::detail

#endif // SHARDC_DIALECTS_ATEN_AFFINEFORMSDETAIL_H
