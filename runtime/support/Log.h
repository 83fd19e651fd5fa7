// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_RUNTIME_SUPPORT_LOG_H
#define SHARDC_RUNTIME_SUPPORT_LOG_H

#include "runtime/include/shardrt.h"

#include <string>

namespace shardc::rt {

/// Where one rank's messages go.
class Log {
public:
  /// Without a function: lines on stderr.
  Log(int32_t level, int32_t rank, shardrt_log_fn function, void *context)
      : level(level), rank(rank), function(function), context(context) {}

  bool enabled(int32_t wanted) const { return wanted <= level; }
  void write(int32_t messageLevel, const std::string &message) const;

private:
  int32_t level;
  int32_t rank;
  shardrt_log_fn function;
  void *context;
};

/// The level that the environment's SHARDRT_LOG names (error, warning, info, debug), else warning.
int32_t defaultLogLevel();

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_LOG_H
