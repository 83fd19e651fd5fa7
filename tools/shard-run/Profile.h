// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of modules, ops and collectives, and the memory of the rank that needs most, added up over
// ranks that may be other processes.
#ifndef SHARDC_TOOLS_SHARD_RUN_PROFILE_H
#define SHARDC_TOOLS_SHARD_RUN_PROFILE_H

#include "runtime/include/shardrt.h"

#include <map>
#include <string>

namespace shardc::run {

struct ProfileRow {
  double us = 0;
  int64_t count = 0;
  int64_t bytes = 0;
};
using ProfileTable = std::map<std::string, ProfileRow>;

struct Profile {
  ProfileTable modules, ops, collectives;
  double computeUs = 0, waitUs = 0, commUs = 0;
  shardrt_memory memory{}; ///< largest over ranks

  /// The events and the memory of a rank of this process.
  void add(const shardrt_model *model);
  void add(const Profile &other);

  /// For another process of the same program.
  std::string encode() const;
  /// Throws std::runtime_error if the text is none.
  static Profile decode(const std::string &text);
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_PROFILE_H
