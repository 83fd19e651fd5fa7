// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/EventLoop.h"

#include "runtime/support/Failure.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

namespace shardc::rt {

EventLoop::EventLoop()
    : poller(epoll_create1(EPOLL_CLOEXEC)), wakeUp(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poller || !wakeUp)
    throw Failure(SHARDRT_INTERNAL,
                  "the control plane cannot wait for events: " + systemError(errno));
  control(EPOLL_CTL_ADD, wakeUp, nullptr, EPOLLIN);
}

void EventLoop::control(int operation, const Descriptor &fd, void *tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  if (epoll_ctl(poller.get(), operation, fd.get(), &event) != 0)
    throw Failure(SHARDRT_INTERNAL,
                  "the control plane cannot wait for a socket: " + systemError(errno));
}

void EventLoop::add(const Descriptor &fd, void *tag, uint32_t events) {
  control(EPOLL_CTL_ADD, fd, tag, events);
}

void EventLoop::modify(const Descriptor &fd, void *tag, uint32_t events) {
  control(EPOLL_CTL_MOD, fd, tag, events);
}

// Closing is not enough where a child process has the socket too.
void EventLoop::remove(const Descriptor &fd) { control(EPOLL_CTL_DEL, fd, nullptr, 0); }

const std::vector<std::pair<void *, uint32_t>> &EventLoop::wait(Clock::time_point until) {
  epoll_event events[64];
  // Rounded up: waking before the time would do nothing, many times.
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  int count = epoll_wait(poller.get(), events, 64, int(std::clamp<int64_t>(left, 0, 1000 * 1000)));
  happened.clear();
  for (int i = 0; i < count; ++i) {
    void *tag = events[i].data.ptr; // the structure is packed: nothing can refer to a part of it
    uint32_t what = events[i].events;
    if (tag) {
      happened.emplace_back(tag, what);
      continue;
    }
    uint64_t wakes = 0;
    [[maybe_unused]] ssize_t got = read(wakeUp.get(), &wakes, sizeof wakes);
  }
  return happened;
}

void EventLoop::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex);
    posted.push_back(std::move(task));
  }
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wakeUp.get(), &one, sizeof one);
}

void EventLoop::runPosted() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(mutex);
    tasks.swap(posted);
  }
  for (auto &task : tasks)
    task();
}

} // namespace shardc::rt
