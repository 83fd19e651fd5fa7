// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/CallRecord.h"

#include "runtime/support/Bytes.h"
#include "runtime/support/Fnv.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>

namespace shardc::rt {

namespace {

constexpr uint32_t noName = UINT32_MAX;

/// The fixed part of what members agree about.
struct Agreed {
  uint64_t run;
  uint32_t kind, reduction, root, pairs, operands;
  uint32_t name; ///< bytes, or noName
};
/// What follows for each operand, before its extents.
struct AgreedOperand {
  shardrt_collective_operand facts;
  uint64_t tables;
};

/// Extents of members are long in large groups, and equal: their sum stands for them.
uint64_t tablesSum(const CallOperand &operand) {
  Fnv hash;
  if (!operand.isExchange())
    for (const std::vector<int64_t> *table : {&operand.gather, &operand.scatter}) {
      hash.addWhole(table->size());
      for (int64_t extent : *table)
        hash.addWhole(uint64_t(extent));
    }
  return hash.value();
}

ByteSource sourceOf(std::span<const uint8_t> part) {
  return ByteSource({reinterpret_cast<const char *>(part.data()), part.size()});
}

/// -1 if an extent is negative, or they are too large.
int64_t sum(const std::vector<int64_t> &extents) {
  int64_t total = 0;
  for (int64_t extent : extents)
    if (extent < 0 || __builtin_add_overflow(total, extent, &total))
      return -1;
  return total;
}

bool equal(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace

/// Appends to memory that is known to be large enough.
class RecordWriter::Cursor {
public:
  Cursor(std::vector<uint8_t> &data, size_t most) : data(data) {
    if (data.size() < most)
      data.resize(2 * most);
    at = data.data() + sizeof(RecordHeader);
  }

  void put(const void *from, size_t count) {
    if (count > 0)
      std::memcpy(at, from, count);
    at += count;
  }
  template <typename T> void put(const T &value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  /// Bytes since the last time.
  uint32_t part() {
    auto end = size_t(at - data.data());
    return uint32_t(end - std::exchange(begin, end));
  }

private:
  std::vector<uint8_t> &data;
  uint8_t *at;
  size_t begin = sizeof(RecordHeader);
};

void RecordWriter::finish(RecordHeader header) {
  header.bytes =
      uint32_t(sizeof header) + header.topic + header.agreed + header.own + header.location;
  std::memcpy(data.data(), &header, sizeof header);
  size = header.bytes;
}

void RecordWriter::topic(std::string_view name, std::string_view said) {
  Cursor cursor(data, sizeof(RecordHeader) + name.size() + said.size());
  RecordHeader header;
  cursor.put(name.data(), name.size());
  header.topic = cursor.part();
  cursor.put(said.data(), said.size());
  header.own = cursor.part();
  finish(header);
}

void RecordWriter::call(const CollectiveCall &call, std::span<const OperandPlaces> places) {
  const shardrt_collective &c = *call.collective;
  size_t name = c.name ? std::strlen(c.name) : 0,
         location = c.location ? std::strlen(c.location) : 0;
  size_t tables = 2 * call.group->size() * sizeof(int64_t);
  Cursor cursor(data,
                sizeof(RecordHeader) + sizeof(Agreed) + name + location +
                    2 * sizeof(uint32_t) * c.n_pairs +
                    call.operands.size() * (sizeof(AgreedOperand) + sizeof(Extents) +
                                            sizeof(OperandPlaces) + sizeof(int64_t) + tables));
  cursor.put(Agreed{call.run, c.kind, c.reduction, c.root, c.n_pairs, c.n_operands,
                    c.name ? uint32_t(name) : noName});
  for (const CallOperand &operand : call.operands) {
    cursor.put(AgreedOperand{*operand.facts, tablesSum(operand)});
    if (!operand.isExchange()) {
      cursor.put(operand.extents.data(), sizeof(int64_t) * operand.shape().size());
      continue;
    }
    Extents extents = operand.extents;
    extents[size_t(operand.facts->gather_dim)] = 0; // each member's own
    cursor.put(extents.data(), sizeof(int64_t) * operand.shape().size());
  }
  cursor.put(c.permutation, sizeof(uint32_t) * 2 * c.n_pairs);
  cursor.put(c.name, name);
  RecordHeader header;
  header.agreed = cursor.part();
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const CallOperand &operand = call.operands[i];
    for (const SharedPlace &place : {places[i].in, places[i].out}) {
      cursor.put(place.segment);
      cursor.put(place.offset);
    }
    if (!operand.isExchange())
      continue;
    cursor.put(operand.extents[size_t(operand.facts->gather_dim)]);
    for (const std::vector<int64_t> *table : {&operand.gather, &operand.scatter})
      cursor.put(table->data(), sizeof(int64_t) * table->size());
  }
  header.own = cursor.part();
  cursor.put(c.location, location);
  header.location = cursor.part();
  finish(header);
}

std::optional<RecordView> RecordView::of(std::span<const uint8_t> bytes) {
  RecordHeader header;
  if (bytes.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  uint64_t sum = sizeof header + uint64_t(header.topic) + header.agreed + header.own +
                 uint64_t(header.location);
  if (header.bytes > bytes.size() || header.bytes != sum)
    return std::nullopt;
  RecordView view;
  size_t at = sizeof header;
  for (auto [part, count] :
       {std::pair(&view.topicPart, header.topic), std::pair(&view.agreed, header.agreed),
        std::pair(&view.own, header.own), std::pair(&view.locationPart, header.location)}) {
    *part = bytes.subspan(at, count);
    at += count;
  }
  return view;
}

bool ForeignCall::read(const RecordView &record, const RecordView &own,
                       const CollectiveCall &mine) {
  call.group = view.get();
  if (equal(record.agreed, own.agreed)) {
    call.run = mine.run;
    // Mostly it is as it was; places come with each record.
    if (call.collective != mine.collective || !equal(known, own.agreed)) {
      known.assign(own.agreed.begin(), own.agreed.end());
      call.collective = mine.collective;
      call.operands = mine.operands;
    }
  } else if (!readAgreed(record, mine)) {
    return false;
  }
  return readOwn(record);
}

bool ForeignCall::readAgreed(const RecordView &record, const CollectiveCall &mine) {
  ByteSource reader = sourceOf(record.agreed);
  Agreed fixed;
  if (!reader.take(fixed) || fixed.operands > record.agreed.size() ||
      fixed.pairs > record.agreed.size())
    return false;
  known.clear();
  call.run = fixed.run;
  call.operands.assign(fixed.operands, {});
  facts.resize(fixed.operands);
  for (size_t i = 0; i < fixed.operands; ++i) {
    AgreedOperand head;
    CallOperand &operand = call.operands[i];
    if (!reader.take(head))
      return false;
    const shardrt_collective_operand &f = facts[i] = head.facts;
    if (f.rank < 0 || f.rank > SHARDRT_MAX_RANK || f.gather_dim < -1 || f.gather_dim >= f.rank ||
        f.scatter_dim < -1 || f.scatter_dim >= f.rank || typeBytes(f.type) == 0)
      return false;
    operand.facts = &f;
    operand.elementBytes = typeBytes(f.type);
    if (!reader.take(operand.extents.data(), sizeof(int64_t) * size_t(f.rank)))
      return false;
    // The members' extents themselves were not told: equal sums stand for equal ones.
    if (operand.isExchange())
      continue;
    if (i < mine.operands.size() && tablesSum(mine.operands[i]) == head.tables) {
      operand.gather = mine.operands[i].gather;
      operand.scatter = mine.operands[i].scatter;
    } else {
      operand.gather.assign(1, int64_t(head.tables));
    }
  }
  if (!reader.take(pairs, 2 * size_t(fixed.pairs)) ||
      (fixed.name != noName && !reader.take(name, fixed.name)) || !reader.atEnd())
    return false;
  location = record.location();
  desc = {fixed.name == noName ? nullptr : name.c_str(),
          location.c_str(),
          facts.data(),
          pairs.data(),
          fixed.kind,
          fixed.reduction,
          0,
          fixed.operands,
          fixed.root,
          fixed.pairs,
          0};
  call.collective = &desc;
  return true;
}

bool ForeignCall::readOwn(const RecordView &record) {
  ByteSource reader = sourceOf(record.own);
  where.resize(call.operands.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    CallOperand &operand = call.operands[i];
    operand.in = operand.out = nullptr;
    for (SharedPlace *place : {&where[i].in, &where[i].out})
      if (!reader.take(place->segment) || !reader.take(place->offset))
        return false;
    if (!operand.isExchange())
      continue;
    int64_t &extent = operand.extents[size_t(operand.facts->gather_dim)];
    if (!reader.take(extent) || !reader.take(operand.gather, view->size()) ||
        !reader.take(operand.scatter, view->size()) || sum(operand.gather) < 0 ||
        sum(operand.scatter) < 0 || sum(operand.scatter) > extent)
      return false;
  }
  return reader.atEnd();
}

} // namespace shardc::rt
