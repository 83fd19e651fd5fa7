// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From ATen overloads to ops: the tables of Overloads.def and ComplexOverloads.def.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERS_H

#include "importers/torch_export/import/Call.h"

namespace shardc::torch_export {

/// One value for each tensor that the node produces; null for one that cannot be produced, which is
/// an error if it is used.
using Results = llvm::SmallVector<mlir::Value>;
using BuildFunction = mlir::FailureOr<Results> (*)(Call &call);

struct Overload {
  enum Kind {
    ByName,     // becomes `op`
    Backward,   // becomes the derivative of `op`
    Special,    // `build` makes it
    Parts,      // of complex tensors: what it becomes otherwise
    Dropped,    // has no effect on values
    View,       // known to be a view, not supported otherwise
    Collective, // `build` makes futures
    Wait,       // waits for a future
  };
  llvm::StringLiteral name; // "add.Tensor", "_c10d_functional.all_reduce.default"
  Kind kind;
  llvm::StringLiteral op = ""; // "aten.add"
  BuildFunction build = nullptr;
};

/// The row of an overload; null if there is none.
const Overload *findOverload(llvm::StringRef name);
llvm::ArrayRef<Overload> allOverloads();
/// The same where there are complex tensors: kinds are Special and Parts.
const Overload *findComplexOverload(llvm::StringRef name);
llvm::ArrayRef<Overload> complexOverloads();

/// Builds the row for real tensors or that for complex ones, either of which may be null, by what
/// tensors the call has. Fails with a diagnostic where it has complex ones and no row for them.
mlir::FailureOr<Results> buildCall(Call &call, const Overload *real, const Overload *complex);

/// Where operands of an op are not the call's arguments of the same names.
struct OtherOperands {
  llvm::ArrayRef<aten::NamedOperand> given;   ///< in the place of the argument of that name
  llvm::ArrayRef<llvm::StringLiteral> unread; ///< arguments that the op does not have
};

/// Builds op `name` with operands and attributes of the call's arguments of the same names.
mlir::FailureOr<Results> buildByName(Call &call, llvm::StringRef name,
                                     const OtherOperands &others = {});

/// Builds the derivative of op `name`: the call has the arguments of that op, and the cotangent of
/// its result as `grad_output` or `grad`. Results are the cotangents of the op's tensors, or of
/// those in the call's `output_mask`.
mlir::FailureOr<Results> buildBackward(Call &call, llvm::StringRef name);

/// Attribute `argument` of the C++ class `storage` for a call's argument; null where it is None or,
/// for a unit attribute, false. `rank` is that of the tensor whose dims arguments such as `dim`
/// count.
mlir::FailureOr<mlir::Attribute> buildAttribute(Call &call, llvm::StringRef argument,
                                                llvm::StringRef storage, int64_t rank);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERS_H
