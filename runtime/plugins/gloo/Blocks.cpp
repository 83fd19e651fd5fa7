// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/gloo/Blocks.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>

#include <unistd.h>
#include <utility>

namespace shardc::plugin {

namespace {

constexpr std::chrono::hours endless{1000};

int makeEvent() {
  int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0)
    throw std::system_error(errno, std::generic_category(), "eventfd");
  return event;
}

} // namespace

Ticker::~Ticker() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  thread.join();
}

Ticker::Waiting::Waiting(Ticker &ticker, gloo::transport::UnboundBuffer &buffer) : ticker(ticker) {
  std::lock_guard lock(ticker.mutex);
  ticker.waited = &buffer;
  if (ticker.idle)
    ticker.changed.notify_one();
}

Ticker::Waiting::~Waiting() {
  std::lock_guard lock(ticker.mutex);
  ticker.waited = nullptr;
}

void Ticker::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (waited) {
      waited->abortWaitRecv();
      waited->abortWaitSend();
    } else {
      idle = true;
      changed.wait(lock, [this] { return waited || stopping; });
      idle = false;
    }
    changed.wait_for(lock, slice, [this] { return stopping; });
  }
}

EventThread::EventThread(std::shared_ptr<gloo::transport::tcp::Device> device)
    : device(std::move(device)), event(makeEvent()) {
  this->device->registerDescriptor(event, EPOLLIN, this);
}

EventThread::~EventThread() {
  device->unregisterDescriptor(event, this);
  close(event);
}

EventThread::Task::Task(EventThread &thread, std::function<void()> function,
                        std::function<void()> failed)
    : thread(thread), function(std::move(function)), failed(std::move(failed)) {
  {
    std::lock_guard lock(thread.mutex);
    thread.task = this;
  }
  if (eventfd_write(thread.event, 1) != 0) {
    std::lock_guard lock(thread.mutex);
    thread.task = nullptr;
    throw std::system_error(errno, std::generic_category(), "eventfd_write");
  }
}

EventThread::Task::~Task() {
  std::unique_lock lock(thread.mutex);
  thread.changed.wait(lock, [this] { return ended; });
}

void EventThread::Task::check() {
  std::lock_guard lock(thread.mutex);
  if (problem)
    std::rethrow_exception(problem);
}

void EventThread::handleEvents(int) {
  eventfd_t count = 0;
  eventfd_read(event, &count);
  std::unique_lock lock(mutex);
  Task *now = std::exchange(task, nullptr);
  if (!now)
    return;
  lock.unlock();
  std::exception_ptr problem;
  try {
    now->function();
  } catch (...) {
    problem = std::current_exception();
  }
  lock.lock();
  now->problem = problem;
  if (problem)
    now->failed();
  now->ended = true;
  changed.notify_one();
}

void Block::complete(std::initializer_list<Block *> blocks, EventThread &thread, Ticker &ticker,
                     const shardrt_transport_world &world) {
  auto post = [&] {
    for (Block *block : blocks) {
      for (const Part &part : block->receives)
        block->buffer->recv(part.rank, part.slot, part.offset, part.bytes);
      for (const Part &part : block->sends)
        block->buffer->send(part.rank, part.slot, part.offset, part.bytes);
    }
  };
  auto wake = [&] {
    for (Block *block : blocks) {
      block->buffer->abortWaitRecv();
      block->buffer->abortWaitSend();
    }
  };
  EventThread::Task posting(thread, post, wake);
  auto look = [&] {
    posting.check();
    stopIfTold(world);
  };
  for (Block *block : blocks) {
    Ticker::Waiting waiting(ticker, *block->buffer);
    for (size_t left = block->receives.size(); left > 0; --left)
      while (!block->buffer->waitRecv(nullptr, endless))
        look();
    for (size_t left = block->sends.size(); left > 0; --left)
      while (!block->buffer->waitSend(nullptr, endless))
        look();
  }
}

} // namespace shardc::plugin
