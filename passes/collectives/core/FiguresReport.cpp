// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/FiguresReport.h"

#include "support/JsonText.h"

#include <charconv>
#include <ostream>

using namespace shardc;
using namespace shardc::collectives;

/// The members of an object with one entry per kind; those beyond the four of sim-v1 only where
/// there are any.
template <typename T>
static std::string byKind(const PerKind<T> &values, const PerKind<uint64_t> &counts) {
  std::string text;
  for (size_t kind = 0; kind != values.size(); ++kind) {
    if (kind > static_cast<size_t>(CollectiveKind::AllToAll) && counts[kind] == 0)
      continue;
    text += text.empty() ? "" : ", ";
    text += jsonString(collectiveKinds[kind].shortName) + ": ";
    if constexpr (std::is_floating_point_v<T>)
      text += jsonNumber(values[kind]);
    else
      text += std::to_string(values[kind]);
  }
  return text;
}

void shardc::collectives::writeFigures(const FiguresReport &report, std::ostream &out) {
  const Figures &f = report.figures;
  out << "\"step_us\": " << jsonNumber(f.stepUs) << ", \"compute_us\": " << jsonNumber(f.computeUs)
      << ", \"launches\": " << f.launches << ", \"exposed_us\": {" << byKind(f.exposedUs, f.counts)
      << ", \"total\": " << jsonNumber(f.totalExposedUs()) << "}, \"comm_us\": {"
      << byKind(f.commUs, f.counts) << ", \"total\": " << jsonNumber(f.totalCommUs())
      << "}, \"counts\": {" << byKind(f.counts, f.counts) << ", \"wait\": " << f.waits
      << ", \"buckets\": " << f.buckets << ", \"nodes\": " << report.nodes
      << "}, \"peak_bytes\": " << f.peakBytes << ", \"peak_hold_bytes\": " << f.peakHoldBytes
      << ", \"lower_bound_us\": " << jsonNumber(report.bounds.lowerBoundUs)
      << ", \"lower_bound_nolat_us\": " << jsonNumber(report.bounds.lowerBoundNoLatencyUs)
      << ", \"critical_path_us\": " << jsonNumber(report.bounds.criticalPathUs)
      << ", \"pass_seconds\": {";
  double total = 0;
  for (auto &[pass, seconds] : report.passSeconds) {
    out << jsonString(pass) << ": " << jsonNumber(seconds) << ", ";
    total += seconds;
  }
  out << "\"total\": " << jsonNumber(total)
      << "}, \"step_us_flat\": " << jsonNumber(report.stepUsFlat);
}

static std::string spanName(const Graph &graph, const Span &span, const Plan *plan) {
  std::string of = span.isBucket && plan
                       ? "bucket " + std::to_string(span.id) + " (" +
                             std::to_string(plan->buckets[span.id].size()) + " members)"
                       : graph.nameOf(span.id);
  switch (span.what) {
  case Span::What::Pack:
    return "pack " + of;
  case Span::What::Unpack:
    return "unpack " + of;
  case Span::What::Stall:
    return "wait for " + of;
  default:
    return of;
  }
}

void shardc::collectives::writeTrace(const Graph &graph, std::span<const NamedTimeline> timelines,
                                     std::ostream &out) {
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char *separator = "\n";
  auto event = [&](const std::string &text) {
    out << separator << "{" << text << "}";
    separator = ",\n";
  };
  auto meta = [&](const char *what, size_t process, size_t thread, const std::string &name) {
    event("\"name\": \"" + std::string(what) + "\", \"ph\": \"M\", \"pid\": " +
          std::to_string(process) + ", \"tid\": " + std::to_string(thread) +
          ", \"args\": {\"name\": " + jsonString(name) + "}");
  };
  static constexpr const char *categories[] = {"kernel", "pack", "unpack", "collective", "stall"};
  for (size_t process = 0; process != timelines.size(); ++process) {
    const NamedTimeline &timeline = timelines[process];
    meta("process_name", process, 0, timeline.name);
    meta("thread_name", process, 0, "compute");
    for (GroupId group = 0; group != graph.numGroups(); ++group)
      meta("thread_name", process, 1 + group,
           "group " + graph.group(group).name + " (" + std::to_string(graph.group(group).size) +
               " ranks)");
    const Graph &named = timeline.graph ? *timeline.graph : graph;
    for (const Span &span : *timeline.spans)
      event("\"name\": " + jsonString(spanName(named, span, timeline.plan)) + ", \"cat\": \"" +
            categories[static_cast<size_t>(span.what)] +
            "\", \"ph\": \"X\", \"ts\": " + jsonNumber(span.startUs) +
            ", \"dur\": " + jsonNumber(span.durationUs) + ", \"pid\": " + std::to_string(process) +
            ", \"tid\": " + std::to_string(span.group == none ? 0 : 1 + span.group));
  }
  out << "\n]}\n";
}
