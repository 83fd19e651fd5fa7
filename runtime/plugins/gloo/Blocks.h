// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of this process that Gloo sends from or receives into, and threads for it.
#ifndef SHARDC_RUNTIME_PLUGINS_GLOO_BLOCKS_H
#define SHARDC_RUNTIME_PLUGINS_GLOO_BLOCKS_H

#include "runtime/plugins/Plugin.h"

#include <condition_variable>
#include <functional>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <mutex>
#include <thread>
#include <vector>

namespace shardc::plugin {

/// How long a thread sleeps before it asks whether it must stop; data wakes it at once. Two of them
/// are less than the 50 ms that the interface allows.
constexpr std::chrono::milliseconds slice(20);

/// Lets the thread that waits for a buffer look up now and then. Gloo's own waits have a time
/// limit, but break all connections when it is over.
class Ticker {
public:
  Ticker() : thread([this] { run(); }) {}
  ~Ticker();

  /// While it lives, waits for the buffer return early now and then.
  class Waiting {
  public:
    Waiting(Ticker &ticker, gloo::transport::UnboundBuffer &buffer);
    ~Waiting();

  private:
    Ticker &ticker;
  };

private:
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  gloo::transport::UnboundBuffer *waited = nullptr;
  bool idle = false, stopping = false;
  std::thread thread; ///< the last: it uses the others
};

/// Runs functions on the thread in which Gloo handles events of connections. That thread does not
/// wait for a connection that another thread uses, but asks again and again what has happened to
/// it. Where cores are few, it takes the one that the other thread needs to go on: four processes
/// on two cores spent most of their time in that. So no other thread uses connections.
class EventThread : gloo::transport::tcp::Handler {
public:
  explicit EventThread(std::shared_ptr<gloo::transport::tcp::Device> device);
  ~EventThread() override;

  /// A function that runs there; ends with it.
  class Task {
  public:
    /// `failed` is called there when the function has thrown.
    Task(EventThread &thread, std::function<void()> function, std::function<void()> failed);
    /// Waits for its end: it never waits for anybody.
    ~Task();
    /// Throws what the function has thrown, if it has.
    void check();

  private:
    friend class EventThread;
    EventThread &thread;
    const std::function<void()> function, failed;
    std::exception_ptr problem; ///< guarded by the thread's mutex, as `ended`
    bool ended = false;
  };

private:
  void handleEvents(int events) override;

  const std::shared_ptr<gloo::transport::tcp::Device> device;
  const int event; ///< a descriptor: there is something to do
  std::mutex mutex;
  std::condition_variable changed;
  Task *task = nullptr;
};

/// When it is destroyed Gloo's thread touches the memory no more.
class Block {
public:
  Block(gloo::transport::Context &mesh, void *memory, size_t bytes)
      : buffer(mesh.createUnboundBuffer(memory, bytes)) {}

  void send(int rank, uint64_t slot, size_t offset, size_t bytes) {
    sends.push_back({rank, slot, offset, bytes});
  }
  void receive(int rank, uint64_t slot, size_t offset, size_t bytes) {
    receives.push_back({rank, slot, offset, bytes});
  }

  /// Does what was asked for, of all these blocks at the same time.
  static void complete(std::initializer_list<Block *> blocks, EventThread &thread, Ticker &ticker,
                       const shardrt_transport_world &world);

private:
  struct Part {
    int rank;
    uint64_t slot;
    size_t offset, bytes;
  };

  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  std::vector<Part> sends, receives;
};

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_GLOO_BLOCKS_H
