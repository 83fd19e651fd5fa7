// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/CustomOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/WithColor.h"

std::optional<std::vector<shardc::CustomOp>>
shardc::loadCustomOps(llvm::ArrayRef<std::string> files, llvm::StringRef plan) {
  std::vector<CustomOp> ops;
  std::vector<std::string> errors;
  auto add = [&](llvm::StringRef file, bool isPlan) {
    for (CustomOp &op : plan::loadCustomOps(file, isPlan, errors)) {
      const auto *other = llvm::find_if(llvm::ArrayRef(ops), [&](const CustomOp &known) {
        return known.target == op.target && known.origin != op.origin;
      });
      if (!op.target.empty() && other != ops.data() + ops.size() &&
          !llvm::StringRef(other->origin).starts_with((file + ":").str()))
        errors.push_back(op.origin + ": '" + op.target + "' is registered at " + other->origin +
                         " too");
      ops.push_back(std::move(op));
    }
  };
  for (const std::string &file : files)
    if (file != plan)
      add(file, /*isPlan=*/false);
  if (!plan.empty())
    add(plan, /*isPlan=*/true);
  for (const std::string &error : errors)
    llvm::WithColor::error() << error << "\n";
  if (!errors.empty())
    return std::nullopt;
  return ops;
}
