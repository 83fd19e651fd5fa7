// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The flight records of a world's ranks, merged: who was where when the world failed.
#ifndef SHARDC_RUNTIME_FLIGHT_POSTMORTEM_H
#define SHARDC_RUNTIME_FLIGHT_POSTMORTEM_H

#include "runtime/flight/FlightRecord.h"

#include <map>

namespace shardc::rt {

struct Postmortem {
  /// One collective as all its members recorded it.
  struct Call {
    FlightMembers members;
    uint64_t sequence = 0;
    std::map<uint32_t, FlightCollective> ranks; ///< those that recorded it

    int64_t firstBeginUs() const;
    /// Whether those that recorded it were in the same collective of the same run.
    bool agrees() const;
    /// "all_reduce.0 (down (model.py:27))"; where ranks disagree, that of the first.
    std::string text() const;
  };
  /// A rank that had begun fewer collectives of a group than another member, when the first rank
  /// failed.
  struct Behind {
    uint32_t rank = 0;
    FlightMembers members;
    uint64_t begun = 0, mostBegun = 0;
    std::string next; ///< the first collective that it had not begun; empty where nobody has it
  };

  uint32_t worldSize = 0;
  std::vector<FlightRecord> records; ///< by rank
  std::vector<uint32_t> missing;     ///< ranks without a record
  /// Index in `records` of the failure that the others follow from.
  size_t first = 0;
  std::vector<Call> calls; ///< in the order of their beginning
  std::vector<Behind> behind;
  std::optional<size_t> disagreement; ///< the first of `calls` that ranks disagree about

  const FlightRecord *of(uint32_t rank) const;
  /// Where a rank with a record was when the first one failed, in words.
  std::string whereabouts(const FlightRecord &record) const;
};

/// A record and the name of its file, for messages.
struct NamedRecord {
  std::string file;
  FlightRecord record;
};

/// Merges records. Those that are not of the newest world, or of a rank that has one already, are
/// left out and named in `problems`. Nothing if there is no record.
std::optional<Postmortem> mergeRecords(std::vector<NamedRecord> records,
                                       std::vector<std::string> &problems);

/// Reads the records (*.json) of a folder; files that are none are named in `problems`.
std::vector<NamedRecord> readRecords(const std::string &folder, std::vector<std::string> &problems);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_FLIGHT_POSTMORTEM_H
