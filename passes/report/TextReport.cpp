// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/Buckets.h"
#include "passes/report/CollectiveReport.h"
#include "passes/report/LayerPattern.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <map>

using namespace mlir;

namespace shardc {
namespace {

/// "12.0 KiB".
std::string formatBytes(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return llvm::formatv(unit ? "{0:f1} {1}" : "{0:f0} {1}", bytes, units[unit]).str();
}

std::string formatUs(double us) { return llvm::formatv("{0:f1} us", us).str(); }

double numberIn(DictionaryAttr attribute, StringRef name) {
  auto number = attribute.getAs<FloatAttr>(name);
  return number ? number.getValueAsDouble() : 0;
}

double bytesIn(DictionaryAttr attribute, StringRef name) {
  auto number = attribute.getAs<IntegerAttr>(name);
  return number ? static_cast<double>(number.getInt()) : 0;
}

StringRef textIn(DictionaryAttr attribute, StringRef name) {
  auto text = attribute.getAs<StringAttr>(name);
  return text ? text.getValue() : "";
}

/// Things by a key, in order of the first of each.
template <typename T>
using Grouped = llvm::MapVector<std::string, T, std::map<std::string, unsigned>>;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Cells are as wide as what is in them.
class Table {
public:
  explicit Table(std::vector<std::string> header, unsigned numLeft, unsigned firstLeft = 0)
      : firstLeft(firstLeft), numLeft(numLeft) {
    add(std::move(header));
  }
  /// Returns the number of the row.
  size_t add(std::vector<std::string> cells) {
    widths.resize(cells.size());
    for (auto [width, cell] : llvm::zip_equal(widths, cells))
      width = std::max(width, cell.size());
    rows.push_back(std::move(cells));
    return rows.size() - 1;
  }
  void print(size_t row, llvm::raw_ostream &os) const {
    std::string line;
    llvm::raw_string_ostream text(line);
    for (auto [i, cell] : llvm::enumerate(rows[row])) {
      bool left = i >= firstLeft && i < firstLeft + numLeft;
      text << (i ? "  " : " ");
      text << (left ? llvm::left_justify(cell, widths[i]) : llvm::right_justify(cell, widths[i]));
    }
    os << StringRef(line).rtrim() << "\n";
  }

