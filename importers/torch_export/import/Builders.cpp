// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/BuildersInternal.h"

#include "llvm/ADT/StringMap.h"

namespace shardc::torch_export {

// In a table of their own.
#define ATEN_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#define LIBRARY_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#include "importers/torch_export/schema/GroupedOverloads.def"
#include "importers/torch_export/schema/NattenOverloads.def"
#undef ATEN_SPECIAL
#undef LIBRARY_SPECIAL

llvm::ArrayRef<Overload> allOverloads() {
  static constexpr Overload overloads[] = {
#define ATEN(overload, op) {#overload, Overload::ByName, "aten." #op},
#define ATEN_BACKWARD(overload, op) {#overload, Overload::Backward, "aten." #op},
#define ATEN_SPECIAL(overload, f) {#overload, Overload::Special, "", build##f},
#define ATEN_DROPPED(overload) {#overload, Overload::Dropped},
#define ATEN_VIEW(overload) {#overload, Overload::View},
#define PRIM_SPECIAL(overload, f) {"prims." #overload, Overload::Special, "", build##f},
#define C10D(overload, f) {"_c10d_functional." #overload, Overload::Collective, "", build##f},
#define C10D_WAIT(overload) {"_c10d_functional." #overload, Overload::Wait},
#define LIBRARY_SPECIAL(overload, f) {#overload, Overload::Special, "", build##f},
#include "importers/torch_export/schema/GroupedOverloads.def"
#include "importers/torch_export/schema/NattenOverloads.def"
#include "importers/torch_export/schema/Overloads.def"
#undef ATEN
#undef ATEN_BACKWARD
#undef ATEN_SPECIAL
#undef ATEN_DROPPED
#undef ATEN_VIEW
#undef PRIM_SPECIAL
#undef C10D
#undef C10D_WAIT
#undef LIBRARY_SPECIAL
  };
  return overloads;
}

llvm::ArrayRef<Overload> complexOverloads() {
  static constexpr Overload overloads[] = {
#define COMPLEX(overload, f) {#overload, Overload::Special, "", build##f},
#define COMPLEX_PARTS(overload) {#overload, Overload::Parts},
#include "importers/torch_export/schema/ComplexOverloads.def"
#undef COMPLEX
#undef COMPLEX_PARTS
  };
  return overloads;
}

static llvm::StringMap<const Overload *> indexOf(llvm::ArrayRef<Overload> overloads) {
  llvm::StringMap<const Overload *> index;
  for (const Overload &overload : overloads)
    index[overload.name] = &overload;
  return index;
}

const Overload *findOverload(llvm::StringRef name) {
  static const llvm::StringMap<const Overload *> index = indexOf(allOverloads());
  return index.lookup(name);
}

const Overload *findComplexOverload(llvm::StringRef name) {
  static const llvm::StringMap<const Overload *> index = indexOf(complexOverloads());
  return index.lookup(name);
}

mlir::FailureOr<Results> buildCall(Call &call, const Overload *real, const Overload *complex) {
  call.countsPairs = call.hasComplexOperands();
  bool hasPairs = call.countsPairs || llvm::any_of(call.results, [](const TensorMeta *meta) {
                    return meta->isComplex();
                  });
  if (hasPairs && !complex)
    return call.error() << "it is not supported for complex tensors: compute on "
                           "torch.view_as_real of them";
  const Overload &row = real && (!hasPairs || complex->kind == Overload::Parts) ? *real : *complex;
  if (row.build)
    return row.build(call);
  return row.kind == Overload::Backward ? buildBackward(call, row.op) : buildByName(call, row.op);
}

} // namespace shardc::torch_export
