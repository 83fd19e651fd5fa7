// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TOOLS_CUSTOMOPS_H
#define SHARDC_TOOLS_CUSTOMOPS_H

#include "importers/plan/CustomOps.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace shardc {

/// The operators that these files and the plan (unless its name is empty) register; nothing after
/// errors, all of which are printed.
std::optional<std::vector<CustomOp>> loadCustomOps(llvm::ArrayRef<std::string> files,
                                                   llvm::StringRef plan = "");

} // namespace shardc

#endif // SHARDC_TOOLS_CUSTOMOPS_H
