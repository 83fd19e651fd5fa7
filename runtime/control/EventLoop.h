// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plane's thread waits for: sockets, and what other threads want of it.
#ifndef SHARDC_RUNTIME_CONTROL_EVENTLOOP_H
#define SHARDC_RUNTIME_CONTROL_EVENTLOOP_H

#include "runtime/control/Socket.h"
#include "runtime/support/Futex.h"

#include <functional>
#include <mutex>
#include <sys/epoll.h>
#include <vector>

namespace shardc::rt {

class EventLoop {
public:
  /// Throws Failure (SHARDRT_INTERNAL) if the system has no descriptors left.
  EventLoop();

  void add(const Descriptor &fd, void *tag, uint32_t events);
  void modify(const Descriptor &fd, void *tag, uint32_t events);
  void remove(const Descriptor &fd);
  /// Returns what happened, at most until `until`: tag and events. Tags are not null.
  const std::vector<std::pair<void *, uint32_t>> &wait(Clock::time_point until);

  /// Any thread: `task` is run by the loop's thread, in order.
  void post(std::function<void()> task);
  void runPosted();

private:
  void control(int operation, const Descriptor &fd, void *tag, uint32_t events);

  Descriptor poller, wakeUp;
  std::vector<std::pair<void *, uint32_t>> happened;
  std::mutex mutex;
  std::vector<std::function<void()>> posted; ///< guarded by mutex
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_EVENTLOOP_H
