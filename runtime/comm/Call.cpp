// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Call.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"
#include "support/CollectiveKind.h"
#include "support/Reduction.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardc::rt {

namespace {

bool hasGather(uint32_t kind) {
  return kind == SHARDRT_ALL_GATHER || kind == SHARDRT_ALL_TO_ALL || kind == SHARDRT_PERMUTE;
}
bool hasScatter(uint32_t kind) {
  return kind == SHARDRT_REDUCE_SCATTER || kind == SHARDRT_ALL_TO_ALL;
}
bool reduces(uint32_t kind) { return kind == SHARDRT_ALL_REDUCE || kind == SHARDRT_REDUCE_SCATTER; }

// Messages of calls that do not fit: small rather than fast.
[[gnu::cold]] std::string sumProblem(const char *what, int64_t total, int64_t full) {
  return what + (" sum to " + std::to_string(total)) + ", the dim has " + std::to_string(full);
}
[[gnu::cold]] std::string operandProblem(uint32_t operand, const std::string &what) {
  return "operand " + std::to_string(operand) + ": " + what;
}
[[gnu::cold]] std::string dimProblem(uint32_t operand, const char *kind, int32_t dim,
                                     const std::string &what) {
  return operandProblem(operand, kind + std::to_string(dim) + ": " + what);
}

std::string sumsTo(const std::vector<int64_t> &extents, int64_t &total) {
  total = 0;
  for (int64_t extent : extents) {
    if (extent < 0)
      return "a member's extent is negative (" + std::to_string(extent) + ")";
    if (__builtin_add_overflow(total, extent, &total))
      return "the members' extents are too large";
  }
  return "";
}

/// Fills the members' extents on one dim from a table or the chunk rule.
std::string splitDim(const int64_t *table, int64_t full, size_t members, bool sums,
                     std::vector<int64_t> &out) {
  if (!table) {
    if (sums)
      chunkExtents(full, members, out);
    else
      out.assign(members, full);
    return "";
  }
  out.assign(table, table + members);
  int64_t total;
  if (std::string problem = sumsTo(out, total); !problem.empty())
    return problem;
  if (sums && total != full)
    return sumProblem("the members' extents", total, full);
  return "";
}

/// Fills what this rank gives to and gets from each member of an exchange: from tables, or equal
/// pieces of the dim.
std::string splitExchange(const shardrt_collective_tensor &tensor, const Group &group,
                          CallOperand &operand) {
  size_t members = group.size();
  int64_t full = operand.extents[size_t(operand.facts->gather_dim)];
  if (!tensor.gather != !tensor.scatter)
    return "the extents of pieces that leave are needed with those that arrive";
  if (!tensor.gather) {
    if (full % int64_t(members) != 0)
      return "a dim of " + std::to_string(full) + " elements has no " + std::to_string(members) +
             " equal pieces";
    operand.gather.assign(members, full / int64_t(members));
    operand.scatter = operand.gather;
    return "";
  }
  operand.gather.assign(tensor.gather, tensor.gather + members);
  operand.scatter.assign(tensor.scatter, tensor.scatter + members);
  int64_t leaving, arriving;
  if (std::string problem = sumsTo(operand.scatter, leaving); !problem.empty())
    return problem;
  if (std::string problem = sumsTo(operand.gather, arriving); !problem.empty())
    return problem;
  if (leaving > full)
    return sumProblem("the pieces that leave", leaving, full);
  Extents out = operand.extents;
  out[size_t(operand.facts->gather_dim)] = arriving;
  if (checkedBytes(out.data(), size_t(operand.facts->rank), operand.elementBytes) < 0)
    return "the pieces that arrive are too large";
  int64_t given = operand.scatter[group.position], expected = operand.gather[group.position];
  if (given != expected)
    return "the rank keeps " + std::to_string(given) + " elements and expects " +
           std::to_string(expected) + " of itself";
  return "";
}

} // namespace

void chunkExtents(int64_t full, size_t members, std::vector<int64_t> &out) {
  out.resize(members);
  int64_t n = int64_t(members), chunk = (full + n - 1) / n;
  for (int64_t r = 0; r < n; ++r)
    out[size_t(r)] = std::max<int64_t>(0, std::min(full, (r + 1) * chunk) - r * chunk);
}

int64_t permuteSource(const shardrt_collective &collective, uint32_t target) {
  for (uint32_t i = 0; i < collective.n_pairs; ++i)
    if (collective.permutation[2 * i + 1] == target)
      return collective.permutation[2 * i];
  return -1;
}

Extents CallOperand::inShape(uint32_t position) const {
  Extents shape = extents;
  if (!gather.empty() && !isExchange())
    shape[size_t(facts->gather_dim)] = gather[position];
  return shape;
}

