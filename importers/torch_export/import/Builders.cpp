// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/BuildersInternal.h"

#include "llvm/ADT/StringMap.h"

namespace shardc::torch_export {

// In a table of their own.
#define ATEN_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#define LIBRARY_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#include "importers/torch_export/schema/GroupedOverloads.def"
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

const Overload *findOverload(llvm::StringRef name) {
  static const llvm::StringMap<const Overload *> index = [] {
    llvm::StringMap<const Overload *> built;
    for (const Overload &overload : allOverloads())
      built[overload.name] = &overload;
    return built;
  }();
  return index.lookup(name);
}

} // namespace shardc::torch_export
