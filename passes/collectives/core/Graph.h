// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with collectives as plain values: what the simulator, the bucketing and the scheduling
// of collectives look at. It is filled from the IR or from an imported graph and knows neither.
//
// Nodes run in the order in which they were added. A value is a tensor with a size in bytes, or a
// scalar (a symbolic size, a list), which only orders nodes. Every tensor lives in a storage named
// by its root value: views, waits and in-place ops share the storage of what they are made from.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_GRAPH_H
#define SHARDC_PASSES_COLLECTIVES_CORE_GRAPH_H

#include "passes/cost/core/CostModel.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::collectives {

using ValueId = uint32_t;
using NodeId = uint32_t;
using GroupId = uint32_t;

inline constexpr uint32_t none = UINT32_MAX;

enum class NodeClass : uint8_t {
  /// A kernel on the compute stream; its results are new storages.
  Compute,
  /// A kernel whose result i is tensor operand i, overwritten.
  InPlace,
  /// A view, free: its results share the storage of the first tensor operand.
  Alias,
  /// An allocation, free.
  Empty,
  /// Arithmetic on scalars, free.
  Scalar,
  /// The start of a collective. Its results may not be read before a wait.
  Collective,
  /// Waits for the collective behind its operands; result i is operand i, complete. Operands that
  /// no collective is pending on make it a no-op.
  Wait,
};

/// The ranks of a collective. Groups are told apart by `ranks` where they are known, else by
/// `name`.
struct Group {
  std::string name;
  uint32_t size = 1;
  /// `size` ranks. Where the ranks of the program form several groups side by side ([[0, 2], [1,
  /// 3]]): those of all of them, one group after the other; the first is priced.
  std::vector<int64_t> ranks;
  cost::Group shape() const {
    return {size, std::span(ranks).first(std::min<size_t>(ranks.size(), size))};
  }
};

/// What a caller says about a collective.
struct CollectiveInfo {
  CollectiveKind kind = CollectiveKind::AllGather;
  GroupId group = 0;
  /// The reduction and anything else that members of a bucket must share, interned by the caller's
  /// choice of text ("sum", "avg"); empty for kinds that move data only.
  std::string reduction;
  /// How many of the last tensor operands are buffers that the collective writes instead of
  /// allocating its results; result i then lives in buffer i. 0, or the number of results.
  uint32_t outBuffers = 0;
  /// By result: whether it lives in the storage of the operand of its position, which no other node
  /// uses. Empty where none does.
  std::vector<bool> inPlace = {};
  /// What `fullBytes` says, for a collective that moves something else than its operands: an
  /// all-to-all in which each pair of ranks has a count of its own.
  std::optional<uint64_t> fullBytes = {};
};

class Graph {
public:
  /// So that sums of bytes, and a part more than that, keep to 64 bits.
  static constexpr uint64_t mostBytes = 1000000000000000000;

  /// A communicator with a stream of its own.
  GroupId addGroup(Group group);
  /// The first group with these ranks, which must be known, or a new one: for programs in which
  /// equal ranks are one communicator, whatever their names.
  GroupId internGroup(Group group);
  /// A tensor of `bytes` bytes. `elementType` is any code; equal codes are equal types.
  ValueId addTensor(uint64_t bytes, uint32_t elementType = 0);
  ValueId addScalar();
  void addInput(ValueId value) { inputs.push_back(value); }
  void addOutput(ValueId value) { outputs.push_back(value); }

  /// Adds a node that is not a collective. Operands and results may mix tensors and scalars; their
  /// order counts where results share storage with operands. `durationUs` is the kernel's time
  /// without its launch; 0 for the free classes.
  NodeId addNode(NodeClass nodeClass, std::string name, std::span<const ValueId> operands,
                 std::span<const ValueId> results, double durationUs = 0);
  NodeId addCollective(const CollectiveInfo &info, std::string name,
                       std::span<const ValueId> operands, std::span<const ValueId> results);

  /// Derives storages and pending collectives and checks the graph. Call once, after the last node.
  /// Returns false with one message per mistake (value used before it exists or produced twice,
  /// wrong operand counts, unknown group, a collective's result read before its wait, a collective
  /// in place of what others use, storages that take more than `mostBytes` together).
  bool finalize(std::vector<std::string> &errors);

  size_t numNodes() const { return nodes.size(); }
  size_t numValues() const { return valueBytes.size(); }
  size_t numGroups() const { return groups.size(); }