Extents CallOperand::outShape(uint32_t position, const shardrt_collective &collective) const {
  Extents shape = extents;
  if (isExchange()) {
    shape[size_t(facts->gather_dim)] = std::accumulate(gather.begin(), gather.end(), int64_t(0));
    return shape;
  }
  if (!scatter.empty())
    shape[size_t(facts->scatter_dim)] = scatter[position];
  if (collective.kind == SHARDRT_PERMUTE && !gather.empty()) {
    int64_t source = permuteSource(collective, position);
    shape[size_t(facts->gather_dim)] = gather[source < 0 ? position : size_t(source)];
  }
  return shape;
}

int64_t CallOperand::inElements(uint32_t position) const {
  return countElements(inShape(position).data(), size_t(facts->rank));
}

int64_t CallOperand::outElements(uint32_t position, const shardrt_collective &collective) const {
  return countElements(outShape(position, collective).data(), size_t(facts->rank));
}

std::string CollectiveCall::assign(const shardrt_collective &desc, Group &where, uint64_t number,
                                   const shardrt_collective_tensor *tensors) {
  collective = &desc;
  group = &where;
  run = number;
  operands.resize(desc.n_operands);
  for (uint32_t i = 0; i < desc.n_operands; ++i) {
    CallOperand &operand = operands[i];
    const shardrt_collective_tensor &tensor = tensors[i];
    operand.facts = &desc.operands[i];
    operand.elementBytes = typeBytes(operand.facts->type);
    operand.in = tensor.in;
    operand.out = tensor.out;
    for (int32_t d = 0; d < operand.facts->rank; ++d)
      operand.extents[size_t(d)] = tensor.extents[d];
    if (checkedBytes(operand.extents.data(), size_t(operand.facts->rank), operand.elementBytes) < 0)
      return operandProblem(i, "its extents " +
                                   describe(operand.facts->type, operand.extents.data(),
                                            size_t(operand.facts->rank)) +
                                   " are negative or too large");
    operand.gather.clear();
    operand.scatter.clear();
    operand.ownCounts = operand.isExchange() && tensor.gather;
    if (operand.isExchange()) {
      if (std::string problem = splitExchange(tensor, where, operand); !problem.empty())
        return dimProblem(i, "dim ", operand.facts->gather_dim, problem);
    } else if (int32_t dim = operand.facts->gather_dim; dim >= 0) {
      std::string problem = splitDim(tensor.gather, tensor.extents[dim], where.size(),
                                     desc.kind != SHARDRT_PERMUTE, operand.gather);
      if (!problem.empty())
        return dimProblem(i, "gather dim ", dim, problem);
    }
    if (int32_t dim = operand.facts->scatter_dim; dim >= 0 && !operand.isExchange()) {
      std::string problem =
          splitDim(tensor.scatter, tensor.extents[dim], where.size(), true, operand.scatter);
      if (!problem.empty())
        return dimProblem(i, "scatter dim ", dim, problem);
    }
    if (!operand.in && operand.inElements(where.position) > 0)
      return operandProblem(i, "its input is a null pointer");
    if (!operand.out && operand.outElements(where.position, desc) > 0)
      return operandProblem(i, "its output is a null pointer");
  }
  return "";
}

ExchangeRest restOfExchange(const shardrt_collective &collective, uint32_t operand,
                            const shardrt_collective_tensor &tensor, uint32_t members) {
  const shardrt_collective_operand &facts = collective.operands[operand];
  if (tensor.room == 0 || !tensor.gather || facts.gather_dim != 0 || facts.scatter_dim != 0)
    return {};
  const int64_t arriving = std::accumulate(tensor.gather, tensor.gather + members, int64_t(0));
  if (arriving > tensor.room)
    throw Failure(SHARDRT_PROGRAM_ERROR, describe(collective) + ": " + std::to_string(arriving) +
                                             " elements of dim 0 arrive where there is room for " +
                                             std::to_string(tensor.room));
  const int64_t inner = countElements(tensor.extents + 1, size_t(facts.rank - 1));
  const int64_t bytes = inner * typeBytes(facts.type);
  return {static_cast<uint8_t *>(tensor.out) + arriving * bytes,
          size_t((tensor.room - arriving) * bytes)};
}

/// What a rank gives to the others, or gets of them: the larger of both.
static int64_t exchangedElements(const CallOperand &operand, uint32_t self) {
  Extents others = operand.extents;
  int64_t most = 0;
  for (const std::vector<int64_t> *counts : {&operand.gather, &operand.scatter})
    most = std::max(most,
                    std::accumulate(counts->begin(), counts->end(), int64_t(0)) - (*counts)[self]);
  others[size_t(operand.facts->gather_dim)] = most;
  return countElements(others.data(), size_t(operand.facts->rank));
}

