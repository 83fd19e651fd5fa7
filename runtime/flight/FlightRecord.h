// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank leaves behind when its run fails, as a file: where it was, and its last collectives.
#ifndef SHARDC_RUNTIME_FLIGHT_FLIGHTRECORD_H
#define SHARDC_RUNTIME_FLIGHT_FLIGHTRECORD_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::rt {

/// Ranks by position.
using FlightMembers = std::vector<uint32_t>;

/// Times are microseconds since 1970 by the host's clock (CLOCK_REALTIME).
struct FlightCollective {
  std::string name, location, kind;
  FlightMembers members;
  uint64_t sequence = 0; ///< among the collectives of these members on this rank, from 1
  uint64_t run = 0;
  int64_t bytes = 0; ///< of its operands on this rank
  int64_t beginUs = 0;
  std::optional<int64_t> endUs; ///< nothing: it was in progress
  std::string status;           ///< "ok", "timeout"; empty while in progress

  bool operator==(const FlightCollective &) const = default;
};

/// How many collectives of these members the rank has begun.
struct FlightGroup {
  FlightMembers members;
  uint64_t begun = 0;

  bool operator==(const FlightGroup &) const = default;
};

struct FlightRecord {
  uint32_t rank = 0, worldSize = 1;
  std::string host;
  int64_t pid = 0;
  std::string world; ///< tells launches apart; may be empty
  std::string artifact, artifactHash;
  uint64_t run = 0; ///< number of the run that failed
  int64_t writtenUs = 0;
  std::string status, message;
  std::string op, opLocation; ///< the last op that the rank began in this run; may be empty
  std::vector<FlightGroup> groups;
  std::vector<FlightCollective> collectives; ///< the last ones, oldest first

  bool operator==(const FlightRecord &) const = default;

  std::string json() const;
  /// Returns nothing, and says in `problem` why, where the text is no record.
  static std::optional<FlightRecord> parse(std::string_view text, std::string &problem);

  /// Writes rank-N.json in a folder, which is made if it is not there: a temporary file that is
  /// then renamed. Returns what went wrong, or nothing.
  std::string write(const std::string &folder) const;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_FLIGHT_FLIGHTRECORD_H
