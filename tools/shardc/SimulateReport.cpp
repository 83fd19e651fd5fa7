// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/SimulateReport.h"

#include "support/JsonText.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <ostream>

using namespace shardc;
using namespace shardc::collectives;
using llvm::formatv;

/// What was taken apart, all together.
struct ChunkTotals {
  explicit ChunkTotals(const ChunkDecision &decision) : regions(decision.choices.size()) {
    for (const ChunkChoice &choice : decision.choices) {
      collectives += choice.region->collectives;
      products += choice.region->products;
      // One number for all, but of rings over groups of several sizes.
      pieces = std::max<size_t>(pieces, choice.pieces);
      rings += choice.region->ring.has_value();
    }
  }
  size_t regions, collectives = 0, products = 0, rings = 0, pieces = 1;
};

static void writeChunks(const ChunkDecision &decision, std::ostream &out) {
  ChunkTotals totals(decision);
  out << formatv(",\n\"chunks\": {{\"regions\": {0}, \"collectives\": {1}, \"products\": {2}, "
                 "\"pieces\": {3}, \"rings\": {4}, \"too_costly\": {5}, \"indivisible\": {6}, "
                 "\"step_us_whole\": {7}}",
                 totals.regions, totals.collectives, totals.products, totals.pieces, totals.rings,
                 decision.tooCostly, decision.indivisible,
                 decision.stepBeforeUs > 0 ? jsonNumber(decision.stepBeforeUs) : "null")
             .str();
}

static void printChunks(const ChunkDecision &decision, std::ostream &out) {
  ChunkTotals totals(decision);
  if (totals.regions == 0) {
    out << "\nnothing was taken apart";
  } else {
    out << formatv("\n{0} {1} pieces: {2} collectives and {3} products of {4} regions",
                   totals.rings ? "as rings, in" : "in", totals.pieces, totals.collectives,
                   totals.products, totals.regions)
               .str();
    if (decision.stepBeforeUs > 0)
      out << formatv("; in one piece the optimised step is {0:f3} ms", decision.stepBeforeUs / 1e3)
                 .str();
  }
  out << formatv(" ({0} regions would take longer in pieces, {1} cannot be divided)\n",
                 decision.tooCostly, decision.indivisible)
             .str();
}

namespace {
/// Why collectives are not split over nodes, in JSON and for people.
struct FlatReason {
  WhyFlat why;
  const char *name, *text;
};
} // namespace
static constexpr FlatReason flatReasons[] = {
    {WhyFlat::OneNode, "one_node", "have their ranks on one node, or each on its own"},
    {WhyFlat::Unequal, "unequal", "lie unequally on their nodes"},
    {WhyFlat::UnknownRank, "unknown", "are over ranks that nobody names (--groups has sizes only)"},
    {WhyFlat::Symbolic, "symbolic", "have a symbolic size"},
    {WhyFlat::Indivisible, "indivisible", "cannot be divided among the ranks of a node"},
    {WhyFlat::Inexact, "inexact", "could overflow or be cut within a node"},
};

static void writeSplits(const SplitDecision &decision, std::ostream &out) {
  out << ",\n\"nodes\": {\"collectives\": " << decision.choices.size()
      << ", \"too_costly\": " << decision.tooCostly;
  for (const FlatReason &reason : flatReasons)
    out << ", \"" << reason.name << "\": " << decision.count(reason.why);
  out << ", \"step_us_whole\": "
      << (decision.stepBeforeUs > 0 ? jsonNumber(decision.stepBeforeUs) : "null") << "}";
}

static void printSplits(const SplitDecision &decision, std::ostream &out) {
  out << "\n" << decision.choices.size() << " collectives are split within and between nodes";
  if (decision.stepBeforeUs > 0)
    out << formatv("; whole, the optimised step is {0:f3} ms", decision.stepBeforeUs / 1e3).str();
  out << "\n";
  if (decision.tooCostly)
    out << "  " << decision.tooCostly << " would only take longer\n";
  for (const FlatReason &reason : flatReasons)
    if (size_t count = decision.count(reason.why))
      out << "  " << count << " " << reason.text << "\n";
}

