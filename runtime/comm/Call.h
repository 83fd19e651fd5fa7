// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One execution of a collective by one rank: the descriptor of the artifact with everything that
// varies from call to call, checked and copied, so that it may be run later by another thread.
#ifndef SHARDC_RUNTIME_COMM_CALL_H
#define SHARDC_RUNTIME_COMM_CALL_H

#include "runtime/abi/shardrt_program.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace shardc::rt {

class Group;

using Extents = std::array<int64_t, SHARDRT_MAX_RANK>;

struct CallOperand {
  const shardrt_collective_operand *facts = nullptr;
  int64_t elementBytes = 0;
  /// The full extents (shardrt_program.h).
  Extents extents{};
  /// Extents of the members on gather_dim and scatter_dim; empty where there is no such dim. Of an
  /// exchange: what this rank gets from each member, and what it gives to each.
  std::vector<int64_t> gather;
  std::vector<int64_t> scatter;
  const void *in = nullptr;
  void *out = nullptr;
  /// Of an exchange: the program has passed counts, which may be others in every call.
  bool ownCounts = false;

  std::span<const int64_t> shape() const { return {extents.data(), size_t(facts->rank)}; }
  /// Whether pieces are cut and concatenated along one dim (an all_to_all): extents are this rank's
  /// own then, and every pair of members has a count of its own.
  bool isExchange() const {
    return facts->gather_dim >= 0 && facts->gather_dim == facts->scatter_dim;
  }
  /// Shape of what member `position` gives and gets; of an exchange only this rank's own is known.
  Extents inShape(uint32_t position) const;
  Extents outShape(uint32_t position, const shardrt_collective &collective) const;
  int64_t inElements(uint32_t position) const;
  int64_t outElements(uint32_t position, const shardrt_collective &collective) const;
};

struct CollectiveCall {
  const shardrt_collective *collective = nullptr;
  Group *group = nullptr;
  /// Number of the run of the model that it belongs to, to tell apart ranks that are not in the
  /// same.
  uint64_t run = 0;
  std::vector<CallOperand> operands;

  /// Copies what the generated code passed. Returns what is wrong with it, or nothing. Keeps the
  /// capacity of what was there before.
  std::string assign(const shardrt_collective &collective, Group &group, uint64_t run,
                     const shardrt_collective_tensor *tensors);

  /// Bytes that this rank has to move on a ring, for link emulation and reports.
  int64_t wireBytes() const;
  /// Bytes of the operands on this rank.
  int64_t operandBytes() const;
  /// Bytes of the whole tensors: the same on all ranks.
  int64_t fullBytes() const;
};

/// What an exchange leaves of the room of its result, behind all that arrives.
struct ExchangeRest {
  void *begin = nullptr;
  size_t bytes = 0;
};
/// Of one tensor in a group of so many members. Throws Failure where more arrives than there is
/// room for.
ExchangeRest restOfExchange(const shardrt_collective &collective, uint32_t operand,
                            const shardrt_collective_tensor &tensor, uint32_t members);

/// The ordered members of one set of a group, and where this rank is among them. A communicator
/// derives from it what it needs to run collectives there.
class Group {
public:
  Group(std::vector<uint32_t> members, uint32_t position)
      : members(std::move(members)), position(position) {}
  virtual ~Group() = default;

  const std::vector<uint32_t> members;
  const uint32_t position;

  uint32_t size() const { return uint32_t(members.size()); }
};

const char *kindName(uint32_t kind);
const char *reductionName(uint32_t reduction);

/// "all_reduce.17 (model.layers.3, gpt.py:88)".
std::string describe(const shardrt_collective &collective);

/// All that is wrong with a descriptor in the artifact; `where` is prefixed. Sets of the group
/// may have different sizes: positions must exist in each.
void checkDescriptor(const shardrt_collective &collective, std::span<const shardrt_group> groups,
                     std::vector<std::string> &problems);

/// Where two ranks' calls, which meet in one group, differ; empty if they are the same collective.
/// What two members of an exchange give each other is compared as well: all pairs must be asked.
std::string difference(const CollectiveCall &a, const CollectiveCall &b);

/// Whether some operand is an exchange.
bool hasExchange(const CollectiveCall &call);

/// In an exchange, where what `from` gives differs from what `to` expects; empty if it does not.
/// Both are ranks, for the message.
std::string countDifference(size_t operand, uint32_t from, int64_t given, uint32_t to,
                            int64_t expected);

/// Source position of a permute's target, or -1.
int64_t permuteSource(const shardrt_collective &collective, uint32_t target);

/// The rule "chunk" (semantics.md L3): extents of n shards of a dim of N elements.
void chunkExtents(int64_t full, size_t members, std::vector<int64_t> &out);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_CALL_H
