// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How processes that share memory see each other's calls and operands.
#ifndef SHARDC_RUNTIME_SHARED_SHAREDTRANSPORT_H
#define SHARDC_RUNTIME_SHARED_SHAREDTRANSPORT_H

#include "runtime/comm/Direct.h"
#include "runtime/shared/CallRecord.h"
#include "runtime/shared/SharedWorld.h"

namespace shardc::rt {

/// Each rank shows its calls as records in its own segments. Operands that lie in these are reached
/// by others where they are. Others (the caller's tensors in place, mapped files) are copied:
/// inputs to a segment before the rank arrives, outputs from it afterwards.
class SharedTransport final : public DirectTransport {
public:
  SharedTransport(SharedWorld &world, SegmentHeap &heap, uint32_t self);

  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override;
  MeetingGroup &group(std::span<const uint32_t> members) { return groupOf(members); }
  /// Comes together with all ranks for a topic. Returns what each of them says.
  std::vector<std::string> exchange(MeetingGroup &everybody, const Topic &topic,
                                    std::string_view mine, Clock::time_point deadline);

  /// What it has done so far.
  struct Counts {
    std::atomic<uint64_t> collectives{0}; ///< of several members
    std::atomic<uint64_t> staged{0};      ///< bytes copied because they were elsewhere
  };
  const Counts &counts() const { return done; }

private:
  class SharedGroup;

  std::unique_ptr<MeetingGroup> makeGroup(std::vector<uint32_t> members,
                                          uint32_t position) override;
  void look(MeetingGroup &group, const Activity &activity, Clock::time_point deadline) override;
  std::string_view purposeOf(const MeetingGroup &group, size_t member) override;
  void collect(MeetingGroup &group, const CollectiveCall &mine, const Activity &activity,
               Clock::time_point deadline) override;
  bool reachesOutputs(const MeetingGroup &group) override;

  uint64_t show();
  std::optional<RecordView> recordOf(const MeetingGroup &group, size_t member,
                                     Clock::time_point deadline);
  template <typename Body>
  void lookAt(const MeetingGroup &group, size_t member, const Activity &activity, Body body);
  bool place(SharedGroup &group, size_t member, Clock::time_point deadline);
  std::optional<SharedPlace> placeOf(const void *data, size_t bytes);
  const CollectiveCall &stage(const CollectiveCall &call);
  void returnStaged(const CollectiveCall &call);

  SharedWorld &shared;
  SegmentHeap &heap;
  Counts done;
  RecordWriter writer;
  Buffer record; ///< what the others read of the writer's
  SharedPlace recordPlace;
  /// Segments of the heap that operands were found in.
  struct Known {
    uintptr_t begin, end;
    uint32_t segment;
  };
  std::vector<Known> ownSegments;
  // Of the call in progress.
  std::vector<OperandPlaces> places;
  CollectiveCall moved; ///< with operands in the stage
  Buffer stageMemory;
  struct Staged {
    size_t operand;
    bool output;
    size_t offset, bytes;
  };
  std::vector<Staged> staged;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SHAREDTRANSPORT_H