int64_t CollectiveCall::wireBytes() const {
  // Ring volumes: (n-1)/n of the full tensor for a gather or scatter, twice that for an all-reduce,
  // (n-1)/n of the local tensor for an all-to-all, the local buffer for a permute or broadcast; of
  // an exchange what its counts say.
  int64_t n = group->size();
  if (n < 2)
    return 0;
  double bytes = 0;
  for (const CallOperand &operand : operands) {
    double full = double(countElements(operand.extents.data(), size_t(operand.facts->rank))) *
                  double(operand.elementBytes);
    double local = double(operand.inElements(group->position)) * double(operand.elementBytes);
    double share = double(n - 1) / double(n);
    if (operand.isExchange()) {
      bytes += double(exchangedElements(operand, group->position) * operand.elementBytes);
      continue;
    }
    switch (collective->kind) {
    case SHARDRT_ALL_REDUCE:
      bytes += 2 * share * full;
      break;
    case SHARDRT_ALL_TO_ALL:
      bytes += share * local;
      break;
    case SHARDRT_PERMUTE:
      bytes += local;
      break;
    case SHARDRT_BROADCAST:
      bytes += full;
      break;
    default:
      bytes += share * full;
    }
  }
  return int64_t(bytes);
}

int64_t CollectiveCall::operandBytes() const {
  int64_t bytes = 0;
  for (const CallOperand &operand : operands)
    bytes += operand.inElements(group->position) * operand.elementBytes;
  return bytes;
}

int64_t CollectiveCall::fullBytes() const {
  int64_t bytes = 0;
  for (const CallOperand &operand : operands)
    bytes +=
        countElements(operand.extents.data(), size_t(operand.facts->rank)) * operand.elementBytes;
  return bytes;
}

static_assert(runtimeCodeOf(CollectiveKind::AllGather) == SHARDRT_ALL_GATHER &&
              runtimeCodeOf(CollectiveKind::AllReduce) == SHARDRT_ALL_REDUCE &&
              runtimeCodeOf(CollectiveKind::ReduceScatter) == SHARDRT_REDUCE_SCATTER &&
              runtimeCodeOf(CollectiveKind::AllToAll) == SHARDRT_ALL_TO_ALL &&
              runtimeCodeOf(CollectiveKind::Broadcast) == SHARDRT_BROADCAST &&
              runtimeCodeOf(CollectiveKind::Permute) == SHARDRT_PERMUTE);

const char *kindName(uint32_t kind) {
  std::optional<CollectiveKind> known = collectiveKindFromRuntime(kind);
  return known ? nameOf(*known).data() : "?"; // a literal: it ends with a zero
}

static_assert(runtimeCodeOf(Reduction::Sum) == SHARDRT_SUM &&
              runtimeCodeOf(Reduction::Avg) == SHARDRT_AVG &&
              runtimeCodeOf(Reduction::Min) == SHARDRT_MIN &&
              runtimeCodeOf(Reduction::Max) == SHARDRT_MAX &&
              runtimeCodeOf(Reduction::Prod) == SHARDRT_PROD);

const char *reductionName(uint32_t reduction) {
  if (reduction == SHARDRT_REDUCE_NONE)
    return "none";
  return reduction <= SHARDRT_PROD
             ? reductionNames[reduction - runtimeCodeOf(Reduction::Sum)].data()
             : "?";
}

std::string describe(const shardrt_collective &collective) {
  std::string text = collective.name ? collective.name : kindName(collective.kind);
  if (collective.location && *collective.location)
    text += std::string(" (") + collective.location + ")";
  return text;
}

