// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank's call of a collective as bytes that other processes can read: pointers and the tables of
// the artifact mean nothing to them.
#ifndef SHARDC_RUNTIME_SHARED_CALLRECORD_H
#define SHARDC_RUNTIME_SHARED_CALLRECORD_H

#include "runtime/comm/Call.h"
#include "runtime/shared/SegmentHeap.h"

#include <memory>
#include <optional>
#include <string_view>

namespace shardc::rt {

/// Where one operand is in its owner's segments; none where others need not reach it.
struct OperandPlaces {
  SharedPlace in, out;
};

/// Begins every record; the parts follow in this order.
struct RecordHeader {
  uint32_t bytes = 0;  ///< of the record
  uint32_t topic = 0;  ///< of the name of a topic; 0: a collective
  uint32_t agreed = 0; ///< what is equal on all members, if they agree
  uint32_t own =
      0; ///< each member's own: places, and counts of exchanges; of a topic: what it says
  uint32_t location = 0; ///< source position, for messages
};

/// Writes records; reuses its memory.
class RecordWriter {
public:
  /// What this rank says about a topic.
  void topic(std::string_view name, std::string_view said);
  void call(const CollectiveCall &call, std::span<const OperandPlaces> places);
  std::span<const uint8_t> bytes() const { return {data.data(), size}; }

private:
  class Cursor;
  void finish(RecordHeader header);

  std::vector<uint8_t> data;
  size_t size = 0; ///< of the record in it
};

/// A record of another rank, or this one's own. Its lengths are checked before anything is read.
class RecordView {
public:
  /// Nothing if these bytes do not begin with a whole record.
  static std::optional<RecordView> of(std::span<const uint8_t> bytes);

  std::string_view topic() const { return text(topicPart); } ///< empty: a collective
  std::string_view location() const { return text(locationPart); }

  std::span<const uint8_t> topicPart, agreed, own, locationPart;

private:
  static std::string_view text(std::span<const uint8_t> part) {
    return {reinterpret_cast<const char *>(part.data()), part.size()};
  }
};

/// Another member's call, as this rank makes it of a record. Kept from call to call.
class ForeignCall {
public:
  /// `member` is the other's position, in a group of its own view.
  explicit ForeignCall(std::unique_ptr<Group> view) : view(std::move(view)) {}

  /// `own` is the record of this rank's call `mine`. False if the record makes no sense. Operands
  /// are null until they are placed.
  bool read(const RecordView &record, const RecordView &own, const CollectiveCall &mine);

  const CollectiveCall &get() const { return call; }
  CollectiveCall &get() { return call; }
  const std::vector<OperandPlaces> &places() const { return where; }

private:
  bool readAgreed(const RecordView &record, const CollectiveCall &mine);
  bool readOwn(const RecordView &record);

  const std::unique_ptr<Group> view;
  CollectiveCall call;
  std::vector<uint8_t> known; ///< what was agreed when `call` was copied from this rank's own
  std::vector<OperandPlaces> where;
  // A descriptor of the other's, where it is not that of this rank's call.
  shardrt_collective desc{};
  std::vector<shardrt_collective_operand> facts;
  std::vector<uint32_t> pairs;
  std::string name, location;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_CALLRECORD_H
