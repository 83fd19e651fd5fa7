// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/SharedTransport.h"

#include "runtime/comm/Share.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace shardc::rt {

namespace {

constexpr size_t stageAlignment = 64;
constexpr size_t recordBytes = 4096;         ///< at first
constexpr size_t mostSaid = size_t(1) << 30; ///< by a rank, in an exchange

/// A place in the slot of a member.
constexpr uint32_t offsetBits = 48;
uint64_t packed(const SharedPlace &place) {
  return uint64_t(place.segment) << offsetBits | place.offset;
}
SharedPlace unpacked(uint64_t offer) {
  return {uint32_t(offer >> offsetBits), offer & ((uint64_t(1) << offsetBits) - 1)};
}

size_t inBytes(const CallOperand &operand, uint32_t position) {
  return size_t(operand.inElements(position) * operand.elementBytes);
}
size_t outBytes(const CallOperand &operand, uint32_t position, const shardrt_collective &c) {
  return size_t(operand.outElements(position, c) * operand.elementBytes);
}

/// Whether anybody reads the input of this member.
bool isRead(const shardrt_collective &c, uint32_t position) {
  if (c.kind == SHARDRT_BROADCAST)
    return position == c.root;
  if (c.kind != SHARDRT_PERMUTE)
    return true;
  for (uint32_t i = 0; i < c.n_pairs; ++i)
    if (c.permutation[2 * i] == position)
      return true;
  return false;
}

} // namespace

/// With the members' calls as this rank reads them.
class SharedTransport::SharedGroup : public MeetingGroup {
public:
  SharedGroup(std::unique_ptr<MeetingGroup> meeting)
      : MeetingGroup(meeting->members, meeting->position, meeting->place, meeting->slots.data()),
        records(members.size()) {
    for (uint32_t member = 0; member < members.size(); ++member)
      foreign.emplace_back(std::make_unique<Group>(members, member));
  }

  std::vector<RecordView> records; ///< while the members come together
  std::deque<ForeignCall> foreign; ///< what they point to stays
  bool reachesOutputs = true;      ///< of all `calls`
};

SharedTransport::SharedTransport(SharedWorld &world, SegmentHeap &heap, uint32_t self)
    : DirectTransport(world, self), shared(world), heap(heap) {}

std::unique_ptr<MeetingGroup> SharedTransport::makeGroup(std::vector<uint32_t> members,
                                                         uint32_t position) {
  return std::make_unique<SharedGroup>(shared.group(std::move(members), position));
}

/// Copies the writer's record to where the others can read it; nobody reads the last one any more.
uint64_t SharedTransport::show() {
  std::span<const uint8_t> bytes = writer.bytes();
  if (record.size() < bytes.size()) {
    record.reserve(heap.allocator(), std::max(2 * bytes.size(), recordBytes), stageAlignment,
                   "what a rank shows of its collectives");
    recordPlace = *heap.find(record.data(), record.size());
  }
  std::memcpy(record.data(), bytes.data(), bytes.size());
  return packed(recordPlace);
}

std::vector<std::string> SharedTransport::exchange(MeetingGroup &everybody, const Topic &topic,
                                                   std::string_view mine,
                                                   Clock::time_point deadline) {
  const Activity activity{topic.name, nullptr, topic.run};
  if (mine.size() > mostSaid)
    world.fail(everybody, activity, SHARDRT_INVALID_ARGUMENT,
               std::to_string(mine.size()) + " bytes are too many for an exchange");
  writer.topic(topic.name, mine);
  std::vector<std::string> all(everybody.size());
  comeTogether(everybody, show(), activity, deadline, [&] {
    for (size_t rank = 0; rank < all.size(); ++rank) {
      std::span<const uint8_t> said = static_cast<SharedGroup &>(everybody).records[rank].own;
      all[rank].assign(reinterpret_cast<const char *>(said.data()), said.size());
    }
  });
  return all;
}