  void printAll(llvm::raw_ostream &os) const {
    for (size_t row = 0; row < rows.size(); ++row)
      print(row, os);
  }

private:
  unsigned firstLeft, numLeft;
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> rows;
};

/// Collectives that differ in their layer only.
struct Line {
  CollectiveRecord first;
  LayerGroup location, why;
  int64_t count = 0;
  double bytes = 0, us = 0, exposedUs = 0;
  /// The least of those that are hidden, but would not be if they took twice as long.
  double slackUs = std::numeric_limits<double>::infinity();
};

std::string kindOf(const CollectiveRecord &r) {
  std::string kind(nameOf(r.kind));
  return r.reduction.empty() ? kind : kind + " " + r.reduction;
}

/// `tp=4` where it is an axis.
std::string groupOf(const CollectiveRecord &r, const Mesh &mesh) {
  for (const MeshAxis &axis : mesh.axes)
    if (axis.name == r.group)
      return r.group + "=" + std::to_string(r.groupSize);
  return r.group;
}

Grouped<Line> groupByLayer(ArrayRef<const CollectiveRecord *> collectives) {
  Grouped<Line> lines;
  for (auto [i, record] : llvm::enumerate(collectives)) {
    const CollectiveRecord &r = *record;
    LayerPattern location(r.location), why(r.why);
    // Each bucket is told on its own.
    std::string key =
        llvm::join_items("\n", r.bucket ? std::to_string(i) : "", kindOf(r), r.group, r.elementType,
                         std::to_string(r.tensors), llvm::formatv("{0}", r.bytesPerRank).str(),
                         location.key(), why.key());
    Line &line =
        lines.try_emplace(key, Line{r, LayerGroup(location), LayerGroup(why)}).first->second;
    line.location.add(location);
    line.why.add(why);
    line.count += 1;
    line.bytes += r.bytesPerRank;
    line.us += r.predicted.us;
    line.exposedUs += r.predicted.exposedUs;
    if (DictionaryAttr decision = r.bucket ? r.bucket : r.alone;
        decision && decision.get("slack_us") && r.predicted.exposedUs <= 0)
      if (double slackUs = numberIn(decision, "slack_us"); slackUs < r.predicted.us)
        line.slackUs = std::min(line.slackUs, slackUs);
  }
  return lines;
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

/// How many lines of members a person is shown; JSON has them all.
constexpr size_t shownMembers = 12;

struct Members {
  LayerGroup place;
  int64_t count = 0;
  double bytes = 0;
};

void printMembers(ArrayAttr members, llvm::raw_ostream &os) {
  Grouped<Members> groups;
  for (auto member : members.getAsRange<DictionaryAttr>()) {
    StringRef tensor = textIn(member, "tensor"), location = textIn(member, "location");
    LayerPattern place((tensor.empty() ? location : tensor + "  [" + location + "]").str());
    double bytes = bytesIn(member, "bytes");
    std::string key = place.key() + "\n" + std::to_string(bytes);
    Members &group = groups.try_emplace(key, Members{LayerGroup(place)}).first->second;
    group.place.add(place);
    group.count += 1;
    group.bytes = bytes;
  }
  size_t shown = 0, left = members.size();
  for (auto &[key, group] : groups) {
    if (shown++ == shownMembers)
      break;
    left -= group.count;
    os << llvm::formatv("          {0,3} of {1,10}  {2}\n", group.count, formatBytes(group.bytes),
                        group.place.str());
  }
  if (left)
    os << llvm::formatv("          {0,3} more\n", left);
}

void printBucket(DictionaryAttr bucket, llvm::raw_ostream &os) {
  auto members = bucket.getAs<ArrayAttr>("members");
  if (!members)
    return;
  os << llvm::formatv("        a bucket of {0}, {1} (cap {2}); exposed {3:f1} -> {4:f1} us\n",
                      members.size(), formatBytes(bytesIn(bucket, "bytes")),
                      bucket.get("cap_bytes") ? formatBytes(bytesIn(bucket, "cap_bytes")) : "auto",
                      numberIn(bucket, "exposed_before_us"), numberIn(bucket, "exposed_after_us"));
  StringRef closed = textIn(bucket, "closed");
  os << "        closed (" << closed << "): " << collectives::sentenceOf(closed) << "\n";
  printMembers(members, os);
}

void printCollectives(const CollectiveReport &report, StringRef entry, llvm::raw_ostream &os) {
  std::vector<const CollectiveRecord *> collectives;
  for (const CollectiveRecord &r : report.collectives)
    if (r.entry == entry)
      collectives.push_back(&r);
  if (report.entries.size() > 1)
    os << "\nentry " << entry << (collectives.empty() ? ": no communication" : "") << "\n";
  else if (collectives.empty())
    os << "no communication\n";
  if (collectives.empty())
    return;
  Table table(
      {"count", "collective", "over", "bytes each", "in all", "type", "predicted", "exposed"},
      /*numLeft=*/2, /*firstLeft=*/1);
  Grouped<Line> lines = groupByLayer(collectives);
  double bytes = 0;
  for (auto &[key, line] : lines) {
    const CollectiveRecord &r = line.first;
    table.add({std::to_string(line.count), kindOf(r), groupOf(r, report.mesh),
               formatBytes(r.bytesPerRank), formatBytes(line.bytes), r.elementType,
               formatUs(line.us), formatUs(line.exposedUs)});
    bytes += line.bytes;
  }
  os << "\n";
  table.print(0, os);
  for (auto [i, entry] : llvm::enumerate(lines)) {
    const Line &line = entry.second;
    table.print(i + 1, os);
    os << "        " << line.location.str();
    if (line.first.tensors != 1)
      os << " (" << line.first.tensors << " tensors)";
    os << "\n        " << line.why.str() << "\n";
    if (std::isfinite(line.slackUs))
      os << "        hidden, with a slack of " << formatUs(line.slackUs) << "\n";
    if (line.first.bucket)
      printBucket(line.first.bucket, os);
  }
  os << llvm::formatv("\n{0} collectives, {1} sent per rank in one step\n", collectives.size(),
                      formatBytes(bytes));
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The same module of several layers.
struct ModuleLine {
  LayerGroup name;
  ModuleRecord sum;
};

/// Nothing without a backward: the table of collectives has all there is to say.
void printModules(const EntryReport &entry, llvm::raw_ostream &os) {
  if (llvm::none_of(entry.modules, [](const ModuleRecord &module) { return module.backward; }))
    return;
  Table table({"module", "", "collectives", "sent", "predicted", "exposed", "compute",
               "kept for the backward"},
              /*numLeft=*/2);
  Grouped<std::array<std::optional<ModuleLine>, 2>> groups;
  for (const ModuleRecord &module : entry.modules) {
    LayerPattern pattern(module.module.empty() ? "(no module)" : module.module);
    std::optional<ModuleLine> &line = groups[pattern.key()][module.backward];
    if (!line)
      line.emplace(ModuleLine{LayerGroup(pattern), {module.module, module.backward}});
    line->name.add(pattern);
    line->sum.collectives += module.collectives;
    line->sum.bytesPerRank += module.bytesPerRank;
    line->sum.collectiveUs += module.collectiveUs;
    line->sum.exposedUs += module.exposedUs;
    line->sum.computeUs += module.computeUs;
    line->sum.keptBytes += module.keptBytes;
  }
  for (auto &[key, directions] : groups)
    for (const std::optional<ModuleLine> &line : directions)
      if (line)
        table.add({line->name.str(), line->sum.backward ? "backward" : "forward",
                   std::to_string(line->sum.collectives), formatBytes(line->sum.bytesPerRank),
                   formatUs(line->sum.collectiveUs), formatUs(line->sum.exposedUs),
                   formatUs(line->sum.computeUs),
                   line->sum.backward ? "" : formatBytes(line->sum.keptBytes)});
  os << "\n";
  table.printAll(os);
}

//===----------------------------------------------------------------------===//
// Around it
//===----------------------------------------------------------------------===//

void printHead(const CollectiveReport &report, llvm::raw_ostream &os) {
  auto printAxes = [&](const Mesh &mesh) {
    llvm::interleave(
        mesh.axes, os, [&](const MeshAxis &axis) { os << axis.name << "=" << axis.size; }, ",");
  };
  os << "mesh ";
  printAxes(report.mesh);
  os << ": " << report.mesh.numDevices() << " ranks\n";
  for (const auto &[name, mesh] : report.meshes) {
    os << "mesh " << name << " ";
    printAxes(mesh);
    os << ": ranks ";
    llvm::interleaveComma(mesh.ranks(), os);
    os << "\n";
  }
  if (report.world != report.mesh.numDevices())
    os << report.world << " ranks in all meshes\n";
  if (report.sizes.empty())
    return;
  os << "for ";
  llvm::interleaveComma(report.sizes, os, [&](const AssumedSize &size) {
    os << size.symbol << " = " << size.value;
    if (!size.where.empty())
      os << " (" << size.where << ")";
  });
  os << "; --size NAME=VALUE asks about others\n";
}

void printPrediction(const EntryReport &entry, llvm::raw_ostream &os) {
  const RankPrediction &slowest = entry.prediction.slowest();
  os << llvm::formatv("predicted for {0} on {1}: {2:f1} us a step, {3:f1} us of it waiting for "
                      "collectives; at most {4} of memory on a rank\n",
                      entry.name, entry.prediction.topology, slowest.stepUs, slowest.exposedUs,
                      formatBytes(static_cast<double>(entry.prediction.peakBytes())));
  if (entry.optimized)
    os << llvm::formatv("  as placed: {0:f1} us, {1:f1} us of it waiting; {2}\n",
                        numberIn(entry.optimized, "step_before_us"),
                        numberIn(entry.optimized, "exposed_before_us"),
                        formatBytes(bytesIn(entry.optimized, "peak_before_bytes")));
  if (entry.optimized && entry.optimized.get("step_most_us"))
    os << llvm::formatv(
        "  {0:f1} to {1:f1} us on networks up to twice as slow, with kernels 20 % off, "
        "with a late rank\n",
        numberIn(entry.optimized, "step_least_us"), numberIn(entry.optimized, "step_most_us"));
  if (!entry.recomputed)
    return;
  StringRef form = entry.recomputed.get("planned_bytes") ? "planned_" : "peak_";
  os << llvm::formatv(
      "  the backward computes {0} things again, {1:f1} us of the step; memory of a "
      "rank {2} -> {3}, {4}\n",
      entry.recomputed.getAs<ArrayAttr>("choices").size(), numberIn(entry.recomputed, "added_us"),
      formatBytes(bytesIn(entry.recomputed, (form + "before_bytes").str())),
      formatBytes(bytesIn(entry.recomputed, (form + "bytes").str())),
      form == "planned_" ? "as planned" : "estimated");
}

void printRemarks(ArrayRef<ReportRemark> remarks, llvm::raw_ostream &os) {
  Grouped<std::pair<LayerGroup, int64_t>> groups;
  for (const ReportRemark &remark : remarks) {
    LayerPattern pattern(remark.message +
                         (remark.location.empty() ? "" : "  [" + remark.location + "]"));
    auto &[group, count] = groups.try_emplace(pattern.key(), LayerGroup(pattern), 0).first->second;
    group.add(pattern);
    ++count;
  }
  if (!groups.empty())
    os << "\nremarks:\n";
  for (auto &[key, group] : groups)
    os << "  " << (group.second > 1 ? std::to_string(group.second) + " times: " : "")
       << group.first.str() << "\n";
}

} // namespace

void printText(const CollectiveReport &report, ArrayRef<ReportRemark> remarks,
               llvm::raw_ostream &os) {
  printHead(report, os);
  for (const EntryReport &entry : report.entries) {
    printCollectives(report, entry.name, os);
    printModules(entry, os);
  }
  for (const EntryReport &entry : report.entries)
    printPrediction(entry, os);
  printRemarks(remarks, os);
}

} // namespace shardc
