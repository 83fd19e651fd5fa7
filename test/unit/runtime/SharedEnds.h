// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds whose ends share memory as processes do, each with segments and mappings of its own, but
// whose ranks are threads.
#ifndef SHARDC_TEST_UNIT_RUNTIME_SHAREDENDS_H
#define SHARDC_TEST_UNIT_RUNTIME_SHAREDENDS_H

#include "runtime/shared/SharedMemory.h"
#include "test/unit/runtime/ThreadControl.h"

#include <thread>

namespace test {

using Ends = std::vector<std::unique_ptr<shardc::rt::Communicator>>;

/// Throws what an end threw.
inline Ends makeSharedEnds(std::vector<std::shared_ptr<shardc::rt::ControlPlane>> controls,
                           shardc::rt::Sharing sharing = shardc::rt::Sharing::Automatic) {
  Ends ends(controls.size());
  std::optional<shardc::rt::Failure> failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        ends[rank] = shardc::rt::makeSharedMemoryEnd(std::move(controls[rank]),
                                                     shardc::rt::deadlineAfter(60), sharing);
      } catch (const shardc::rt::Failure &thrown) {
        std::lock_guard lock(mutex);
        failure.emplace(thrown);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    throw shardc::rt::Failure(*failure);
  return ends;
}
inline Ends makeSharedEnds(uint32_t world,
                           shardc::rt::Sharing sharing = shardc::rt::Sharing::Automatic) {
  return makeSharedEnds(makeThreadControls(world), sharing);
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_SHAREDENDS_H
