// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/OrderLog.h"
#include "tools/cuda-emulator/Mutants.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace shardc::emulator {
namespace {

/// By label: whether it is left out.
using LeftOut = std::vector<bool>;

/// The points that come directly before one.
template <typename Body>
void eachBefore(const OrderEdges &edges, const LeftOut &leftOut, const Body &body) {
  for (OrderPoint point : edges.before)
    body(point);
  OrderPoint last = edges.label != noPoint && leftOut[edges.label] ? edges.instead : edges.marked;
  if (last != noPoint)
    body(last);
}

/// Of each point, which of some points happen before it or are it, as bits.
class OrderSets {
public:
  OrderSets(const std::vector<OrderEdges> &points, const std::vector<uint32_t> &numberOf, size_t n)
      : points(points), numberOf(numberOf), words((n + 63) / 64), bits(points.size() * words) {}

  void find(const LeftOut &leftOut) {
    std::fill(bits.begin(), bits.end(), 0);
    for (OrderPoint at = 0; at < points.size(); ++at) {
      uint64_t *own = &bits[at * words];
      eachBefore(points[at], leftOut, [&](OrderPoint before) {
        for (size_t i = 0; i < words; ++i)
          own[i] |= bits[before * words + i];
      });
      if (uint32_t number = numberOf[at]; number != noPoint)
        own[number / 64] |= uint64_t(1) << number % 64;
    }
  }

  bool isBefore(uint32_t number, OrderPoint point) const {
    return bits[point * words + number / 64] >> number % 64 & 1;
  }

private:
  const std::vector<OrderEdges> &points;
  const std::vector<uint32_t> &numberOf;
  size_t words;
  std::vector<uint64_t> bits;
};

bool touchCommonBytes(const Effects &a, const Effects &b) {
  return common(a.writes, b.writes) || common(a.writes, b.reads) || common(a.reads, b.writes);
}

/// Whether the first stream of a capture waits for all others at its end.
bool isJoined(const OrderGraph &graph, const LeftOut &leftOut) {
  std::vector<bool> before(graph.points.size());
  if (graph.end != noPoint)
    before[graph.end] = true;
  for (OrderPoint at = OrderPoint(graph.points.size()); at-- > 0;)
    if (before[at])
      eachBefore(graph.points[at], leftOut, [&](OrderPoint other) { before[other] = true; });
  return std::all_of(graph.otherEnds.begin(), graph.otherEnds.end(),
                     [&](OrderPoint end) { return end == noPoint || before[end]; });
}

} // namespace

OrderLog::OrderLog() : enabled(mutantsAreTried()) {}

OrderLog &OrderLog::instance() {
  static auto *log = new OrderLog; // is used until the process ends
  return *log;
}

OrderPoint OrderLog::push(OrderGraph *graph, OrderEdges edges) {
  if (!enabled)
    return noPoint;
  std::erase(edges.before, noPoint);
  pointsOf(graph).push_back(std::move(edges));
  return OrderPoint(pointsOf(graph).size() - 1);
}

OrderPoint OrderLog::add(OrderGraph *graph, std::vector<OrderPoint> before) {
  return push(graph, {std::move(before)});
}

OrderPoint OrderLog::wait(OrderGraph *graph, uint32_t lane, OrderPoint stream, OrderPoint event,
                          bool joins) {
  if (!enabled)
    return noPoint;
  const std::vector<OrderEdges> &all = pointsOf(graph);
  uint32_t recorded = event == noPoint ? noPoint : all[event].label;
  if (recorded != noPoint) {
    labels[recorded].used = true;
    labels[recorded].joins |= joins;
  }
  labels.push_back(
      {"wait", lane, recorded == noPoint ? noPoint : labels[recorded].lane, true, joins});
  return push(graph, {{stream}, uint32_t(labels.size() - 1), event, noPoint});
}

OrderPoint OrderLog::record(OrderGraph *graph, uint32_t lane, OrderPoint stream,
                            OrderPoint previous) {
  if (!enabled)
    return noPoint;
  labels.push_back({"record", lane, noPoint});
  return push(graph, {{}, uint32_t(labels.size() - 1), stream, previous});
}

static thread_local OrderPoint askedFor = noPoint;

void OrderLog::ask(OrderPoint point) {
  if (enabled)
    askedFor = point;
}

OrderPoint OrderLog::takeAsked() { return std::exchange(askedFor, noPoint); }

