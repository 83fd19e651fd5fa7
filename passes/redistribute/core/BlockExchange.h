// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who sends what to whom when the blocks that ranks hold become other blocks (R3): every rank gets
// the intersections of what it needs with what others hold, each element from one of them, and
// nothing that it holds already. Where several ranks hold the same block, the ones that need it are
// shared out among them.
//
// Ranks may hold nothing before or after (L5). All tensors are without partial values.
#ifndef SHARDC_PASSES_REDISTRIBUTE_CORE_BLOCKEXCHANGE_H
#define SHARDC_PASSES_REDISTRIBUTE_CORE_BLOCKEXCHANGE_H

#include "dialects/sharding/RedistributeStep.h"

namespace shardc {

/// What one rank holds: for each dim the global indices, as maximal intervals in local order.
/// Nothing at all for a rank outside the mesh.
using HeldBlock = std::optional<std::vector<std::vector<Run>>>;

/// Elements of `held` that are in `wanted` as well, as intervals of local indices of `held`.
std::vector<Run> localIntersection(std::span<const Run> held, std::span<const Run> wanted);
int64_t sizeOf(std::span<const Run> runs);
int64_t numElements(const std::vector<std::vector<Run>> &block);
/// Elements that two blocks have in common.
int64_t numCommon(const std::vector<std::vector<Run>> &a, const std::vector<std::vector<Run>> &b);

/// An exchange among `n` participants, which are named by position. Before it, the participants'
/// distinct blocks tile the tensor: along each dim they are `parts(dim)`, in order of their first
/// element, and every combination of parts is a cell.
class BlockExchange {
public:
  BlockExchange(std::vector<HeldBlock> before, std::vector<HeldBlock> after);

  size_t size() const { return before.size(); }
  size_t rank() const { return parts_.size(); }
  const std::vector<std::vector<Run>> &parts(size_t dim) const { return parts_[dim]; }

  /// The position that sends `to` its share of a cell (a part for each dim); `to` itself where it
  /// holds the cell, nothing where it needs nothing of it.
  std::optional<size_t> source(size_t to, std::span<const size_t> cell) const;
  /// What `from` sends to `to` (or keeps, where they are one): intervals of its local indices for
  /// each dim; nothing where there is nothing.
  std::optional<std::vector<std::vector<Run>>> message(size_t from, size_t to) const;
  /// Elements of that message.
  int64_t messageSize(size_t from, size_t to) const;
  /// The most elements that a participant sends, or receives, from itself aside.
  int64_t largestTraffic() const;

  const HeldBlock &blockBefore(size_t position) const { return before[position]; }
  const HeldBlock &blockAfter(size_t position) const { return after[position]; }

private:
  size_t cellIndex(std::span<const size_t> cell) const;

  std::vector<HeldBlock> before, after;
  std::vector<std::vector<std::vector<Run>>> parts_; ///< [dim][part]
  std::vector<std::optional<size_t>> cellOf;         ///< [position]; nothing: holds no element
  std::vector<std::vector<int64_t>> sources;         ///< [position][cell]; -1: nothing needed
};

/// The exchanges of a step, one for each group. Blocks have the dims of `exchangedDims` only, in
/// their order; along the others every message is the whole of what a rank has.
struct GroupExchange {
  /// Positions in `mesh` of the members, in order.
  std::vector<int64_t> positions;
  BlockExchange exchange;
};
struct StepExchange {
  Mesh from, to; ///< of the layouts before and after
  /// The step's own mesh; between two meshes, all ranks of either in a row.
  Mesh mesh;
  std::vector<unsigned> axes; ///< of `mesh`, over which groups are formed
  std::vector<int64_t> dims;
  std::vector<GroupExchange> groups;

  /// Whether any element goes from one rank to another.
  bool crosses() const;
};
/// The sizes of the exchanged dims must be known (SymbolicExchange.h is for others).
StepExchange makeExchange(const RedistributeStep &step, std::span<const int64_t> shape);

/// Source and target positions of a permute that does the exchange: where in every group the same
/// positions send all that they have to the same one other, who needs nothing else, and all blocks
/// have one size. Nothing where messages must be cut.
std::optional<std::vector<int64_t>> permutationOf(const StepExchange &exchange);

/// Whether each rank has one message for all ranks of its group, itself included: an all-gather.
bool tellsAllTheSame(const StepExchange &exchange);

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_CORE_BLOCKEXCHANGE_H
