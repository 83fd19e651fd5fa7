// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which keys the masks of an attention let each query see, where they are computed of constants.
#ifndef SHARDC_DIALECTS_ATEN_MASKKEYS_H
#define SHARDC_DIALECTS_ATEN_MASKKEYS_H

#include "dialects/aten/VisibleKeys.h"
#include "mlir/IR/Value.h"

#include <string>

namespace shardc::aten {

/// Bools, or numbers that are added to scores: `[..., queries or 1, keys or 1]`.
struct AttentionMask {
  mlir::Value tensor;
  bool hides = false; ///< of bools: a key is hidden where it is true
};

/// The keys that all masks let be seen, which must be the same at all positions of other dims.
/// Nothing where this is not known, or where more than `mostSeen` pairs are visible; `why` says
/// what a user may want to know then.
std::optional<VisibleKeys> visibleKeys(llvm::ArrayRef<AttentionMask> masks, int64_t size,
                                       int64_t mostSeen, std::string &why);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_MASKKEYS_H
