// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/CustomOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/WithColor.h"

std::optional<std::vector<shardc::CustomOp>>
shardc::loadCustomOps(llvm::ArrayRef<std::string> files) {
  std::vector<CustomOp> ops;
  std::vector<std::string> errors;
  for (const std::string &file : files)
    for (CustomOp &op : plan::loadCustomOps(file, errors)) {
      auto same = [&](const CustomOp &other) { return other.target == op.target; };
      if (const auto *other = llvm::find_if(llvm::ArrayRef(ops), same);
          other != ops.data() + ops.size())
        errors.push_back(op.origin + ": '" + op.target + "' is registered at " + other->origin +
                         " too");
      ops.push_back(std::move(op));
    }
  for (const std::string &error : errors)
    llvm::WithColor::error() << error << "\n";
  if (!errors.empty())
    return std::nullopt;
  return ops;
}
