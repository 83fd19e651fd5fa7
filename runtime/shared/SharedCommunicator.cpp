// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/SharedMemory.h"
#include "runtime/shared/SharedTransport.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <sched.h>

namespace shardc::rt {

namespace {

/// What a rank has for the others to reach, from before there is a world.
struct OwnMemory {
  explicit OwnMemory(const ControlPlane &control) {
    if (control.rank() == 0)
      meetings = Meetings::make(control.worldSize());
    server.emplace([this](uint32_t number) {
      if (number == Meetings::segmentNumber && meetings)
        return Descriptor(dup(meetings.get()));
      return heap.descriptor(number);
    });
  }

  SegmentHeap heap;
  Descriptor meetings; ///< rank 0's
  std::optional<SegmentServer> server;
};

class SharedCommunicator final : public Communicator {
public:
  SharedCommunicator(std::shared_ptr<ControlPlane> plane, std::unique_ptr<OwnMemory> memory,
                     SharedWorldFacts facts, Mapping meetings, Sharing sharing)
      : control(std::move(plane)), own(std::move(memory)),
        world(control, std::move(facts), std::move(meetings), sharing),
        transport(world, own->heap, control->rank()) {
    std::vector<uint32_t> all(control->worldSize());
    std::iota(all.begin(), all.end(), 0u);
    everybody = &transport.group(all);
  }
  ~SharedCommunicator() override { leave(); }

  uint32_t worldSize() const override { return control->worldSize(); }
  uint32_t rank() const override { return control->rank(); }
  Group &group(std::span<const uint32_t> members) override { return transport.group(members); }

  /// Ranks meet where they meet for collectives, so that one that is in a collective instead is
  /// noticed, and read there what the others say.
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    return transport.exchange(*everybody, topic, mine, deadline);
  }

  bool betweenProcesses() const override { return true; }
  bool givenUp() const override { return world.givenUp(); }
  std::string absent(const Group &group, uint64_t run) override { return world.absent(group, run); }
  HostTransport *hostTransport() override { return &transport; }
  const Allocator *memory() override { return &own->heap.allocator(); }
  std::string summary() const override {
    const SharedTransport::Counts &counts = transport.counts();
    return "shared memory: " + std::to_string(counts.collectives) + " collectives, " +
           std::to_string(counts.staged) + " bytes copied because others could not reach them";
  }

  void abort(shardrt_status status, const std::string &reason) noexcept override {
    world.abort(status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    control->refuse(run, reason);
  }
  void leave() noexcept override { control->leave({}); }
  void notePosition(const shardrt_op *op) noexcept override { world.noteOp(op); }

private:
  const std::shared_ptr<ControlPlane> control;
  const std::unique_ptr<OwnMemory> own;
  SharedWorld world;
  SharedTransport transport;
  MeetingGroup *everybody;
};

/// The processors on which this process may run, a bit each.
std::string ownCores() {
  std::string mask(1024, '\0'); // 8192 processors
  if (sched_getaffinity(0, mask.size(), reinterpret_cast<cpu_set_t *>(mask.data())) != 0)
    mask[0] = 1;
  mask.erase(mask.find_last_not_of('\0') + 1);
  return mask;
}

/// A launcher may bind each rank to cores of its own: what counts is what all have together.
uint32_t countCores(const std::vector<std::string> &masks) {
  std::string all;
  for (const std::string &mask : masks) {
    all.resize(std::max(all.size(), mask.size()));
    for (size_t i = 0; i < mask.size(); ++i)
      all[i] = char(all[i] | mask[i]);
  }
  uint32_t count = 0;
  for (char byte : all)
    count += uint32_t(std::popcount(uint8_t(byte)));
  return std::max(count, 1u);
}

/// The problems of all ranks, which all ranks throw alike. Empty texts are none.
void raise(const std::vector<std::string> &texts) {
  Problems problems;
  for (uint32_t rank = 0; rank < texts.size(); ++rank)
    if (!texts[rank].empty())
      problems.add("rank " + std::to_string(rank) + ": " + texts[rank]);
  problems.raise(SHARDRT_ABORTED, "ranks cannot share memory");
}

void checkMachines(const ControlPlane &control) {
  const std::vector<Peer> &peers = control.peers();
  std::string elsewhere;
  for (uint32_t rank = 0; rank < peers.size(); ++rank)
    if (peers[rank].machine != peers[0].machine)
      elsewhere += ", rank " + std::to_string(rank) + " on " + peers[rank].host;
  if (!elsewhere.empty())
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "ranks on different machines cannot share memory: rank 0 is on " + peers[0].host +
                      elsewhere + ": use a communicator for several hosts");
}

} // namespace

std::unique_ptr<Communicator> makeSharedMemoryEnd(std::shared_ptr<ControlPlane> control,
                                                  Clock::time_point deadline, Sharing sharing) {
  checkMachines(*control);
  std::unique_ptr<OwnMemory> own;
  std::string problem, mine;
  try {
    own = std::make_unique<OwnMemory>(*control);
    SegmentAddress address = own->server->address();
    mine.append(reinterpret_cast<const char *>(&address), sizeof address);
    mine += ownCores();
  } catch (const Failure &failure) {
    problem = failure.message;
  }
  // The first byte says which of both follows.
  std::vector<std::string> said =
      control->exchange({"the exchange of what memory ranks share"},
                        problem.empty() ? "y" + mine : "n" + problem, deadline);
  SharedWorldFacts facts;
  std::vector<std::string> problems, masks;
  for (const std::string &text : said) {
    SegmentAddress &address = facts.addresses.emplace_back();
    bool valid = text.size() >= 1 + sizeof address && text[0] == 'y';
    problems.push_back(valid ? "" : text.starts_with('n') ? text.substr(1) : "it says nothing");
    if (!valid)
      continue;
    std::memcpy(&address, text.data() + 1, sizeof address);
    masks.push_back(text.substr(1 + sizeof address));
  }
  raise(problems);
  facts.cores = countCores(masks);
  Mapping meetings;
  try {
    meetings = mapSegment(fetchSegment(facts.addresses[0], Meetings::segmentNumber, deadline,
                                       [&] { return control->givenUp(); }));
  } catch (const Failure &failure) {
    problem = "the memory of rank 0: " + failure.message;
  }
  raise(control->exchange({"the mapping of memory that ranks share"}, problem, deadline));
  return std::make_unique<SharedCommunicator>(std::move(control), std::move(own), std::move(facts),
                                              std::move(meetings), sharing);
}

} // namespace shardc::rt
