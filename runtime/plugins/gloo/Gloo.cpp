// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libshardrt_gloo.so: data of collectives over TCP by Gloo's connections. Ranks have one connection
// each to all others, over which groups send blocks; the runtime reduces what arrives in the order
// of positions, so that results have the bits of a world of threads (docs/processes.md).
#include "runtime/plugins/gloo/Addresses.h"
#include "runtime/plugins/gloo/Blocks.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <sys/resource.h>

using namespace shardc::plugin;
namespace tcp = gloo::transport::tcp;

namespace {

class End {
public:
  End(const shardrt_transport_world &world, double timeout) : world(world) {
    allowConnections();
    std::shared_ptr<tcp::Device> device = makeDevice();
    mesh = device->createContext(world.rank, world.world_size);
    // Of the connections that are made now; Gloo waits five times as long for each of them.
    mesh->setTimeout(std::chrono::milliseconds(int64_t(1 + 200 * std::min(timeout, 1e6))));
    const Addresses mine = listen();
    std::vector<char> all(mine.sent().size() * size_t(world.world_size));
    shardrt_exchange exchange{"Gloo's addresses", 0,      mine.sent().data(), all.data(),
                              mine.sent().size(), timeout};
    char message[SHARDRT_MESSAGE_BYTES] = "";
    if (shardrt_status status = world.exchange(world.host, &exchange, message))
      throw Failure{status, message};
    connectAll(all);
    events.emplace(std::move(device));
  }

  void connect(const shardrt_transport_group *list, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      groups.try_emplace({list[i].members, list[i].members + list[i].n_members}, i << 32);
  }

  void transfer(const shardrt_transfer &t) {
    auto group = groups.find({t.members, t.members + t.n_members});
    if (group == groups.end())
      throw Failure{SHARDRT_INTERNAL, "the group was not connected"};
    uint64_t slot = group->second++;
    try {
      if (t.kind == SHARDRT_ALL_TO_ALL)
        allToAll(t, slot);
      else
        broadcast(t, slot);
    } catch (...) {
      // Gloo keeps trying to fill what is gone, and others wait for the rest of a block.
      closeAll();
      throw;
    }
  }

  bool supports(int32_t kind, shardrt_type, int32_t) const { return kind == SHARDRT_BROADCAST; }

  void close(bool failed) {
    if (failed)
      closeAll();
  }

private:
  void closeAll() {
    for (int rank = 0; rank < world.world_size; ++rank)
      if (rank != world.rank && mesh->getPair(rank))
        mesh->getPair(rank)->close();
  }

  /// Its thread writes to connections whose other end may be gone, and nobody has told Gloo not to
  /// get a signal for that, which would end the process without a word. A thread begins with the
  /// signal mask of the one that starts it.
  std::shared_ptr<tcp::Device> makeDevice() const {
    struct NoSignal {
      NoSignal() {
        sigset_t broken;
        sigemptyset(&broken);
        sigaddset(&broken, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &broken, &before);
      }
      ~NoSignal() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
      sigset_t before;
    } noSignal;
    tcp::attr attr(world.address);
    auto device = std::dynamic_pointer_cast<tcp::Device>(tcp::CreateDevice(attr));
    if (!device)
      throw Failure{SHARDRT_INTERNAL, "Gloo made no device of TCP"};
    return device;
  }

  /// One to every other rank.
  void allowConnections() const {
    rlimit limit{};
    rlim_t wanted = rlim_t(world.world_size) + 1024;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
      return;
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit); // if it fails, Gloo says so
  }

  /// Makes an end of each connection; returns where the others reach them, by rank.
  Addresses listen() {
    Addresses addresses(size_t(world.world_size));
    for (int rank = 0; rank < world.world_size; ++rank)
      if (rank != world.rank)
        addresses.set(size_t(rank), tcp::Address(mesh->createPair(rank)->address().bytes()));
    return addresses;
  }