/// Two members of an object, behind others.
static void writeScenarios(std::span<const Scenario> scenarios, std::span<const double> steps,
                           std::ostream &out) {
  auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  out << ",\n\"step_range_us\": [" << jsonNumber(*least) << ", " << jsonNumber(*most)
      << "], \"scenarios\": [";
  for (size_t i = 0; i != scenarios.size(); ++i)
    out << (i ? ", " : "") << "{\"name\": " << jsonString(scenarios[i].name)
        << ", \"step_us\": " << jsonNumber(steps[i]) << "}";
  out << "]";
}

void shardc::writeSimulation(const Simulation &s, std::ostream &out) {
  const OptimizeResult *shown = s.optimized ? s.optimized : s.given;
  out << "{\"model\": " << jsonString(s.model) << ", \"topology\": " << jsonString(s.costModel)
      << ", \"mode\": "
      << (s.optimized ? "\"optimize\""
          : s.given   ? "\"plan\""
                      : "\"as-is\"")
      << ",\n";
  const Figures &figures = shown ? shown->after : s.asIs;
  double flat = shown ? shown->afterFlat.stepUs : s.asIs.stepUs;
  size_t nodes = (s.planned ? *s.planned : s.graph).numNodes();
  writeFigures({figures, s.bounds, flat, nodes, s.passSeconds}, out);
  writeScenarios(s.scenarios, shown ? shown->stepsUs : s.asIsSteps, out);
  if (shown) {
    out << ",\n\"before\": {";
    writeFigures({s.asIs, s.bounds, s.asIs.stepUs, s.graph.numNodes(), {}}, out);
    writeScenarios(s.scenarios, s.asIsSteps, out);
    out << "},\n";
    if (s.optimized)
      out << "\"memory_limit_bytes\": " << s.optimized->memoryLimit << ",\n";
    writeExplanation(*s.planned, *shown, s.origins, out);
  }
  if (s.optimized && s.given) {
    out << ",\n\"plan\": {";
    writeFigures({s.given->after, s.bounds, s.given->afterFlat.stepUs, s.graph.numNodes(), {}},
                 out);
    writeScenarios(s.scenarios, s.given->stepsUs, out);
    out << ",\n";
    writeExplanation(s.graph, *s.given, s.origins, out);
    out << "}";
  }
  if (s.chunks)
    writeChunks(*s.chunks, out);
  if (s.splits)
    writeSplits(*s.splits, out);
  out << "}\n";
}

namespace {

std::string ms(double us) { return formatv("{0:f3} ms", us / 1e3); }
std::string gib(uint64_t bytes) {
  double value = double(bytes);
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; value >= 1024 && unit != 4; ++unit)
    value /= 1024;
  return unit == 0 ? formatv("{0} B", bytes).str() : formatv("{0:f3} {1}", value, units[unit]);
}

/// What a column is about.
struct Column {
  const char *title;
  const Figures &figures;
  std::span<const double> stepsUs;
  double stepFlatUs;
};

/// Rows of a name and a column for the graph as it is and for each plan.
class Table {
public:
  Table(const Simulation &s, std::ostream &out) : out(out) {
    columns.push_back({"as is", s.asIs, s.asIsSteps, s.asIs.stepUs});
    for (auto [title, plan] : {std::pair("planned", s.given), {"optimised", s.optimized}})
      if (plan)
        columns.push_back({title, plan->after, plan->stepsUs, plan->afterFlat.stepUs});
    columnRow("", [](const Column &column) { return column.title; });
  }

  template <typename Get> void columnRow(const char *name, Get get, const std::string &note = "") {
    out << formatv("{0,-24}", name).str();
    for (const Column &column : columns)
      out << formatv("{0,16}", get(column)).str();
    out << (note.empty() ? "" : "    ") << note << "\n";
  }
  template <typename Get> void row(const char *name, Get get, const std::string &note = "") {
    columnRow(name, [&](const Column &column) { return get(column.figures); }, note);
  }
  /// One row for each kind that has any, below a row of totals.
  void perKind(const PerKind<double> Figures::*values) {
    for (size_t kind = 0; kind != numCollectiveKinds; ++kind)
      if (columns.front().figures.counts[kind] != 0)
        row(("  " + std::string(collectiveKinds[kind].name)).c_str(),
            [&](const Figures &f) { return ms((f.*values)[kind]); });
  }

private:
  std::vector<Column> columns;
  std::ostream &out;
};

} // namespace

