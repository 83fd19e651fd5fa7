// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executors that the library has: a new one is a folder of its own and a line here.
#include "runtime/device/DeviceKind.h"
#include "runtime/executor/Executor.h"
#include "runtime/host/HostExecutor.h"

#include <algorithm>

namespace shardc::rt {

const ExecutorRegistry &ExecutorRegistry::builtIn() {
  static const ExecutorRegistry registry = [] {
    ExecutorRegistry all;
    all.add(hostExecutorKind);
    all.add(cudaExecutorKind);
    return all;
  }();
  return registry;
}

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
