// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Graph.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

GroupId Graph::addGroup(Group group) {
  groups.push_back(std::move(group));
  return groups.size() - 1;
}

GroupId Graph::internGroup(Group group) {
  auto [it, isNew] = groupOfRanks.try_emplace(group.ranks, groups.size());
  return isNew ? addGroup(std::move(group)) : it->second;
}

ValueId Graph::addTensor(uint64_t bytes, uint32_t elementType) {
  valueBytes.push_back(bytes);
  valueElementType.push_back(elementType);
  valueIsScalar.push_back(false);
  valueIsInPlace.push_back(false);
  return valueBytes.size() - 1;
}

ValueId Graph::addScalar() {
  ValueId value = addTensor(0);
  valueIsScalar[value] = true;
  return value;
}

NodeId Graph::addNode(NodeClass nodeClass, std::string name, std::span<const ValueId> operandList,
                      std::span<const ValueId> resultList, double durationUs) {
  Node node;
  node.nodeClass = nodeClass;
  node.durationUs = durationUs;
  node.first = uses.size();
  auto append = [&](std::span<const ValueId> values, bool scalars) {
    uint32_t count = 0;
    for (ValueId value : values) {
      // A value that was never added is kept, for finalize to report.
      if ((value < numValues() && valueIsScalar[value]) != scalars)
        continue;
      uses.push_back(value);
      ++count;
    }
    return count;
  };
  node.numOperands = append(operandList, false);
  node.numScalarOperands = append(operandList, true);
  node.numResults = append(resultList, false);
  node.numScalarResults = append(resultList, true);
  nodes.push_back(node);
  names.push_back(std::move(name));
  return nodes.size() - 1;
}

NodeId Graph::addCollective(const CollectiveInfo &info, std::string name,
                            std::span<const ValueId> operandList,
                            std::span<const ValueId> resultList) {
  NodeId id = addNode(NodeClass::Collective, std::move(name), operandList, resultList);
  Node &node = nodes[id];
  node.kind = info.kind;
  node.group = info.group;
  node.outBuffers = info.outBuffers;
  node.fullBytes = info.fullBytes;
  for (size_t i = 0; i != std::min(info.inPlace.size(), results(id).size()); ++i)
    valueIsInPlace[results(id)[i]] = info.inPlace[i];
  auto it = std::find(reductions.begin(), reductions.end(), info.reduction);
  node.reduction = it - reductions.begin();
  if (it == reductions.end())
    reductions.push_back(info.reduction);
  return id;
}

std::span<const ValueId> Graph::operands(NodeId node) const {
  const Node &n = nodes[node];
  return {uses.data() + n.first, n.numOperands};
}
std::span<const ValueId> Graph::scalarOperands(NodeId node) const {
  const Node &n = nodes[node];
  return {uses.data() + n.first + n.numOperands, n.numScalarOperands};
}
std::span<const ValueId> Graph::results(NodeId node) const {
  const Node &n = nodes[node];
  return {uses.data() + n.first + n.numOperands + n.numScalarOperands, n.numResults};
}
std::span<const ValueId> Graph::scalarResults(NodeId node) const {
  const Node &n = nodes[node];
  return {uses.data() + n.first + n.numOperands + n.numScalarOperands + n.numResults,
          n.numScalarResults};
}

uint64_t Graph::operandBytes(NodeId node) const {
  uint64_t bytes = 0;
  for (ValueId value : operands(node).first(nodes[node].numOperands - nodes[node].outBuffers))
    bytes += valueBytes[value];
  return bytes;
}

uint64_t Graph::resultBytes(NodeId node) const {
  uint64_t bytes = 0;
  for (ValueId value : results(node))
    bytes += valueBytes[value];
  return bytes;
}

uint64_t Graph::fullBytes(NodeId node) const {
  if (nodes[node].fullBytes)
    return *nodes[node].fullBytes;
  return kindOf(node) == CollectiveKind::AllGather ? resultBytes(node) : operandBytes(node);
}

