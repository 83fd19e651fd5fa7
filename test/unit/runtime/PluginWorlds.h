// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds of threads over a plugin and a control plane of threads.
#ifndef SHARDC_TEST_UNIT_RUNTIME_PLUGINWORLDS_H
#define SHARDC_TEST_UNIT_RUNTIME_PLUGINWORLDS_H

#include "runtime/process/PluginCommunicator.h"
#include "test/unit/runtime/Ranks.h"
#include "test/unit/runtime/ThreadControl.h"

namespace test {

/// The ends of a world: all ranks make theirs at the same time.
inline std::vector<std::unique_ptr<shardc::rt::Communicator>>
makePluginWorld(const std::shared_ptr<ThreadControlWorld> &world,
                const shardc::rt::LoadedPlugin &plugin) {
  auto planes = makeThreadControls(world);
  size_t size = planes.size();
  std::vector<std::unique_ptr<shardc::rt::Communicator>> ends(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ends[rank] = shardc::rt::makePluginEnd(planes[rank], plugin, shardc::rt::deadlineAfter(60));
    });
  for (std::thread &thread : threads)
    thread.join();
  return ends;
}
inline std::vector<std::unique_ptr<shardc::rt::Communicator>>
makePluginWorld(uint32_t size, const shardc::rt::LoadedPlugin &plugin) {
  return makePluginWorld(std::make_shared<ThreadControlWorld>(size), plugin);
}

inline WorldKind pluginWorlds(const char *name, const shardc::rt::LoadedPlugin &plugin) {
  WorldKind kind{name, [plugin](uint32_t size) { return makePluginWorld(size, plugin); }};
  kind.slow = true;
  return kind;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_PLUGINWORLDS_H
