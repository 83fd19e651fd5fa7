// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfers by MPI's non-blocking collectives.
#ifndef SHARDC_RUNTIME_PLUGINS_MPI_COLLECTIVES_H
#define SHARDC_RUNTIME_PLUGINS_MPI_COLLECTIVES_H

#include "runtime/plugins/Plugin.h"

#include <functional>
#include <mpi.h>
#include <vector>

namespace shardc::plugin {

/// One transfer over the communicator of its group, by position.
class Transfer {
public:
  /// MPI counts in `int`. What is larger than `most` elements moves in pieces of so many.
  Transfer(const shardrt_transfer &transfer, MPI_Comm group, std::function<bool()> stop,
           int64_t most);
  /// Returns when it is done. Throws Failure.
  void run();

private:
  void allToAll();
  void allGather();
  void broadcast();
  void allReduce();
  void reduceScatter();

  /// Blocks of each member as MPI_Ialltoallw takes them: a count of elements where that is enough,
  /// else one piece of a type made for it.
  class Blocks;
  void exchange(const int64_t *sendCounts, const int64_t *sendOffsets, const int64_t *receiveCounts,
                const int64_t *receiveOffsets);
  template <typename Begin> void perform(const char *function, int64_t elements, Begin begin);
  char *at(void *base, int64_t element) const {
    return static_cast<char *>(base) + element * width;
  }

  const shardrt_transfer &t;
  const MPI_Comm group;
  const std::function<bool()> stop;
  const int64_t most, width;
  std::vector<MPI_Request> requests;
};

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_MPI_COLLECTIVES_H
