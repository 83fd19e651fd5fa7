// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which collectives may share a bucket, how large a bucket may grow, and what is reported about it.
// Rules B1 to B9 are those of docs/collective-optimiser.md.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_BUCKETS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_BUCKETS_H

#include "passes/collectives/core/Problem.h"

#include <optional>

namespace shardc::collectives {

/// How many bytes a bucket may hold (B2). The cap of bucket i of a key is entry i of the list, the
/// last entry for all that follow; without a list the cost model decides.
class BucketCaps {
public:
  /// The cost model decides.
  BucketCaps() = default;
  explicit BucketCaps(std::vector<double> mib) : mib(std::move(mib)) {}

  /// Parses "auto", "25" or "1,25" (MiB). Nothing, with `error` set, for anything else.
  static std::optional<BucketCaps> parse(std::string_view text, std::string &error);

  bool isAuto() const { return mib.empty(); }
  /// Whether all buckets have the same.
  bool isUniform() const { return mib.size() <= 1; }
  /// Bytes of the bucket with this index within its key.
  uint64_t bytesAt(uint32_t index) const;

private:
  std::vector<double> mib;
};

struct BucketOptions {
  BucketCaps caps;
  /// Gathers of different element types may share a bucket (B5).
  bool mixedDtype = false;
  /// Groups are compared by name even where their ranks are known, as plan files require.
  bool groupsByName = false;
};

/// Why a bucket did not take more members.
enum class CloseReason : uint8_t {
  /// No collective of its key was left.
  Complete,
  /// The next one did not fit under the cap.
  Cap,
  /// The others depend on a member, or were not ready when the bucket had to start.
  Dependence,
  /// A candidate depends on a member only through another bucket.
  Cycle,
  /// The memory limit.
  Memory,
  /// Exposed time would not have fallen.
  Cost,
  /// Whoever made the plan knows.
  Given,
};

/// Why a collective is in no bucket.
enum class AloneReason : uint8_t {
  Kind,       // all-to-all, broadcast and permute have no buckets
  OutBuffer,  // writes into a buffer of its own
  NotWaited,  // the program returns it in flight
  NoPartner,  // the only one of its key
  AboveCap,   // larger than the cap
  NoRoom,     // the next one did not fit under the cap with it
  Dependence, // no partner was ready in time
  Memory,     // a bucket would have exceeded the memory limit
  Cost,       // a bucket would not have reduced exposed time
  Given,      // whoever made the plan knows
};

/// One word: "cap".
std::string_view textOf(CloseReason reason);
/// A clause: "the next collective does not fit under the cap"; also of that word (empty for
/// others).
std::string_view sentenceOf(CloseReason reason);
std::string_view sentenceOf(std::string_view closed);
/// A clause: "it is larger than the bucket cap".
std::string_view textOf(AloneReason reason);

/// Gives every collective of a problem the key that decides who may share a bucket with it (B1).
class BucketKeys {
public:
  BucketKeys(const Problem &problem, const BucketOptions &options);

  /// `none` for tasks that can be in no bucket.
  uint32_t keyOf(TaskId task) const { return key[task]; }
  uint32_t numKeys() const { return tasksOfKey.size(); }
  /// In base order.
  std::span<const TaskId> tasksOf(uint32_t id) const { return tasksOfKey[id]; }
  /// Why keyOf is `none`.
  AloneReason reasonOf(TaskId task) const;

private:
  const Problem &problem;
  std::vector<uint32_t> key;
  std::vector<std::vector<TaskId>> tasksOfKey;
};

/// What copying into and out of a bucket costs for one member, in microseconds without launches.
double packUs(const Problem &problem, TaskId task, const cost::CostModel &model);
double unpackUs(const Problem &problem, TaskId task, const cost::CostModel &model);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_BUCKETS_H
