// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/SimulateReport.h"

#include "support/JsonText.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <ostream>

using namespace shardc;
using namespace shardc::collectives;
using llvm::formatv;

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
  out << "{\"model\": " << jsonString(s.model) << ", \"topology\": " << jsonString(s.costModel)
      << ", \"mode\": " << (s.optimized ? "\"optimize\"" : "\"as-is\"") << ",\n";
  const Figures &figures = s.optimized ? s.optimized->after : s.asIs;
  double flat = s.optimized ? s.optimized->afterFlat.stepUs : s.asIs.stepUs;
  writeFigures({figures, s.bounds, flat, s.graph.numNodes(), s.passSeconds}, out);
  writeScenarios(s.scenarios, s.optimized ? s.optimized->stepsUs : s.asIsSteps, out);
  if (s.optimized) {
    out << ",\n\"before\": {";
    writeFigures({s.asIs, s.bounds, s.asIs.stepUs, s.graph.numNodes(), {}}, out);
    writeScenarios(s.scenarios, s.asIsSteps, out);
    out << "},\n\"memory_limit_bytes\": " << s.optimized->memoryLimit << ",\n";
    writeExplanation(s.graph, *s.optimized, s.origins, out);
  }
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

/// Rows of a name and one or two columns.
class Table {
public:
  Table(const Simulation &s, std::ostream &out) : s(s), out(out) {
    print("", "as is", "optimised");
  }

  template <typename Get> void row(const char *name, Get get, const std::string &note = "") {
    print(name, get(s.asIs), s.optimized ? get(s.optimized->after) : "", note);
  }
  /// One row for each kind that has any, below a row of totals.
  void perKind(const PerKind<double> Figures::*values) {
    for (size_t kind = 0; kind != numCollectiveKinds; ++kind)
      if (s.asIs.counts[kind] != 0)
        row(("  " + std::string(collectiveKinds[kind].name)).c_str(),
            [&](const Figures &f) { return ms((f.*values)[kind]); });
  }

private:
  void print(const char *name, const std::string &first, const std::string &second,
             const std::string &note = "") {
    out << formatv("{0,-24}{1,16}", name, first).str();
    if (s.optimized)
      out << formatv("{0,16}", second).str();
    out << (note.empty() ? "" : "    ") << note << "\n";
  }

  const Simulation &s;
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
  auto extreme = [&](const Figures &f, bool most) {
    const std::vector<double> &steps = &f == &s.asIs ? s.asIsSteps : s.optimized->stepsUs;
    return ms(most ? std::ranges::max(steps) : std::ranges::min(steps));
  };
  table.row(
      "  at least", [&](const Figures &f) { return extreme(f, false); },
      "on networks up to twice as slow, with kernels 20 % off, with a late rank");
  table.row("  at most", [&](const Figures &f) { return extreme(f, true); });
  if (s.optimized && !s.flat)
    table.row(
        "  flat storage",
        [&](const Figures &f) {
          return ms(&f == &s.asIs ? f.stepUs : s.optimized->afterFlat.stepUs);
        },
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
  if (s.optimized)
    table.row("  of them buckets", [](const Figures &f) { return std::to_string(f.buckets); });
  table.row(
      "peak memory", [](const Figures &f) { return gib(f.peakHoldBytes); },
      s.optimized ? "limit " + gib(s.optimized->memoryLimit) : "");
  out << "\nCPU time:";
  for (auto &[pass, seconds] : s.passSeconds)
    out << formatv(" {0} {1:f1} ms", pass, seconds * 1e3).str();
  out << "\n";
  if (s.optimized && collectives != 0) {
    out << "\n";
    printExplanation(s.graph, *s.optimized, s.origins, out);
  }
}
