// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_ATEN_PASTAUTOGRAD_H
#define SHARDC_DIALECTS_ATEN_PASTAUTOGRAD_H

#include "llvm/ADT/StringRef.h"

namespace shardc::aten {

/// A unit attribute of an `aten.alias` or `aten.copy`: the result was written over a tensor past
/// autograd, inside `torch.no_grad()` or through a detached view. PyTorch's gradient of what reads
/// it afterwards is that of the old value, which no graph of values says.
inline constexpr llvm::StringLiteral kPastAutogradAttr = "aten.past_autograd";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_PASTAUTOGRAD_H