Clock::time_point SharedTransport::run(const CollectiveCall &call, Clock::time_point deadline) {
  if (call.group->size() == 1) {
    const CollectiveCall *alone = &call;
    performShare({&alone, 1}, 0);
    return Clock::now();
  }
  shared.noteCollective(call.collective);
  struct Leave {
    SharedWorld &world;
    ~Leave() { world.noteCollective(nullptr); }
  } leave{shared};
  const CollectiveCall &reachable = stage(call);
  writer.call(reachable, places);
  Clock::time_point arrived = runTogether(reachable, show(), deadline);
  returnStaged(call);
  done.collectives.fetch_add(1, std::memory_order_relaxed);
  return arrived;
}

/// As SegmentHeap::find, without its lock for segments that are known.
std::optional<SharedPlace> SharedTransport::placeOf(const void *data, size_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(data);
  for (const Known &known : ownSegments)
    if (begin >= known.begin && begin < known.end && bytes <= known.end - begin)
      return SharedPlace{known.segment, begin - known.begin};
  std::optional<SharedPlace> found = heap.find(data, bytes);
  if (found) {
    uintptr_t base = begin - found->offset;
    ownSegments.push_back({base, base + heap.segmentBytes(found->segment), found->segment});
  }
  return found;
}

/// Finds out where the operands are for others, and copies inputs that are elsewhere. Returns the
/// call with the operands that the members work on.
const CollectiveCall &SharedTransport::stage(const CollectiveCall &call) {
  const shardrt_collective &c = *call.collective;
  const uint32_t position = call.group->position;
  // Everybody writes to the outputs of a reduction, and the last to arrive to those of all. Where
  // there is much to copy, each does its own part.
  bool written = c.kind == SHARDRT_ALL_REDUCE || lastDoesAll(call);
  bool worthCopying = c.kind == SHARDRT_ALL_REDUCE || world.sharing == Sharing::Last ||
                      call.fullBytes() <= bytesWorthSharing;
  bool read = isRead(c, position);
  size_t total = 0;
  places.assign(call.operands.size(), {});
  staged.clear();
  auto add = [&](size_t i, bool output, size_t bytes) {
    staged.push_back({i, output, total, bytes});
    total += (bytes + stageAlignment - 1) / stageAlignment * stageAlignment;
  };
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const CallOperand &operand = call.operands[i];
    size_t in = read ? inBytes(operand, position) : 0, out = outBytes(operand, position, c);
    if (in > 0) {
      if (std::optional<SharedPlace> found = placeOf(operand.in, in))
        places[i].in = *found;
      else
        add(i, false, in);
    }
    if (out > 0 && written) {
      if (std::optional<SharedPlace> found = placeOf(operand.out, out))
        places[i].out = *found;
      else if (worthCopying && operand.in == operand.out && in == out)
        staged.push_back({i, true, staged.back().offset, out});
      else if (worthCopying)
        add(i, true, out);
    }
  }
  if (staged.empty())
    return call;
  stageMemory.reserve(heap.allocator(), total, stageAlignment, "operands of a collective");
  SharedPlace begin = *heap.find(stageMemory.data(), total);
  moved = call;
  for (const Staged &one : staged) {
    CallOperand &operand = moved.operands[one.operand];
    uint8_t *data = stageMemory.data() + one.offset;
    SharedPlace there{begin.segment, begin.offset + one.offset};
    if (one.output) {
      operand.out = data;
      places[one.operand].out = there;
      continue;
    }
    std::memcpy(data, operand.in, one.bytes);
    operand.in = data;
    places[one.operand].in = there;
  }
  return moved;
}

void SharedTransport::returnStaged(const CollectiveCall &call) {
  uint64_t bytes = 0;
  for (const Staged &one : staged) {
    bytes += one.bytes;
    if (one.output)
      std::memcpy(call.operands[one.operand].out, stageMemory.data() + one.offset, one.bytes);
  }
  done.staged.fetch_add(bytes, std::memory_order_relaxed);
}

/// What a member shows.
std::optional<RecordView> SharedTransport::recordOf(const MeetingGroup &group, size_t member,
                                                    Clock::time_point deadline) {
  if (member == group.position)
    return RecordView::of(writer.bytes());
  SharedPlace at = unpacked(group.slots[member].offer);
  const Mapping &memory = shared.segment(group.members[member], at.segment, deadline);
  if (!memory.has(at.offset, 0))
    return std::nullopt;
  return RecordView::of({memory.data() + at.offset, memory.size() - at.offset});
}