  NodeClass classOf(NodeId node) const { return nodes[node].nodeClass; }
  bool isKernel(NodeId node) const {
    return classOf(node) == NodeClass::Compute || classOf(node) == NodeClass::InPlace;
  }
  bool isCollective(NodeId node) const { return classOf(node) == NodeClass::Collective; }
  bool isFree(NodeId node) const {
    NodeClass c = classOf(node);
    return c == NodeClass::Alias || c == NodeClass::Empty || c == NodeClass::Scalar;
  }
  const std::string &nameOf(NodeId node) const { return names[node]; }
  double durationUs(NodeId node) const { return nodes[node].durationUs; }
  void setDurationUs(NodeId node, double us) { nodes[node].durationUs = us; }

  /// Tensor operands and results, in order.
  std::span<const ValueId> operands(NodeId node) const;
  std::span<const ValueId> results(NodeId node) const;
  std::span<const ValueId> scalarOperands(NodeId node) const;
  std::span<const ValueId> scalarResults(NodeId node) const;

  /// Collectives only.
  CollectiveKind kindOf(NodeId node) const { return nodes[node].kind; }
  GroupId groupOf(NodeId node) const { return nodes[node].group; }
  const Group &group(GroupId id) const { return groups[id]; }
  uint32_t outBuffers(NodeId node) const { return nodes[node].outBuffers; }
  /// Whether a result of a collective lives in the storage of its operand.
  bool isInPlace(ValueId result) const { return valueIsInPlace[result]; }
  const std::string &reductionOf(NodeId node) const { return reductions[nodes[node].reduction]; }
  uint32_t reductionId(NodeId node) const { return nodes[node].reduction; }
  /// Full bytes S: results of an all-gather, operands (without buffers) of every other kind, or
  /// what the caller says.
  uint64_t fullBytes(NodeId node) const;
  uint64_t operandBytes(NodeId node) const;
  uint64_t resultBytes(NodeId node) const;

  bool isTensor(ValueId value) const { return !valueIsScalar[value]; }
  uint64_t bytesOf(ValueId value) const { return valueBytes[value]; }
  uint32_t elementTypeOf(ValueId value) const { return valueElementType[value]; }
  /// The node that makes a value, or `none` for an input.
  NodeId producerOf(ValueId value) const { return producer[value]; }
  /// The value that names the storage.
  ValueId rootOf(ValueId value) const { return root[value]; }
  /// The collective that must be waited for before the value is read, or `none`.
  NodeId pendingOf(ValueId value) const { return pending[value]; }

  std::span<const ValueId> graphInputs() const { return inputs; }
  std::span<const ValueId> graphOutputs() const { return outputs; }

  /// Bytes that a kernel moves when each operand storage is read once and each result written once
  /// (results of an in-place op are not counted again): the duration of kernels without a better
  /// figure is this over the memory bandwidth.
  uint64_t memoryTraffic(NodeId node) const;

private:
  struct Node {
    double durationUs = 0;
    uint32_t first = 0; // into `uses`: tensor operands, scalar operands, results, scalar results
    uint32_t numOperands = 0, numScalarOperands = 0, numResults = 0, numScalarResults = 0;
    GroupId group = none;
    uint32_t reduction = 0;
    uint32_t outBuffers = 0;
    std::optional<uint64_t> fullBytes;
    NodeClass nodeClass = NodeClass::Compute;
    CollectiveKind kind = CollectiveKind::AllGather;
  };

  void deriveStorages(NodeId node, std::vector<std::string> &errors);
  void checkReads(NodeId node, std::vector<std::string> &errors) const;
  bool checkCounts(NodeId node, std::vector<std::string> &errors) const;
  void checkInPlace(std::vector<std::string> &errors) const;
  void checkBytes(std::vector<std::string> &errors) const;

  std::vector<Node> nodes;
  std::vector<std::string> names;
  std::vector<ValueId> uses;
  std::vector<Group> groups;
  std::map<std::vector<int64_t>, GroupId> groupOfRanks;
  std::vector<std::string> reductions = {""};
  std::vector<ValueId> inputs, outputs;
  std::vector<uint64_t> valueBytes;
  std::vector<uint32_t> valueElementType;
  std::vector<bool> valueIsScalar, valueIsInPlace;
  std::vector<NodeId> producer, pending;
  std::vector<ValueId> root;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_GRAPH_H
