// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/BuildersInternal.h"

#include "llvm/ADT/StringMap.h"

namespace shardc::torch_export {

llvm::ArrayRef<Overload> allOverloads() {
  static constexpr Overload overloads[] = {
#define ATEN(overload, op) {#overload, "aten." #op},
#define ATEN_SPECIAL(overload, f) {#overload, "", build##f},
#define ATEN_DROPPED(overload) {#overload, ""},
#include "importers/torch_export/schema/Overloads.def"
#undef ATEN
#undef ATEN_SPECIAL
#undef ATEN_DROPPED
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
