// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives by operations over dense blocks, which is what communication libraries offer.
#ifndef SHARDC_RUNTIME_COMM_FLATTRANSPORT_H
#define SHARDC_RUNTIME_COMM_FLATTRANSPORT_H

#include "runtime/comm/Transport.h"
#include "runtime/support/Memory.h"

namespace shardc::rt {

/// Turns a collective over tensors, dims and uneven shards into transfers of dense blocks
/// (shardrt_transfer), one operand after the other. Blocks that are strided in a tensor are packed
/// into memory that it keeps. What the library does not offer is made of all-to-alls; sums then run
/// in order of positions, as between ranks that share memory, to the same bits.
class FlatTransport : public HostTransport {
public:
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override;

protected:
  /// Whether `transfer` does this kind for this type and reduction; not asked about all-to-alls.
  virtual bool offers(uint32_t kind, shardrt_type type, uint32_t reduction) = 0;
  /// Called before the transfers of a call, for those who compare what members are in before any
  /// data moves. `signature` is a hash of all that they must agree on. Throws as `transfer`.
  virtual void meet(const CollectiveCall &call, uint64_t signature, Clock::time_point deadline) {}
  /// Throws Failure as HostTransport::run.
  virtual void transfer(const shardrt_transfer &transfer, Clock::time_point deadline) = 0;
  /// Gives every member the `counts[q]` elements of each member q, one behind the other.
  void gather(const CollectiveCall &call, shardrt_type type, const void *mine,
              const std::vector<int64_t> &counts, void *all, uint64_t signature,
              Clock::time_point deadline);
  /// Ends the world because members disagree about a collective, and throws Failure.
  [[noreturn]] virtual void disagree(const shardrt_collective &collective,
                                     const std::string &how) = 0;

private:
  class Operand;
  class CountCheck;

  shardrt_transfer begin(const CollectiveCall &call, uint32_t kind, shardrt_type type,
                         uint64_t signature);

  struct Blocks { ///< in elements, by position
    std::vector<int64_t> counts, offsets;
  };

  // Reused from call to call.
  Buffer packed, received;
  Blocks sent, got;
  std::vector<int32_t> members;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_FLATTRANSPORT_H
