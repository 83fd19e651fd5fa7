// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator that the caller brings: a table of C functions behind the seam.
#include "runtime/comm/Communicator.h"
#include "runtime/comm/FlatTransport.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace shardc::rt {

namespace {

/// Of one rank: more than facts about a program can take.
constexpr size_t mostExchanged = 16 << 20;

class TableCommunicator final : public Communicator, private FlatTransport {
public:
  TableCommunicator(const shardrt_communicator_functions &functions, void *context, uint32_t self,
                    uint32_t world)
      : functions(functions), context(context), self(self), world(world) {}
  ~TableCommunicator() override {
    leave();
    if (functions.destroy)
      functions.destroy(context);
  }

  uint32_t worldSize() const override { return world; }
  uint32_t rank() const override { return self; }

  Group &group(std::span<const uint32_t> members) override {
    std::vector<uint32_t> key(members.begin(), members.end());
    std::unique_ptr<Group> &entry = groups[key];
    if (!entry) {
      auto position = uint32_t(std::find(key.begin(), key.end(), self) - key.begin());
      entry = std::make_unique<Group>(key, position);
    }
    return *entry;
  }

  /// Lengths first: the table's blocks have the same size on all ranks.
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    std::vector<uint64_t> lengths(world);
    uint64_t length = mine.size();
    exchangeBytes(topic, &length, lengths.data(), sizeof length, deadline);
    size_t longest = size_t(*std::max_element(lengths.begin(), lengths.end()));
    if (longest > mostExchanged)
      throw Failure(SHARDRT_MISMATCH, std::string(topic.name) + ": a rank says that it has " +
                                          std::to_string(longest) + " bytes to exchange");
    std::vector<std::string> texts(world);
    if (longest == 0)
      return texts;
    std::string padded(mine), all(longest * world, '\0');
    padded.resize(longest);
    exchangeBytes(topic, padded.data(), all.data(), longest, deadline);
    for (uint32_t r = 0; r < world; ++r)
      texts[r] = all.substr(r * longest, size_t(lengths[r]));
    return texts;
  }

  HostTransport *hostTransport() override { return this; }

  void abort(shardrt_status status, const std::string &reason) noexcept override {
    {
      std::lock_guard lock(mutex);
      if (aborted)
        return;
      aborted.emplace(status, reason);
    }
    functions.abort(context, status, reason.c_str());
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    if (functions.refuse)
      functions.refuse(context, run, reason.c_str());
  }
  void leave() noexcept override {
    if (functions.leave && !left.exchange(true))
      functions.leave(context);
  }
  void notePosition(const shardrt_op *op) noexcept override {
    if (functions.note_position)
      functions.note_position(context, op ? op->name : nullptr, op ? op->location : nullptr);
  }

private:
  bool offers(uint32_t kind, shardrt_type type, uint32_t reduction) override {
    return functions.supports &&
           functions.supports(context, int32_t(kind), type, int32_t(reduction)) != 0;
  }

  void transfer(const shardrt_transfer &transfer, Clock::time_point deadline) override {
    shardrt_transfer timed = transfer;
    timed.timeout_s = secondsUntil(deadline);
    auto where = [&] {
      shardrt_collective collective{};
      collective.name = transfer.name;
      collective.location = transfer.location;
      return describe(collective);
    };
    call(where, [&](char *message) { return functions.transfer(context, &timed, message); });
  }

  void disagree(const shardrt_collective &collective, const std::string &how) override {
    failed.emplace(SHARDRT_MISMATCH, describe(collective) + ": ranks disagree: " + how);
    abort(SHARDRT_MISMATCH, failed->message);
    throw Failure(*failed);
  }

  void exchangeBytes(const Topic &topic, const void *mine, void *all, uint64_t bytes,
                     Clock::time_point deadline) {
    shardrt_exchange exchange{topic.name, topic.run, mine, all, bytes, secondsUntil(deadline)};
    call([&] { return std::string(topic.name); },
         [&](char *message) { return functions.exchange(context, &exchange, message); });
  }

  /// Calls one of the functions that communicate. Once one has failed the others are not called.
  template <typename Where, typename Function> void call(Where where, Function function) {
    if (failed)
      throw Failure(*failed);
    {
      std::lock_guard lock(mutex);
      if (aborted)
        throw Failure(aborted->status, where() + ": given up: " + aborted->message);
    }
    char message[SHARDRT_MESSAGE_BYTES];
    message[0] = message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
    shardrt_status status = function(message);
    if (status == SHARDRT_OK)
      return;
    message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
    std::string reason = message[0] ? message : "the communicator gave no reason";
    if (status < SHARDRT_OK || status > SHARDRT_INTERNAL) {
      reason += " (it returned " + std::to_string(status) + ", which is no status)";
      status = SHARDRT_INTERNAL;
    }
    failed.emplace(status, where() + ": " + reason);
    // A deadline and a disagreement concern all ranks; other reasons are one rank's own.
    bool shared = status == SHARDRT_TIMEOUT || status == SHARDRT_MISMATCH;
    abort(shared ? status : SHARDRT_ABORTED, failed->message);
    throw Failure(*failed);
  }

  const shardrt_communicator_functions functions;
  void *const context;
  const uint32_t self, world;
  std::map<std::vector<uint32_t>, std::unique_ptr<Group>> groups;
  std::optional<Failure> failed; ///< used by whoever communicates
  std::mutex mutex;
  std::optional<Failure> aborted; ///< guarded by mutex
  std::atomic<bool> left{false};
};

} // namespace

std::unique_ptr<Communicator> makeTableCommunicator(const shardrt_communicator_functions &functions,
                                                    void *context, int32_t rank,
                                                    int32_t worldSize) {
  Problems problems;
  if (functions.struct_bytes != sizeof functions) {
    problems.add("struct_bytes is " + std::to_string(functions.struct_bytes) + ", this runtime (" +
                 "shardrt.h " + std::to_string(SHARDRT_VERSION_MAJOR) + "." +
                 std::to_string(SHARDRT_VERSION_MINOR) + ") knows a table of " +
                 std::to_string(sizeof functions) + " bytes");
  } else {
    if (!functions.exchange)
      problems.add("exchange is null");
    if (!functions.transfer)
      problems.add("transfer is null");
    if (!functions.abort)
      problems.add("abort is null");
  }
  if (worldSize < 1)
    problems.add("world_size is " + std::to_string(worldSize));
  else if (rank < 0 || rank >= worldSize)
    problems.add("rank is " + std::to_string(rank) + " in a world of " + std::to_string(worldSize));
  problems.raise(SHARDRT_INVALID_ARGUMENT, "communicator");
  return std::make_unique<TableCommunicator>(functions, context, uint32_t(rank),
                                             uint32_t(worldSize));
}

} // namespace shardc::rt