/// Runs `body` for a member, which returns what is wrong with what it shows, or throws what keeps
/// this rank from looking at it.
template <typename Body>
void SharedTransport::lookAt(const MeetingGroup &group, size_t member, const Activity &activity,
                             Body body) {
  auto fail = [&](shardrt_status status, const std::string &problem) {
    world.fail(group, activity, status,
               "the memory of rank " + std::to_string(group.members[member]) + ": " + problem);
  };
  const char *problem = nullptr;
  try {
    problem = body();
  } catch (const Failure &failure) {
    if (world.givenUp())
      world.failAborted(group, activity);
    fail(failure.status, failure.message);
  }
  if (problem)
    fail(SHARDRT_ABORTED, problem);
}

void SharedTransport::look(MeetingGroup &meeting, const Activity &activity,
                           Clock::time_point deadline) {
  auto &group = static_cast<SharedGroup &>(meeting);
  for (size_t i = 0; i < group.size(); ++i)
    lookAt(group, i, activity, [&]() -> const char * {
      std::optional<RecordView> found = recordOf(group, i, deadline);
      if (!found)
        return "what it shows makes no sense";
      group.records[i] = *found;
      return nullptr;
    });
}

std::string_view SharedTransport::purposeOf(const MeetingGroup &group, size_t member) {
  std::string_view topic = static_cast<const SharedGroup &>(group).records[member].topic();
  return topic.empty() ? collectivePurpose : topic;
}

void SharedTransport::collect(MeetingGroup &meeting, const CollectiveCall &mine,
                              const Activity &activity, Clock::time_point deadline) {
  auto &group = static_cast<SharedGroup &>(meeting);
  group.reachesOutputs = true;
  const RecordView &own = group.records[group.position];
  for (size_t i = 0; i < group.size(); ++i) {
    if (i == group.position) {
      group.calls[i] = &mine;
      continue;
    }
    ForeignCall &foreign = group.foreign[i];
    group.calls[i] = &foreign.get();
    lookAt(group, i, activity, [&]() -> const char * {
      if (!foreign.read(group.records[i], own, mine))
        return "the call that it shows makes no sense";
      // Of a call that differs nothing will be read.
      if (foreign.get().collective == mine.collective && !place(group, i, deadline))
        return "an operand that it shows is not there";
      return nullptr;
    });
  }
}

/// Gives the operands of a member's call addresses of this process. False if they are not where
/// they are said to be.
bool SharedTransport::place(SharedGroup &group, size_t member, Clock::time_point deadline) {
  ForeignCall &foreign = group.foreign[member];
  const shardrt_collective &c = *foreign.get().collective;
  auto position = uint32_t(member);
  auto address = [&](const SharedPlace &at, const Extents &shape, const CallOperand &operand,
                     bool needed, uint8_t *&out) -> bool {
    out = nullptr;
    int64_t bytes = checkedBytes(shape.data(), size_t(operand.facts->rank), operand.elementBytes);
    if (bytes <= 0 || at.segment == SharedPlace::none)
      return bytes == 0 || (bytes > 0 && !needed);
    const Mapping &memory = shared.segment(group.members[member], at.segment, deadline);
    out = memory.data() + at.offset;
    return memory.has(at.offset, uint64_t(bytes)) &&
           at.offset % uint64_t(operand.elementBytes) == 0;
  };
  for (size_t i = 0; i < foreign.places().size(); ++i) {
    CallOperand &operand = foreign.get().operands[i];
    uint8_t *in = nullptr, *out = nullptr;
    const OperandPlaces &at = foreign.places()[i];
    if (!address(at.in, operand.inShape(position), operand, isRead(c, position), in) ||
        !address(at.out, operand.outShape(position, c), operand, c.kind == SHARDRT_ALL_REDUCE, out))
      return false;
    operand.in = in;
    operand.out = out;
    if (!out && outBytes(operand, position, c) > 0)
      group.reachesOutputs = false;
  }
  return true;
}

bool SharedTransport::reachesOutputs(const MeetingGroup &group) {
  return static_cast<const SharedGroup &>(group).reachesOutputs;
}

} // namespace shardc::rt
