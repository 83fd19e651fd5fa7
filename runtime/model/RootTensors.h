// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that only rank 0 has (SHARDRT_ROOT): what the ranks tell each other about them before a
// run, and how the data goes from rank 0 to the ranks' parts and back.
#ifndef SHARDC_RUNTIME_MODEL_ROOTTENSORS_H
#define SHARDC_RUNTIME_MODEL_ROOTTENSORS_H

#include "runtime/comm/Communicator.h"
#include "runtime/executor/ProgramMemory.h"
#include "runtime/executor/Slice.h"

#include <functional>

namespace shardc::rt {

/// Whether some tensor of a call is on rank 0 only.
bool usesRoot(std::span<const shardrt_tensor> inputs, std::span<const shardrt_tensor> outputs);

/// What a rank says about a run before it.
struct RootStatement {
  /// Must be the same on all ranks.
  std::string entry, tensors;
  /// Why this rank cannot start; SHARDRT_OK: it can.
  shardrt_status status = SHARDRT_OK;
  std::string reason;
  /// Of rank 0: extents of its SHARDRT_ROOT inputs, in their order.
  std::vector<std::vector<int64_t>> extents;
  /// What else rank 0 tells the others.
  std::string note = {};

  /// "input 0, output 1"; "none".
  static std::string tensorsOf(std::span<const shardrt_tensor> inputs,
                               std::span<const shardrt_tensor> outputs);
  std::string encode() const;
  /// Throws Failure (SHARDRT_MISMATCH) where the text cannot be one.
  static RootStatement decode(std::string_view text, uint32_t rank);
};

/// Where ranks that can start disagree about the run; empty if they do not.
std::string rootDifferences(std::span<const RootStatement> everybody);

/// Moves one tensor after the other between the whole of it on rank 0 and the parts of all ranks.
/// All ranks make the same calls. Rank 0 packs parts into memory of a bounded size, however large
/// the tensor is: what does not fit goes in several rounds.
class RootMover {
public:
  /// Runs a collective over all ranks, in order; operands are in memory of the program.
  using Collective =
      std::function<void(const shardrt_collective &, const shardrt_collective_tensor &)>;

  RootMover(uint32_t self, ProgramMemory &memory, Buffer &packed, Collective collective,
            int64_t roundBytes = 8 << 20)
      : self(self), memory(memory), packed(packed), collective(std::move(collective)),
        roundBytes(roundBytes) {}

  /// By rank; nothing for one that gets nothing, or gives nothing.
  using Parts = std::span<const std::optional<Slice>>;
  /// `mine` is this rank's part (dense, complete on rank 0 before the call).
  /// `whole` is null elsewhere than on rank 0.
  void scatter(Parts parts, void *mine, const shardrt_tensor *whole, int64_t elementBytes);
  /// The same in the other direction. Rank 0's own part is not copied.
  void gather(Parts parts, const void *mine, const shardrt_tensor *whole, int64_t elementBytes);

private:
  void broadcast(const Slice &part, char *mine, const shardrt_tensor *whole, int64_t elementBytes);
  /// Moves the ranks' parts, cut in pieces, round by round.
  void move(Parts parts, bool toRoot, char *mine, const shardrt_tensor *whole,
            int64_t elementBytes);

  const uint32_t self;
  ProgramMemory &memory;
  Buffer &packed;
  const Collective collective;
  const int64_t roundBytes;
};

/// The caller's strides, or row-major ones.
std::vector<int64_t> stridesOf(const shardrt_tensor &tensor);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_ROOTTENSORS_H