// Once for a program: small rather than fast.
[[gnu::cold]] void checkDescriptor(const shardrt_collective &c,
                                   std::span<const shardrt_group> groups,
                                   std::vector<std::string> &problems) {
  std::string here = "collective " + describe(c) + ": ";
  auto problem = [&](const std::string &text) { problems.push_back(here + text); };
  if (c.kind < SHARDRT_ALL_GATHER || c.kind > SHARDRT_PERMUTE)
    return problem("unknown kind " + std::to_string(c.kind));
  if (c.group >= groups.size())
    return problem("unknown group " + std::to_string(c.group));
  if (reduces(c.kind) ? c.reduction < SHARDRT_SUM || c.reduction > SHARDRT_PROD
                      : c.reduction != SHARDRT_REDUCE_NONE)
    problem("reduction " + std::to_string(c.reduction) + " does not fit " + kindName(c.kind));
  uint32_t smallest = UINT32_MAX;
  const shardrt_group &group = groups[c.group];
  for (uint32_t s = 0; s < group.n_sets; ++s)
    smallest = std::min(smallest, group.set_begin[s + 1] - group.set_begin[s]);
  if (c.kind == SHARDRT_BROADCAST && c.root >= smallest)
    problem("root " + std::to_string(c.root) + " is outside the group");
  if (c.kind == SHARDRT_PERMUTE) {
    std::vector<uint32_t> targets;
    for (uint32_t i = 0; i < c.n_pairs; ++i) {
      if (c.permutation[2 * i] >= smallest || c.permutation[2 * i + 1] >= smallest)
        problem("pair " + std::to_string(i) + " is outside the group");
      targets.push_back(c.permutation[2 * i + 1]);
    }
    std::sort(targets.begin(), targets.end());
    if (std::adjacent_find(targets.begin(), targets.end()) != targets.end())
      problem("a target occurs twice");
  }
  for (uint32_t i = 0; i < c.n_operands; ++i) {
    const shardrt_collective_operand &o = c.operands[i];
    std::string operand = "operand " + std::to_string(i) + ": ";
    if (typeBytes(o.type) == 0)
      problem(operand + "unknown element type " + std::to_string(o.type));
    if (o.rank < 0 || o.rank > SHARDRT_MAX_RANK) {
      problem(operand + "rank " + std::to_string(o.rank));
      continue;
    }
    bool gatherNeeded = hasGather(c.kind) && c.kind != SHARDRT_PERMUTE;
    if (o.gather_dim < (gatherNeeded ? 0 : -1) || o.gather_dim >= o.rank ||
        (o.gather_dim >= 0 && !hasGather(c.kind)))
      problem(operand + "gather dim " + std::to_string(o.gather_dim));
    if (o.scatter_dim < (hasScatter(c.kind) ? 0 : -1) || o.scatter_dim >= o.rank ||
        (o.scatter_dim >= 0 && !hasScatter(c.kind)))
      problem(operand + "scatter dim " + std::to_string(o.scatter_dim));
    if (reduces(c.kind) && o.type == SHARDRT_BOOL && c.reduction == SHARDRT_AVG)
      problem(operand + "avg is not defined for bool");
  }
}

std::string difference(const CollectiveCall &a, const CollectiveCall &b) {
  const shardrt_collective &x = *a.collective, &y = *b.collective;
  if (a.run != b.run)
    return "run " + std::to_string(a.run) + " and run " + std::to_string(b.run) + " of the program";
  if (&x != &y) {
    if (x.kind != y.kind || x.reduction != y.reduction || x.n_operands != y.n_operands ||
        x.root != y.root || x.n_pairs != y.n_pairs || !x.name != !y.name ||
        (x.name && std::strcmp(x.name, y.name) != 0))
      return "different collectives";
    if (x.n_pairs && std::memcmp(x.permutation, y.permutation, 8ull * x.n_pairs) != 0)
      return "different permutations";
  }
  for (size_t i = 0; i < a.operands.size(); ++i) {
    const CallOperand &p = a.operands[i], &q = b.operands[i];
    std::string here = "operand " + std::to_string(i) + ": ";
    if (p.facts != q.facts && std::memcmp(p.facts, q.facts, sizeof(*p.facts)) != 0)
      return here + "different element types, ranks or dims";
    Extents shape = p.extents;
    if (p.isExchange()) // everybody has a number of elements of their own along the dim
      shape[size_t(p.facts->gather_dim)] = q.extents[size_t(p.facts->gather_dim)];
    if (!std::equal(q.shape().begin(), q.shape().end(), shape.begin()))
      return here + "extents " + describe(p.facts->type, p.extents.data(), p.shape().size()) +
             " and " + describe(q.facts->type, q.extents.data(), q.shape().size());
    if (!p.isExchange()) {
      if (p.gather != q.gather || p.scatter != q.scatter)
        return here + "different extents of members";
      continue;
    }
    uint32_t at = a.group->position, there = b.group->position;
    uint32_t rankA = a.group->members[at], rankB = b.group->members[there];
    for (std::string problem : {countDifference(i, rankA, p.scatter[there], rankB, q.gather[at]),
                                countDifference(i, rankB, q.scatter[at], rankA, p.gather[there])})
      if (!problem.empty())
        return problem;
  }
  return "";
}

bool hasExchange(const CollectiveCall &call) {
  return std::any_of(call.operands.begin(), call.operands.end(),
                     [](const CallOperand &operand) { return operand.isExchange(); });
}

[[gnu::cold]] static std::string countProblem(size_t operand, uint32_t from, int64_t given,
                                              uint32_t to, int64_t expected) {
  return "operand " + std::to_string(operand) + ": rank " + std::to_string(from) + " gives rank " +
         std::to_string(to) + " " + std::to_string(given) + " elements of the dim, which expects " +
         std::to_string(expected);
}

std::string countDifference(size_t operand, uint32_t from, int64_t given, uint32_t to,
                            int64_t expected) {
  return given == expected ? "" : countProblem(operand, from, given, to, expected);
}

} // namespace shardc::rt
