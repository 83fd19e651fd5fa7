// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executors that the library has: a new one is a folder of its own and a line here.
#include "runtime/executor/Executor.h"
#include "runtime/host/HostExecutor.h"

namespace shardc::rt {

const ExecutorRegistry &ExecutorRegistry::builtIn() {
  static const ExecutorRegistry registry = [] {
    ExecutorRegistry all;
    all.add(hostExecutorKind);
    return all;
  }();
  return registry;
}

} // namespace shardc::rt
