// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/CollectiveReport.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;

namespace shardc {
namespace {

int64_t roundedBytes(double bytes) { return static_cast<int64_t>(bytes + 0.5); }

/// Times to a nanosecond: more digits would be noise.
double roundedUs(double us) { return std::round(us * 1e3) / 1e3; }

/// Attributes of decisions hold numbers, truth values, texts, lists and dictionaries.
llvm::json::Value toJson(Attribute attribute) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    llvm::json::Object object;
    for (NamedAttribute entry : dictionary)
      object[entry.getName().getValue()] = toJson(entry.getValue());
    return object;
  }
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    llvm::json::Array array;
    for (Attribute element : list)
      array.push_back(toJson(element));
    return array;
  }
  if (auto truth = dyn_cast<BoolAttr>(attribute))
    return truth.getValue();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue().str();
  return nullptr;
}

llvm::json::Object toJson(const EntryReport &entry) {
  const EntryPrediction &prediction = entry.prediction;
  llvm::json::Array ranks;
  for (const RankPrediction &rank : prediction.ranks)
    ranks.push_back(llvm::json::Object{{"rank", rank.rank},
                                       {"step_us", roundedUs(rank.stepUs)},
                                       {"exposed_us", roundedUs(rank.exposedUs)},
                                       {"peak_bytes", static_cast<int64_t>(rank.peakBytes)}});
  llvm::json::Object json{{"topology", prediction.topology},
                          {"step_us", roundedUs(prediction.slowest().stepUs)},
                          {"exposed_us", roundedUs(prediction.slowest().exposedUs)},
                          {"peak_bytes", static_cast<int64_t>(prediction.peakBytes())},
                          {"ranks", std::move(ranks)}};
  for (StringRef key : {"step_before_us", "exposed_before_us", "peak_before_bytes", "step_least_us",
                        "step_most_us"})
    if (Attribute before = entry.optimized ? entry.optimized.get(key) : Attribute())
      json[key] = toJson(before);
  if (entry.recomputed)
    json["recomputed"] = toJson(entry.recomputed);
  return json;
}

llvm::json::Object toJson(const CollectiveRecord &r) {
  llvm::json::Object json{{"entry", r.entry},
                          {"kind", StringRef(nameOf(r.kind))},
                          {"group", r.group},
                          {"group_size", r.groupSize},
                          {"count", 1},
                          {"tensors", r.tensors},
                          {"bytes_per_rank", roundedBytes(r.bytesPerRank)},
                          {"element_type", r.elementType},
                          {"module", r.module},
                          {"backward", r.backward},
                          {"location", r.location},
                          {"why", r.why},
                          {"predicted_us", roundedUs(r.predicted.us)},
                          {"exposed_us", roundedUs(r.predicted.exposedUs)}};
  if (!r.reduction.empty())
    json["reduction"] = r.reduction;
  if (r.bucket)
    json["bucket"] = toJson(Attribute(r.bucket));
  if (r.alone)
    json["alone"] = toJson(Attribute(r.alone));
  return json;
}

llvm::json::Array modulesOf(const CollectiveReport &report) {
  llvm::json::Array modules;
  for (const EntryReport &entry : report.entries)
    for (const ModuleRecord &module : entry.modules)
      modules.push_back(llvm::json::Object{{"entry", entry.name},
                                           {"module", module.module},
                                           {"backward", module.backward},
                                           {"collectives", module.collectives},
                                           {"bytes_per_rank", roundedBytes(module.bytesPerRank)},
                                           {"predicted_us", roundedUs(module.collectiveUs)},
                                           {"exposed_us", roundedUs(module.exposedUs)},
                                           {"compute_us", roundedUs(module.computeUs)},
                                           {"kept_bytes", roundedBytes(module.keptBytes)}});
  return modules;
}

llvm::json::Object totalsOf(const CollectiveReport &report) {
  struct Total {
    int64_t count = 0, tensors = 0;
    double bytes = 0;
  };
  llvm::MapVector<StringRef, Total> totals;
  for (const CollectiveKindFacts &kind : collectiveKinds)
    totals[StringRef(kind.name)];
  for (const CollectiveRecord &r : report.collectives) {
    Total &total = totals[StringRef(nameOf(r.kind))];
    total.count += 1;
    total.tensors += r.tensors;
    total.bytes += r.bytesPerRank;
  }
  llvm::json::Object json;
  for (auto &[kind, total] : totals)
    json[kind] = llvm::json::Object{{"count", total.count},
                                    {"tensors", total.tensors},
                                    {"bytes_per_rank", roundedBytes(total.bytes)}};
  return json;
}

} // namespace

llvm::json::Object toJson(const CollectiveReport &report) {
  llvm::json::Object mesh, sizes;
  for (const MeshAxis &axis : report.mesh.axes)
    mesh[axis.name] = axis.size;
  for (const AssumedSize &size : report.sizes)
    sizes[size.symbol] = size.value;
  llvm::json::Array collectives;
  for (const CollectiveRecord &r : report.collectives)
    collectives.push_back(toJson(r));
  llvm::json::Object json{{"world", report.world},      {"mesh", std::move(mesh)},
                          {"sizes", std::move(sizes)},  {"collectives", std::move(collectives)},
                          {"totals", totalsOf(report)}, {"modules", modulesOf(report)}};
  llvm::json::Object meshes;
  for (const auto &[name, other] : report.meshes) {
    llvm::json::Object axes;
    for (const MeshAxis &axis : other.axes)
      axes[axis.name] = axis.size;
    meshes[name] =
        llvm::json::Object{{"axes", std::move(axes)}, {"ranks", llvm::json::Array(other.ranks())}};
  }
  if (!meshes.empty())
    json["meshes"] = std::move(meshes);
  if (report.entries.size() == 1) {
    json["predicted"] = toJson(report.entries.front());
    return json;
  }
  llvm::json::Object predicted;
  for (const EntryReport &entry : report.entries)
    predicted[entry.name] = toJson(entry);
  json["predicted"] = std::move(predicted);
  return json;
}

} // namespace shardc