  /// Gloo waits for each connection without asking anybody, so another thread does it. Closing ends
  /// its wait.
  void connectAll(const std::vector<char> &all) {
    std::atomic<bool> done{false};
    std::string problem;
    std::thread connecting([&] {
      try {
        for (int rank = 0; rank < world.world_size; ++rank) {
          if (rank == world.rank)
            continue;
          try {
            auto size = size_t(world.world_size);
            Addresses theirs(all.data() + size_t(rank) * Addresses::bytesFor(size), size);
            mesh->getPair(rank)->connect(theirs.get(size_t(world.rank)).bytes());
          } catch (const Failure &failure) {
            throw std::runtime_error("rank " + std::to_string(rank) + ": " + failure.message);
          } catch (const std::exception &error) {
            throw std::runtime_error("rank " + std::to_string(rank) + ": " + error.what());
          }
        }
      } catch (const std::exception &error) {
        problem = error.what();
      }
      done.store(true, std::memory_order_release);
    });
    bool stopped = false;
    for (auto nap = std::chrono::microseconds(100); !done.load(std::memory_order_acquire);) {
      std::this_thread::sleep_for(nap);
      nap = std::min<std::chrono::microseconds>(2 * nap, slice);
      if (!stopped && world.must_stop(world.host)) {
        stopped = true;
        closeAll();
      }
    }
    connecting.join();
    if (stopped)
      throw Failure{SHARDRT_ABORTED, "it was stopped"};
    if (!problem.empty())
      throw Failure{SHARDRT_ABORTED, problem};
  }

  void complete(std::initializer_list<Block *> blocks) {
    Block::complete(blocks, *events, ticker, world);
  }

  /// Room of the blocks from the first element on.
  static size_t span(const shardrt_transfer &t, const int64_t *counts, const int64_t *offsets) {
    int64_t end = 0;
    for (int32_t q = 0; q < t.n_members; ++q)
      if (counts[q] > 0)
        end = std::max(end, offsets[q] + counts[q]);
    return size_t(end * elementBytes(t.type));
  }

  void allToAll(const shardrt_transfer &t, uint64_t slot) {
    auto bytes = size_t(elementBytes(t.type));
    const int n = t.n_members, p = t.position;
    Block from(*mesh, const_cast<void *>(t.send), span(t, t.send_counts, t.send_offsets));
    Block to(*mesh, t.receive, span(t, t.receive_counts, t.receive_offsets));
    for (int step = 1; step < n; ++step)
      if (int q = (p - step + n) % n; t.receive_counts[q] > 0)
        to.receive(t.members[q], slot, size_t(t.receive_offsets[q]) * bytes,
                   size_t(t.receive_counts[q]) * bytes);
    for (int step = 1; step < n; ++step)
      if (int q = (p + step) % n; t.send_counts[q] > 0)
        from.send(t.members[q], slot, size_t(t.send_offsets[q]) * bytes,
                  size_t(t.send_counts[q]) * bytes);
    complete({&to, &from});
  }

  /// By a binomial tree: a member gets it from the one whose number, counted from the root, lacks
  /// its lowest bit, and gives it to those that have one lower bit more.
  void broadcast(const shardrt_transfer &t, uint64_t slot) {
    auto bytes = size_t(t.count * elementBytes(t.type));
    if (bytes == 0)
      return;
    const int n = t.n_members, own = (t.position - t.root + n) % n;
    auto rankOf = [&](int number) { return t.members[(number + t.root) % n]; };
    if (own == 0 && t.send != t.receive)
      std::memcpy(t.receive, t.send, bytes);
    int bit = 1;
    for (; bit < n && !(own & bit); bit *= 2) {
    }
    if (own != 0) {
      Block whole(*mesh, t.receive, bytes);
      whole.receive(rankOf(own - bit), slot, 0, bytes);
      complete({&whole});
    }
    Block whole(*mesh, t.receive, bytes);
    while ((bit /= 2) > 0)
      if (own + bit < n)
        whole.send(rankOf(own + bit), slot, 0, bytes);
    complete({&whole});
  }

  const shardrt_transport_world &world;
  std::shared_ptr<gloo::transport::Context> mesh;
  std::optional<EventThread> events; ///< once all are connected
  Ticker ticker;
  /// By members: the slot of the next transfer.
  std::map<std::vector<int32_t>, uint64_t> groups;
};

} // namespace

extern "C" __attribute__((visibility("default"))) const shardrt_transport_plugin *
shardrt_transport_query() {
  static const shardrt_transport_plugin plugin = pluginOf<End>("gloo", "Gloo over TCP");
  return &plugin;
}
