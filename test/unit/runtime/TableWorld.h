// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator as a caller brings it: the C table of shardrt.h over a toy world.
#ifndef SHARDC_TEST_UNIT_RUNTIME_TABLEWORLD_H
#define SHARDC_TEST_UNIT_RUNTIME_TABLEWORLD_H

#include "runtime/comm/Reduce.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/ToyWorld.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

namespace test {

/// The context of one rank's table. It deletes itself when it is destroyed, and counts that.
struct TableEnd {
  std::shared_ptr<ToyWorld> world;
  uint32_t rank;
  bool native = false; ///< supports every kind itself
  std::atomic<int> *destroyed = nullptr;
  std::atomic<int> left{0}, aborted{0};

  static TableEnd &of(void *context) { return *static_cast<TableEnd *>(context); }

  static shardrt_status report(const std::optional<ToyFailure> &failure, char *message) {
    if (!failure)
      return SHARDRT_OK;
    std::snprintf(message, SHARDRT_MESSAGE_BYTES, "%s", failure->reason.c_str());
    return failure->status;
  }

  static shardrt_status exchange(void *context, const shardrt_exchange *e, char *message) {
    TableEnd &end = of(context);
    std::vector<uint32_t> all(end.world->size());
    std::iota(all.begin(), all.end(), 0u);
    return report(end.world->meet({end.rank, all, e->topic, e, e->run, e->timeout_s},
                                  [](const std::vector<const void *> &payloads) -> std::string {
                                    for (const void *to : payloads)
                                      for (size_t r = 0; r < payloads.size(); ++r) {
                                        auto &t = *static_cast<const shardrt_exchange *>(to);
                                        auto &f =
                                            *static_cast<const shardrt_exchange *>(payloads[r]);
                                        if (t.bytes != f.bytes)
                                          return "exchanges of different sizes";
                                        if (f.bytes > 0)
                                          std::memcpy(static_cast<char *>(t.all) + r * f.bytes,
                                                      f.mine, size_t(f.bytes));
                                      }
                                    return "";
                                  }),
                  message);
  }

  static shardrt_status transfer(void *context, const shardrt_transfer *t, char *message) {
    TableEnd &end = of(context);
    std::vector<uint32_t> members(t->members, t->members + t->n_members);
    std::string what = std::string(t->name) + " (" + t->location + ")";
    return report(end.world->meet({end.rank, members, what, t, t->run, t->timeout_s}, perform),
                  message);
  }

  /// Does a transfer for all members, given by position.
  static std::string perform(const std::vector<const void *> &payloads) {
    std::vector<const shardrt_transfer *> all;
    for (const void *payload : payloads)
      all.push_back(static_cast<const shardrt_transfer *>(payload));
    const shardrt_transfer &first = *all[0];
    size_t bytes = size_t(shardc::rt::typeBytes(first.type)), n = all.size();
    auto copy = [&](size_t to, int64_t toOffset, size_t from, int64_t fromOffset, int64_t count) {
      char *target = static_cast<char *>(all[to]->receive) + size_t(toOffset) * bytes;
      const char *source = static_cast<const char *>(all[from]->send) + size_t(fromOffset) * bytes;
      if (count > 0 && target != source)
        std::memcpy(target, source, size_t(count) * bytes);
    };
    for (const shardrt_transfer *t : all)
      if (t->signature != first.signature)
        return "members are in different operations of " + std::string(first.name);
    std::vector<std::vector<char>> reduced(n);
    for (size_t p = 0; p < n; ++p)
      switch (first.kind) {
      case SHARDRT_ALL_TO_ALL:
        if (all[p]->send_counts[p] != 0 || all[p]->receive_counts[p] != 0)
          return "a block for oneself";
        for (size_t q = 0; q < n; ++q) {
          if (all[q]->send_counts[p] != all[p]->receive_counts[q])
            return "counts of blocks differ";
          copy(p, all[p]->receive_offsets[q], q, all[q]->send_offsets[p],
               all[p]->receive_counts[q]);
        }
        break;
      case SHARDRT_ALL_GATHER:
        for (size_t q = 0; q < n; ++q) {
          if (all[q]->count != all[p]->receive_counts[q])
            return "counts of blocks differ";
          copy(p, all[p]->receive_offsets[q], q, 0, all[q]->count);
        }
        break;
      case SHARDRT_BROADCAST:
        copy(p, 0, size_t(first.root), 0, first.count);
        break;
      default: {
        std::vector<const void *> sources;
        for (size_t q = 0; q < n; ++q)
          sources.push_back(static_cast<const char *>(all[q]->send) +
                            (all[q]->send_offsets ? size_t(all[q]->send_offsets[p]) * bytes : 0));
        reduced[p].resize(size_t(all[p]->count) * bytes);
        void *to = reduced[p].data();
        if (all[p]->count > 0)
          shardc::rt::reduceFunction(first.type, uint32_t(first.reduction))(sources, {&to, 1},
                                                                            size_t(all[p]->count));
      }
      }
    for (size_t p = 0; p < n; ++p)
      if (!reduced[p].empty())
        std::memcpy(all[p]->receive, reduced[p].data(), reduced[p].size());
    return "";
  }

  static int32_t supports(void *context, int32_t, shardrt_type, int32_t) {
    return of(context).native;
  }
  static void abort(void *context, shardrt_status status, const char *reason) {
    ++of(context).aborted;
    of(context).world->abort(status, reason);
  }
  static void refuse(void *context, uint64_t run, const char *reason) {
    of(context).world->refuse(of(context).rank, run, reason);
  }
  static void leave(void *context) {
    ++of(context).left;
    of(context).world->leave(of(context).rank);
  }
  static void notePosition(void *context, const char *name, const char *location) {
    of(context).world->notePosition(of(context).rank, name, location ? location : "");
  }
  static void destroy(void *context) {
    if (of(context).destroyed)
      ++*of(context).destroyed;
    delete &of(context);
  }

  static shardrt_communicator_functions functions() {
    return {sizeof(shardrt_communicator_functions),
            exchange,
            transfer,
            abort,
            supports,
            refuse,
            leave,
            notePosition,
            destroy};
  }
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_TABLEWORLD_H