OrderPoint OrderLog::launch(const OrderGraph &graph, const std::vector<OrderPoint> &before) {
  if (!enabled)
    return noPoint;
  OrderPoint first = OrderPoint(points.size());
  auto moved = [&](OrderPoint point) { return point == noPoint ? noPoint : first + point; };
  for (const OrderEdges &from : graph.points) {
    OrderEdges edges{before, from.label, moved(from.marked), moved(from.instead)};
    for (OrderPoint point : from.before)
      edges.before.push_back(first + point);
    push(nullptr, std::move(edges));
  }
  return first;
}

void OrderLog::setEffects(OrderPoint point, const std::string &name, int device,
                          const Effects &effects) {
  if (!enabled || point == noPoint || (effects.reads.empty() && effects.writes.empty()))
    return;
  operations.push_back({point, name, device, effects});
}

void OrderLog::release(OrderPoint point, const std::string &name, int device,
                       const ByteInterval &bytes) {
  if (enabled)
    operations.push_back({point, name, device, {{}, {bytes}}, true});
}

bool OrderLog::conflict(const LoggedOperation &first, const LoggedOperation &second) {
  if (first.isRelease || (second.isRelease && first.device == second.device))
    return false;
  return touchCommonBytes(first.effects, second.effects);
}

/// What comes next after it.
std::string OrderLog::placeOf(uint32_t label) const {
  std::vector<bool> after(points.size());
  const LeftOut nothing(labels.size());
  for (OrderPoint at = 0; at < points.size(); ++at) {
    const OrderEdges &edges = points[at];
    after[at] = edges.label == label;
    eachBefore(edges, nothing, [&](OrderPoint before) { after[at] = after[at] || after[before]; });
    if (!after[at])
      continue;
    for (const LoggedOperation &operation : operations)
      if (operation.point == at)
        return "before " + operation.name;
  }
  return "before the end";
}

std::vector<OrderMutant> OrderLog::findMutants() {
  std::vector<uint32_t> numberOf(points.size(), noPoint);
  for (uint32_t i = 0; i < operations.size(); ++i)
    numberOf[operations[i].point] = i;
  OrderSets sets(points, numberOf, operations.size());
  const LeftOut nothing(labels.size());
  sets.find(nothing);
  std::vector<std::pair<uint32_t, uint32_t>> ordered; // of those that touch bytes in common
  for (uint32_t a = 0; a < operations.size(); ++a)
    for (uint32_t b = 0; b < operations.size(); ++b)
      if (a != b && sets.isBefore(a, operations[b].point) && conflict(operations[a], operations[b]))
        ordered.push_back({a, b});
  auto lost = [&](const LeftOut &leftOut) {
    sets.find(leftOut);
    std::vector<std::pair<uint32_t, uint32_t>> out;
    std::copy_if(ordered.begin(), ordered.end(), std::back_inserter(out), [&](auto pair) {
      return !sets.isBefore(pair.first, operations[pair.second].point);
    });
    return out;
  };

  std::vector<OrderMutant> mutants;
  for (uint32_t label = 0; label < labels.size(); ++label) {
    const Label &own = labels[label];
    if (!own.used)
      continue;
    OrderMutant mutant{own.kind, "stream " + std::to_string(own.lane), placeOf(label), "", false};
    LeftOut leftOut = nothing;
    leftOut[label] = true;
    bool unjoined = std::any_of(captures.begin(), captures.end(), [&](const OrderGraph &graph) {
      return graph.points.size() && isJoined(graph, nothing) && !isJoined(graph, leftOut);
    });
    if (auto pairs = lost(leftOut); !pairs.empty())
      mutant.report = "unordered operations: " + operations[pairs.front().first].name + " and " +
                      operations[pairs.front().second].name;
    else if (unjoined)
      mutant.report = "cuStreamEndCapture: a stream that joined the capture has work that the "
                      "first stream does not wait for";
    else if (own.joins)
      mutant.report = "illegal during capture: cuStreamWaitEvent waits for an event of a stream "
                      "that has not joined";
    if (mutant.report.empty()) {
      // Does it order what nothing else does, if the same streams do not wait again?
      LeftOut later = nothing;
      for (uint32_t other = label + 1; other < labels.size(); ++other)
        later[other] = own.kind == std::string_view(labels[other].kind) &&
                       own.lane == labels[other].lane && own.from == labels[other].from;
      const size_t before = lost(later).size();
      later[label] = true;
      mutant.isImplied = lost(later).size() > before;
    }
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

} // namespace shardc::emulator
