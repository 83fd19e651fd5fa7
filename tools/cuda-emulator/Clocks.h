// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operations happen before which, and which of the others touch the same bytes.
//
// Every stream, and every branch of a graph, is a lane: its operations are numbered 1, 2, ... A
// clock says for each lane up to which number everything happens before. Two operations that touch
// a byte in common, one of which writes it, must be ordered, in whatever order they really ran.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_CLOCKS_H
#define SHARDC_TOOLS_CUDA_EMULATOR_CLOCKS_H

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace shardc::emulator {

class LaneClock {
public:
  uint64_t of(uint32_t lane) const { return lane < times.size() ? times[lane] : 0; }
  void set(uint32_t lane, uint64_t time);
  void join(const LaneClock &other);
  /// The earlier of both in each lane.
  void meet(const LaneClock &other);
  /// Whether everything that `other` knows of is known here.
  bool includes(const LaneClock &other) const;

private:
  std::vector<uint64_t> times;
};

struct ByteInterval {
  uint64_t begin, end;
  bool operator==(const ByteInterval &) const = default;
};

/// Bytes that an operation touches. `normalize` sorts and merges.
struct Effects {
  std::vector<ByteInterval> reads, writes;
  void normalize();
};

struct OperationRecord {
  std::string name;
  uint32_t lane = 0;
  int device = 0;  ///< on which it ran
  LaneClock clock; ///< its own number included
  Effects effects; ///< normalized
  uint64_t number() const { return clock.of(lane); }
};

struct Conflict {
  std::string other; ///< name of the operation that is not ordered with it
  bool thisWrites, otherWrites;
  ByteInterval bytes;
};

class HappensBefore {
public:
  /// Adds an operation that has run, and finds one that it must be ordered with but is not.
  std::optional<Conflict> add(OperationRecord record);
  /// Forgets operations that happen before everything to come. `known`, by device of the operation,
  /// is the meet of the clocks of what has not run yet and of what streams will inherit, on all
  /// devices that touch what it has touched.
  void forget(const std::vector<LaneClock> &known);
  /// Forgets what has touched some bytes.
  void forget(const ByteInterval &bytes);
  /// The same for bytes of a device that are released by who knows `known`, and all that has run on
  /// the device: finds an operation of another device that it does not know.
  std::optional<Conflict> release(const ByteInterval &bytes, const LaneClock &known, int device);
  void clear() { records.clear(); }
  size_t size() const { return records.size(); }

private:
  std::list<OperationRecord> records;
};

/// The first bytes that both have; both are normalized.
std::optional<ByteInterval> common(const std::vector<ByteInterval> &a,
                                   const std::vector<ByteInterval> &b);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_CLOCKS_H
