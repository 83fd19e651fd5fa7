// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine behind the table of plugins, for tests: ranks are threads that leave messages for each
// other in one map.
#ifndef SHARDC_TEST_UNIT_RUNTIME_TOYPLUGIN_H
#define SHARDC_TEST_UNIT_RUNTIME_TOYPLUGIN_H

#include "runtime/include/shardrt_transport.h"
#include "runtime/support/Types.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace test {

/// One rank's end. Worlds find each other by what rank 0 tells in an exchange: the address of the
/// messages, which stay as long as the process.
template <bool gathers> struct ToyPlugin {
  struct Messages {
    std::mutex mutex;
    std::map<std::vector<int64_t>, std::vector<char>> boxes; ///< members, from, to, number
  };
  const shardrt_transport_world *world;
  Messages *messages = nullptr;
  std::map<std::vector<int64_t>, int64_t> counts; ///< of transfers, by members
  static inline std::atomic<int> open{0}, closedAfterFailure{0};
  /// The rank that begins late with transfers of f32; -1: none.
  static inline std::atomic<int> slow{-1};
  /// What transfers answer instead of working; 0: they work.
  static inline std::atomic<shardrt_status> broken{SHARDRT_OK};

  static Messages *keptMessages() {
    static std::mutex mutex;
    static std::vector<std::unique_ptr<Messages>> all;
    std::lock_guard lock(mutex);
    return all.emplace_back(std::make_unique<Messages>()).get();
  }

  static ToyPlugin &of(void *context) { return *static_cast<ToyPlugin *>(context); }

  static shardrt_status openEnd(const shardrt_transport_world *world, void **context, double,
                                char *message) {
    auto end = std::make_unique<ToyPlugin>();
    end->world = world;
    std::vector<Messages *> all(size_t(world->world_size));
    Messages *mine = world->rank == 0 ? keptMessages() : nullptr;
    shardrt_exchange exchange{"the toy's address", 0, &mine, all.data(), sizeof mine, 60};
    shardrt_status status = world->exchange(world->host, &exchange, message);
    end->messages = all[0];
    *context = end.release();
    ++open;
    return status;
  }
  static shardrt_status connect(void *context, const shardrt_transport_group *groups,
                                uint64_t nGroups, double, char *) {
    for (uint64_t i = 0; i < nGroups; ++i)
      of(context).counts[{groups[i].members, groups[i].members + groups[i].n_members}] = 0;
    return SHARDRT_OK;
  }
  static int32_t supports(void *, int32_t kind, shardrt_type, int32_t) {
    return gathers && kind == SHARDRT_ALL_GATHER;
  }
  static shardrt_status transfer(void *context, const shardrt_transfer *t, char *message) {
    ToyPlugin &end = of(context);
    if (broken != SHARDRT_OK) {
      std::snprintf(message, SHARDRT_MESSAGE_BYTES, "the toy is broken");
      return broken;
    }
    std::vector<int64_t> key(t->members, t->members + t->n_members);
    auto count = end.counts.find(key);
    if (count == end.counts.end()) {
      std::snprintf(message, SHARDRT_MESSAGE_BYTES, "the group was not connected");
      return SHARDRT_INTERNAL;
    }
    int64_t bytes = shardc::rt::typeBytes(t->type), number = ++count->second;
    auto box = [&](int64_t from, int64_t to) {
      std::vector<int64_t> name = key;
      name.insert(name.end(), {from, to, number});
      return name;
    };
    bool gather = t->kind == SHARDRT_ALL_GATHER;
    if (slow == end.world->rank && t->type == SHARDRT_F32)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (int32_t q = 0; q < t->n_members; ++q) {
      int64_t elements = gather ? t->count : t->send_counts[q];
      if (elements == 0)
        continue;
      auto *from = static_cast<const char *>(t->send) + (gather ? 0 : t->send_offsets[q] * bytes);
      std::lock_guard lock(end.messages->mutex);
      end.messages->boxes[box(t->position, q)].assign(from, from + elements * bytes);
    }
    for (int32_t q = 0; q < t->n_members; ++q)
      for (bool got = t->receive_counts[q] == 0; !got;) {
        {
          std::lock_guard lock(end.messages->mutex);
          auto found = end.messages->boxes.find(box(q, t->position));
          if ((got = found != end.messages->boxes.end())) {
            if (int64_t(found->second.size()) != t->receive_counts[q] * bytes)
              return SHARDRT_INTERNAL;
            std::memcpy(static_cast<char *>(t->receive) + t->receive_offsets[q] * bytes,
                        found->second.data(), found->second.size());
            end.messages->boxes.erase(found);
          }
        }
        if (!got && end.world->must_stop(end.world->host))
          return SHARDRT_ABORTED;
        if (!got)
          std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    return SHARDRT_OK;
  }
  static void close(void *context, int32_t failed) {
    --open;
    closedAfterFailure += failed;
    delete &of(context);
  }

  static shardrt_transport_plugin table() {
    return {sizeof(shardrt_transport_plugin),
            SHARDRT_TRANSPORT_VERSION,
            0,
            "toy",
            "a toy",
            nullptr,
            nullptr,
            openEnd,
            connect,
            supports,
            transfer,
            close};
  }
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_TOYPLUGIN_H
