// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/BucketExplanation.h"

#include "support/JsonText.h"

#include <algorithm>
#include <cstdarg>
#include <map>
#include <ostream>

using namespace shardc;
using namespace shardc::collectives;

namespace {

const Origin &originOf(Origins origins, NodeId node) {
  static const Origin unknown;
  return node < origins.size() ? origins[node] : unknown;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

std::string groupMembers(const Graph &graph, CollectiveKind kind, GroupId id) {
  const Group &group = graph.group(id);
  return "\"kind\": " + jsonString(shortNameOf(kind)) + ", \"group\": " + jsonString(group.name) +
         ", \"group_size\": " + std::to_string(group.size);
}

template <typename Record> std::string timeMembers(const Record &record) {
  return "\"exposed_before_us\": " + jsonNumber(record.exposedBeforeUs) +
         ", \"exposed_after_us\": " + jsonNumber(record.exposedAfterUs) +
         ", \"duration_us\": " + jsonNumber(record.durationUs) +
         ", \"slack_us\": " + jsonNumber(record.slackUs);
}

std::string nodeMembers(const Graph &graph, NodeId node, Origins origins) {
  std::string text = "\"name\": " + jsonString(graph.nameOf(node)) +
                     ", \"bytes\": " + std::to_string(graph.fullBytes(node));
  const Origin &origin = originOf(origins, node);
  for (auto [key, value] : {std::pair("module", &origin.module),
                            {"tensor", &origin.tensor},
                            {"location", &origin.location}})
    if (!value->empty())
      text += ", \"" + std::string(key) + "\": " + jsonString(*value);
  return text;
}

} // namespace

void shardc::collectives::writeExplanation(const Graph &graph, const OptimizeResult &result,
                                           Origins origins, std::ostream &out) {
  out << "\"buckets\": [";
  for (size_t id = 0; id != result.buckets.size(); ++id) {
    const BucketRecord &bucket = result.buckets[id];
    out << (id ? ",\n" : "\n") << "{\"id\": " << id << ", "
        << groupMembers(graph, bucket.kind, bucket.group) << ", \"bytes\": " << bucket.bytes
        << ", \"cap_bytes\": "
        << (bucket.capBytes == UINT64_MAX ? "null" : std::to_string(bucket.capBytes))
        << ", \"closed\": " << jsonString(textOf(bucket.closed)) << ", " << timeMembers(bucket)
        << ", \"members\": [";
    for (size_t i = 0; i != bucket.members.size(); ++i)
      out << (i ? ", {" : "{") << nodeMembers(graph, bucket.members[i], origins) << "}";
    out << "]}";
  }
  out << "], \"alone\": [";
  for (size_t i = 0; i != result.alone.size(); ++i) {
    const AloneRecord &alone = result.alone[i];
    out << (i ? ",\n" : "\n") << "{" << nodeMembers(graph, alone.node, origins) << ", "
        << groupMembers(graph, graph.kindOf(alone.node), graph.groupOf(alone.node))
        << ", \"reason\": " << jsonString(textOf(alone.reason)) << ", " << timeMembers(alone)
        << "}";
  }
  out << "]";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// How many members and examples, and how many buckets, a person is shown; JSON has them all.
constexpr size_t shown = 6, shownBuckets = 100;

std::string format(const char *pattern, ...) {
  char buffer[160];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

std::string mib(uint64_t bytes) { return format("%.2f MiB", double(bytes) / (1 << 20)); }

std::string groupText(const Group &group) {
  return "group " + group.name + " (" + std::to_string(group.size) + " ranks)";
}

/// "model.layers.0.mlp.weight (all_gather_3)", "all_gather_3" where no more is known.
std::string labelOf(const Graph &graph, NodeId node, Origins origins) {
  const Origin &origin = originOf(origins, node);
  const std::string &place = origin.tensor.empty() ? origin.module : origin.tensor;
  return place.empty() ? graph.nameOf(node) : place + " (" + graph.nameOf(node) + ")";
}

/// Of what would be exposed if it took twice as long.
template <typename Record> bool isNearlyExposed(const Record &record) {
  return record.exposedAfterUs <= 0 && record.slackUs < record.durationUs;
}

template <typename Record> std::string slackText(const Record &record) {
  return isNearlyExposed(record)
             ? format(", slack %.1f of %.1f us", record.slackUs, record.durationUs)
             : "";
}

/// Collectives that are hidden, but would not be if they took twice as long, the tightest first.
void printNearlyExposed(const Graph &graph, std::span<const AloneRecord> alone, Origins origins,
                        std::ostream &out) {
  std::vector<const AloneRecord *> records;
  for (const AloneRecord &record : alone)
    if (isNearlyExposed(record))
      records.push_back(&record);
  if (records.empty())
    return;
  out << "nearly exposed: " << records.size()
      << " collectives that are hidden, but have less slack than they take\n";
  std::sort(records.begin(), records.end(), [](auto *a, auto *b) {
    return std::pair(a->slackUs, a->node) < std::pair(b->slackUs, b->node);
  });
  for (size_t i = 0; i != std::min(shown, records.size()); ++i)
    out << "  " << labelOf(graph, records[i]->node, origins) << slackText(*records[i]) << "\n";
}

void printBucket(const Graph &graph, size_t id, const BucketRecord &bucket, Origins origins,
                 std::ostream &out) {
  out << "bucket " << id << ": " << bucket.members.size() << " " << nameOf(bucket.kind) << " over "
      << groupText(graph.group(bucket.group)) << ", " << mib(bucket.bytes)
      << (bucket.closed == CloseReason::Given ? ""
          : bucket.capBytes == UINT64_MAX     ? " (cap auto)"
                                              : " (cap " + mib(bucket.capBytes) + ")")
      << "; exposed " << format("%.1f -> %.1f us", bucket.exposedBeforeUs, bucket.exposedAfterUs)
      << slackText(bucket) << "\n"
      << "  closed (" << textOf(bucket.closed) << "): " << sentenceOf(bucket.closed) << "\n";
  for (size_t i = 0; i != std::min(shown, bucket.members.size()); ++i)
    out << "  " << format("%12s  ", mib(graph.fullBytes(bucket.members[i])).c_str())
        << labelOf(graph, bucket.members[i], origins) << "\n";
  if (bucket.members.size() > shown)
    out << "                and " << bucket.members.size() - shown << " more\n";
}

} // namespace

void shardc::collectives::printExplanation(const Graph &graph, const OptimizeResult &result,
                                           Origins origins, std::ostream &out) {
  size_t numShown = std::min(shownBuckets, result.buckets.size());
  for (size_t id = 0; id != numShown; ++id)
    printBucket(graph, id, result.buckets[id], origins, out);
  if (numShown != result.buckets.size())
    out << "and " << result.buckets.size() - numShown << " more buckets\n";

  // By reason and kind, in the order of the enumerations.
  std::map<std::pair<AloneReason, CollectiveKind>, std::vector<const AloneRecord *>> alone;
  for (const AloneRecord &record : result.alone)
    alone[{record.reason, graph.kindOf(record.node)}].push_back(&record);
  for (auto &[key, records] : alone) {
    double before = 0, after = 0;
    for (const AloneRecord *record : records) {
      before += record->exposedBeforeUs;
      after += record->exposedAfterUs;
    }
    out << "left alone: " << records.size() << " " << nameOf(key.second) << "; exposed "
        << format("%.1f -> %.1f us", before, after) << "\n  because " << textOf(key.first) << "\n";
    // Those that still cost most.
    std::sort(records.begin(), records.end(), [](auto *a, auto *b) {
      return std::pair(-a->exposedAfterUs, a->node) < std::pair(-b->exposedAfterUs, b->node);
    });
    for (size_t i = 0; i != std::min(shown, records.size()); ++i) {
      const AloneRecord &record = *records[i];
      if (record.exposedAfterUs <= 0)
        break;
      out << format("  %9.1f us  ", record.exposedAfterUs) << labelOf(graph, record.node, origins)
          << ", " << mib(graph.fullBytes(record.node)) << " over "
          << groupText(graph.group(graph.groupOf(record.node))) << "\n";
    }
  }
  printNearlyExposed(graph, result.alone, origins, out);
}
