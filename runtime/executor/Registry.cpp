// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/Executor.h"

#include <algorithm>

namespace shardc::rt {

void ExecutorRegistry::add(const ExecutorKind &kind) {
  std::erase_if(kinds, [&](const ExecutorKind &known) { return known.name == kind.name; });
  kinds.push_back(kind);
}

const ExecutorKind *ExecutorRegistry::find(std::string_view name) const {
  auto found = std::find_if(kinds.begin(), kinds.end(),
                            [&](const ExecutorKind &kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

std::string ExecutorRegistry::names() const {
  std::string text;
  for (const ExecutorKind &kind : kinds)
    text += (text.empty() ? "" : ", ") + std::string(kind.name);
  return text;
}

} // namespace shardc::rt