void shardc::printSimulation(const Simulation &s, std::ostream &out) {
  uint64_t collectives = 0;
  for (uint64_t count : s.asIs.counts)
    collectives += count;
  out << formatv("{0}: {1} nodes, {2} kernels ({3} with a duration of their own), {4} collectives "
                 "over {5} groups; cost model {6}\n\n",
                 s.model, s.graph.numNodes(), s.kernels, s.timedKernels, collectives,
                 s.graph.numGroups(), s.costModel)
             .str();
  double bound = std::max(s.bounds.lowerBoundNoLatencyUs, s.bounds.criticalPathUs);
  Table table(s, out);
  table.row("step", [](const Figures &f) { return ms(f.stepUs); });
  if (bound > 0)
    table.row(
        "  over the bound",
        [&](const Figures &f) { return formatv("{0:f4}", f.stepUs / bound).str(); },
        formatv("bound {0}: streams without latency {1}, longest path {2}", ms(bound),
                ms(s.bounds.lowerBoundNoLatencyUs), ms(s.bounds.criticalPathUs)));
  table.columnRow(
      "  at least", [](const Column &c) { return ms(std::ranges::min(c.stepsUs)); },
      "on networks up to twice as slow, with kernels 20 % off, with a late rank");
  table.columnRow("  at most", [](const Column &c) { return ms(std::ranges::max(c.stepsUs)); });
  if ((s.optimized || s.given) && !s.flat)
    table.columnRow(
        "  flat storage", [](const Column &c) { return ms(c.stepFlatUs); },
        "if no bucket had to be packed");
  table.row("compute", [](const Figures &f) { return ms(f.computeUs); });
  table.row("launches", [](const Figures &f) { return std::to_string(f.launches); });
  table.row("exposed communication", [](const Figures &f) { return ms(f.totalExposedUs()); });
  table.perKind(&Figures::exposedUs);
  table.row("communication", [](const Figures &f) { return ms(f.totalCommUs()); });
  table.perKind(&Figures::commUs);
  table.row("collectives", [](const Figures &f) {
    uint64_t count = 0;
    for (uint64_t n : f.counts)
      count += n;
    return std::to_string(count);
  });
  if (s.optimized || s.given)
    table.row("  of them buckets", [](const Figures &f) { return std::to_string(f.buckets); });
  table.row(
      "peak memory", [](const Figures &f) { return gib(f.peakHoldBytes); },
      s.optimized ? "limit " + gib(s.optimized->memoryLimit) : "");
  out << "\nCPU time:";
  for (auto &[pass, seconds] : s.passSeconds)
    out << formatv(" {0} {1:f1} ms", pass, seconds * 1e3).str();
  out << "\n";
  if (s.chunks)
    printChunks(*s.chunks, out);
  if (s.splits)
    printSplits(*s.splits, out);
  const OptimizeResult *shown = s.optimized ? s.optimized : s.given;
  if (shown && collectives != 0) {
    out << "\n";
    printExplanation(*s.planned, *shown, s.origins, out);
  }
}

void shardc::writeTimelines(const Simulation &s, const cost::CostModel &model, std::ostream &out) {
  std::vector<Span> before, given, optimized;
  simulate(s.graph, model, {false, &before});
  bool planned = s.given || s.optimized;
  std::vector<NamedTimeline> timelines = {{planned ? "before" : "as is", &before, nullptr}};
  if (s.given) {
    simulate(s.graph, s.given->plan, model, {s.flat, &given});
    timelines.push_back({s.optimized ? "plan" : "after", &given, &s.given->plan, &s.graph});
  }
  if (s.optimized) {
    simulate(*s.planned, s.optimized->plan, model, {s.flat, &optimized});
    timelines.push_back({"after", &optimized, &s.optimized->plan, s.planned});
  }
  writeTrace(s.graph, timelines, out);
}