uint64_t Graph::memoryTraffic(NodeId node) const {
  std::vector<ValueId> distinct(operands(node).begin(), operands(node).end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  uint64_t bytes = 0;
  for (ValueId value : distinct)
    bytes += valueBytes[value];
  return classOf(node) == NodeClass::InPlace ? bytes : bytes + resultBytes(node);
}

bool Graph::checkCounts(NodeId id, std::vector<std::string> &errors) const {
  const Node &node = nodes[id];
  size_t before = errors.size();
  auto fail = [&](const std::string &what) { errors.push_back(names[id] + ": " + what); };
  for (uint32_t i = 0, e = node.numOperands + node.numScalarOperands + node.numResults +
                           node.numScalarResults;
       i != e; ++i)
    if (uses[node.first + i] >= numValues()) {
      fail("names a value that was never added");
      return false;
    }
  switch (node.nodeClass) {
  case NodeClass::Collective:
    if (node.group >= groups.size())
      fail("names a group that was never added");
    else if (groups[node.group].size == 0)
      fail("group '" + groups[node.group].name + "' has no ranks");
    else if (!groups[node.group].ranks.empty() &&
             groups[node.group].ranks.size() % groups[node.group].size != 0)
      fail("group '" + groups[node.group].name + "' lists " +
           std::to_string(groups[node.group].ranks.size()) + " ranks for a size of " +
           std::to_string(groups[node.group].size));
    if (node.outBuffers != 0 &&
        (node.outBuffers != node.numResults || node.outBuffers > node.numOperands))
      fail("has " + std::to_string(node.outBuffers) + " output buffers for " +
           std::to_string(node.numResults) + " results");
    for (uint32_t i = 0; i != node.numResults; ++i)
      if (valueIsInPlace[results(id)[i]] && (node.outBuffers != 0 || i >= node.numOperands))
        fail("has a result in place of no operand");
    break;
  case NodeClass::Wait:
    if (node.numResults != node.numOperands)
      fail("waits for " + std::to_string(node.numOperands) + " values but has " +
           std::to_string(node.numResults) + " results");
    break;
  case NodeClass::InPlace:
    if (node.numResults > node.numOperands)
      fail("has more results than operands to write in place");
    break;
  case NodeClass::Alias:
    if (node.numResults && !node.numOperands)
      fail("is a view, but has no operand");
    break;
  default:
    break;
  }
  if (!(node.durationUs >= 0))
    fail("has a negative duration");
  return errors.size() == before;
}

void Graph::deriveStorages(NodeId id, std::vector<std::string> &errors) {
  const Node &node = nodes[id];
  std::span<const ValueId> ins = operands(id), outs = results(id);
  for (size_t i = 0; i != outs.size(); ++i) {
    ValueId out = outs[i];
    root[out] = out;
    switch (node.nodeClass) {
    case NodeClass::Alias:
      root[out] = root[ins[0]];
      pending[out] = pending[ins[0]];
      break;
    case NodeClass::Wait:
    case NodeClass::InPlace:
      root[out] = root[ins[i]];
      break;
    case NodeClass::Collective:
      if (node.outBuffers)
        root[out] = root[ins[ins.size() - node.outBuffers + i]];
      else if (valueIsInPlace[out])
        root[out] = root[ins[i]];
      pending[out] = id;
      break;
    default:
      break;
    }
  }
}

void Graph::checkReads(NodeId id, std::vector<std::string> &errors) const {
  NodeClass c = classOf(id);
  if (c == NodeClass::Wait) {
    NodeId waited = none;
    for (ValueId value : operands(id)) {
      if (pending[value] == none)
        continue;
      if (waited != none && waited != pending[value])
        errors.push_back(names[id] + ": waits for two collectives, " + names[waited] + " and " +
                         names[pending[value]]);
      waited = pending[value];
    }
    return;
  }
  if (c != NodeClass::Compute && c != NodeClass::InPlace && c != NodeClass::Collective)
    return;
  for (ValueId value : operands(id))
    if (pending[value] != none)
      errors.push_back(names[id] + ": reads the result of " + names[pending[value]] +
                       " before a wait");
}

/// Nothing else may look at what a collective overwrites, under another name either.
void Graph::checkInPlace(std::vector<std::string> &errors) const {
  std::vector<uint32_t> users(numValues());
  for (NodeId id = 0; id != nodes.size(); ++id)
    for (ValueId value : operands(id))
      ++users[value];
  for (ValueId value : outputs)
    ++users[value];
  for (ValueId result = 0; result != numValues(); ++result) {
    if (!valueIsInPlace[result])
      continue;
    // Back to what made the storage: by names that have one user each.
    ValueId value = result;
    do {
      NodeId node = producer[value];
      std::span<const ValueId> made = results(node);
      size_t position = std::find(made.begin(), made.end(), value) - made.begin();
      value = operands(node)[classOf(node) == NodeClass::Alias ? 0 : position];
    } while (users[value] == 1 && root[value] != value);
    if (users[value] != 1 || producer[value] == none)
      errors.push_back(names[producer[result]] + ": works in place of what others use");
  }
}

void Graph::checkBytes(std::vector<std::string> &errors) const {
  uint64_t total = 0;
  ValueId largest = none;
  for (ValueId value = 0; value != numValues(); ++value) {
    if (root[value] != value)
      continue;
    if (largest == none || valueBytes[value] > valueBytes[largest])
      largest = value;
    total += std::min(valueBytes[value], mostBytes - std::min(total, mostBytes) + 1);
  }
  if (total > mostBytes)
    errors.push_back(
        "the tensors take more than " + std::to_string(mostBytes) +
        " bytes together; the largest, of " + std::to_string(valueBytes[largest]) +
        " bytes or more, is " +
        (producer[largest] == none ? "an input" : "made by '" + names[producer[largest]] + "'"));
}

bool Graph::finalize(std::vector<std::string> &errors) {
  size_t before = errors.size();
  producer.assign(numValues(), none);
  pending.assign(numValues(), none);
  root.assign(numValues(), none);
  std::vector<bool> exists(numValues());
  for (ValueId value : inputs) {
    if (value >= numValues()) {
      errors.push_back("an input is a value that was never added");
      continue;
    }
    exists[value] = true;
    root[value] = value;
  }
  for (NodeId id = 0; id != nodes.size(); ++id) {
    if (!checkCounts(id, errors))
      return false;
    const Node &node = nodes[id];
    const ValueId *use = uses.data() + node.first;
    for (uint32_t i = 0; i != node.numOperands + node.numScalarOperands; ++i)
      if (!exists[use[i]]) {
        errors.push_back(names[id] + ": operand " + std::to_string(i) + " does not exist yet");
        return false;
      }
    use += node.numOperands + node.numScalarOperands;
    for (uint32_t i = 0; i != node.numResults + node.numScalarResults; ++i) {
      if (exists[use[i]])
        errors.push_back(names[id] + ": result " + std::to_string(i) + " exists already");
      exists[use[i]] = true;
      producer[use[i]] = id;
    }
    deriveStorages(id, errors);
    checkReads(id, errors);
  }
  for (ValueId value : outputs)
    if (value >= numValues() || !exists[value])
      errors.push_back("an output is a value that does not exist");
  if (errors.size() == before)
    checkInPlace(errors);
  if (errors.size() == before)
    checkBytes(errors);
  return errors.size() == before;
}
