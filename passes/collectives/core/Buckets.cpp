// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Buckets.h"

#include "passes/collectives/core/Plan.h"

#include <charconv>
#include <map>

using namespace shardc;
using namespace shardc::collectives;

std::optional<BucketCaps> BucketCaps::parse(std::string_view text, std::string &error) {
  if (text == "auto")
    return BucketCaps();
  std::vector<double> caps;
  for (std::string_view rest = text;;) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    double value = 0;
    auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    // The upper end keeps the number of bytes within 64 bits.
    if (code != std::errc() || end != word.data() + word.size() || !(value > 0 && value <= 1e9)) {
      error = "bucket cap '" + std::string(text) +
              "' is not 'auto', a number of MiB, or a list of them such as '1,25'";
      return std::nullopt;
    }
    caps.push_back(value);
    if (comma == std::string_view::npos)
      return BucketCaps(std::move(caps));
    rest.remove_prefix(comma + 1);
  }
}

uint64_t BucketCaps::bytesAt(uint32_t index) const {
  if (mib.empty())
    return UINT64_MAX;
  return static_cast<uint64_t>(mib[std::min<size_t>(index, mib.size() - 1)] * 1048576);
}

std::string_view shardc::collectives::textOf(CloseReason reason) {
  switch (reason) {
  case CloseReason::Complete:
    return "complete";
  case CloseReason::Cap:
    return "cap";
  case CloseReason::Dependence:
    return "dependence";
  case CloseReason::Cycle:
    return "cycle";
  case CloseReason::Memory:
    return "memory";
  case CloseReason::Cost:
    return "cost";
  case CloseReason::Given:
    return "given";
  }
  return "";
}

std::string_view shardc::collectives::sentenceOf(CloseReason reason) {
  switch (reason) {
  case CloseReason::Complete:
    return "no other collective has its kind, group, element type and reduction";
  case CloseReason::Cap:
    return "the next collective does not fit under the cap";
  case CloseReason::Dependence:
    return "the next collective depends on it, or is ready only after it had to start";
  case CloseReason::Cycle:
    return "the next collective depends on it through another bucket";
  case CloseReason::Memory:
    return "one more would have exceeded the memory limit";
  case CloseReason::Cost:
    return "one more would not have reduced exposed time";
  case CloseReason::Given:
    return "the plan says what is in it";
  }
  return "";
}

std::string_view shardc::collectives::sentenceOf(std::string_view closed) {
  for (CloseReason reason :
       {CloseReason::Complete, CloseReason::Cap, CloseReason::Dependence, CloseReason::Cycle,
        CloseReason::Memory, CloseReason::Cost, CloseReason::Given})
    if (textOf(reason) == closed)
      return sentenceOf(reason);
  return "";
}

std::string_view shardc::collectives::textOf(AloneReason reason) {
  switch (reason) {
  case AloneReason::Kind:
    return "its kind has no buckets";
  case AloneReason::OutBuffer:
    return "it writes into a buffer of its own";
  case AloneReason::NotWaited:
    return "the program returns it without a wait";
  case AloneReason::NoPartner:
    return "no other collective has its kind, group, element type and reduction";
  case AloneReason::AboveCap:
    return "it is larger than the bucket cap";
  case AloneReason::NoRoom:
    return "the next collective does not fit under the bucket cap with it";
  case AloneReason::Dependence:
    return "no collective that could join it was ready in time";
  case AloneReason::Memory:
    return "a bucket would have exceeded the memory limit";
  case AloneReason::Cost:
    return "a bucket would not have reduced exposed time";
  case AloneReason::Given:
    return "the plan has it in no bucket";
  }
  return "";
}

static bool kindHasBuckets(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::AllReduce;
}

/// For each group the first one with equal ranks; where ranks are unknown, or `byName`, with an
/// equal name.
static std::vector<GroupId> canonicalGroups(const Graph &graph, bool byName) {
  std::vector<GroupId> canonical(graph.numGroups());
  std::map<std::vector<int64_t>, GroupId> ofRanks;
  std::map<std::string, GroupId> ofName;
  for (GroupId id = 0; id != graph.numGroups(); ++id) {
    const Group &group = graph.group(id);
    canonical[id] = byName || group.ranks.empty()
                        ? ofName.try_emplace(group.name, id).first->second
                        : ofRanks.try_emplace(group.ranks, id).first->second;
  }
  return canonical;
}

/// The element type that all operands share; `none` for no operands, and for a mixture, which then
/// shares buckets with nothing but mixtures.
static uint32_t elementTypeOf(const Graph &graph, NodeId node) {
  uint32_t type = none;
  for (ValueId value : graph.operands(node)) {
    if (type != none && type != graph.elementTypeOf(value))
      return none - 1;
    type = graph.elementTypeOf(value);
  }
  return type;
}

BucketKeys::BucketKeys(const Problem &problem, const BucketOptions &options)
    : problem(problem), key(problem.numTasks(), none) {
  const Graph &graph = problem.graph;
  std::vector<uint32_t> groups = canonicalGroups(graph, options.groupsByName);
  std::map<std::array<uint32_t, 4>, uint32_t> ids;
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    NodeId node = problem.nodeOf[task];
    if (!graph.isCollective(node) || !kindHasBuckets(graph.kindOf(node)) ||
        graph.outBuffers(node) || problem.waitOf[task] == none)
      continue;
    bool anyType = options.mixedDtype && graph.kindOf(node) == CollectiveKind::AllGather;
    uint32_t type = anyType ? 0 : elementTypeOf(graph, node);
    if (type == none - 1)
      continue;
    std::array<uint32_t, 4> tuple = {static_cast<uint32_t>(graph.kindOf(node)),
                                     groups[graph.groupOf(node)], type, graph.reductionId(node)};
    auto [it, isNew] = ids.try_emplace(tuple, tasksOfKey.size());
    if (isNew)
      tasksOfKey.emplace_back();
    key[task] = it->second;
    tasksOfKey[it->second].push_back(task);
  }
}

AloneReason BucketKeys::reasonOf(TaskId task) const {
  NodeId node = problem.nodeOf[task];
  if (!kindHasBuckets(problem.graph.kindOf(node)))
    return AloneReason::Kind;
  if (problem.graph.outBuffers(node))
    return AloneReason::OutBuffer;
  if (problem.waitOf[task] == none)
    return AloneReason::NotWaited;
  return AloneReason::NoPartner;
}

double shardc::collectives::packUs(const Problem &problem, TaskId task,
                                   const cost::CostModel &model) {
  return model.memoryUs(2.0 * double(problem.graph.operandBytes(problem.nodeOf[task])));
}

double shardc::collectives::unpackUs(const Problem &problem, TaskId task,
                                     const cost::CostModel &model) {
  NodeId node = problem.nodeOf[task];
  return needsUnpack(problem.graph.kindOf(node))
             ? model.memoryUs(2.0 * double(problem.graph.resultBytes(node)))
             : 0;
}
