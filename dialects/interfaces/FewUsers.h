// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_INTERFACES_FEWUSERS_H
#define SHARDC_DIALECTS_INTERFACES_FEWUSERS_H

#include "mlir/IR/Value.h"

namespace shardc {

/// Whether a value has so few users that each of them may look at all others. Of a value with more,
/// none looks: that would take quadratic time, and all of them are to find the same.
inline bool hasFewUsers(mlir::Value value) {
  constexpr unsigned kFew = 64;
  return !value.hasNUsesOrMore(kFew + 1);
}

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_FEWUSERS_H
