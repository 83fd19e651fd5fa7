// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/CollectiveReport.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/GroupText.h"
#include "dialects/dist/RecomputeAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "passes/collectives/DecisionAttributes.h"
#include "passes/collectives/analysis/ExchangeBytes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace shardc {
namespace {

double bytesOf(RankedTensorType type) { return numBytes(type).value_or(0); }

/// `runBy`: the devices that run the function.
CollectiveRecord record(dist::CollectiveOpInterface op, ArrayRef<int64_t> runBy, Devices &devices) {
  CollectiveRecord r;
  r.kind = op.getCollectiveKind();
  r.group = dist::describeGroup(op.getGroup());
  r.groupSize = op.getGroup().getGroupSize();
  r.tensors = op.getTensors().size();
  double n = r.groupSize, ring = (n - 1) / n;
  std::optional<uint64_t> exchanged = exchangedBytes(op, runBy, devices);
  r.bytesPerRank = static_cast<double>(exchanged.value_or(0));
  for (unsigned t = 0; t < r.tensors && !exchanged; ++t) {
    double sent = bytesOf(op.getOperandType(t));
    switch (r.kind) {
    case CollectiveKind::AllReduce:
      r.bytesPerRank += 2 * ring * sent;
      break;
    case CollectiveKind::AllGather:
      r.bytesPerRank += ring * bytesOf(op.getResultTensorType(t));
      break;
    case CollectiveKind::ReduceScatter:
      r.bytesPerRank += ring * sent;
      break;
    case CollectiveKind::AllToAll:
      r.bytesPerRank += ring * sent;
      break;
    case CollectiveKind::Broadcast:
    case CollectiveKind::Permute:
      r.bytesPerRank += sent;
      break;
    }
  }
  llvm::raw_string_ostream type(r.elementType);
  if (r.tensors)
    type << op.getOperandType(0).getElementType();
  if (std::optional<Reduction> reduction = op.getReductionOrNone())
    r.reduction = reductionName(*reduction);
  r.module = getModulePath(op->getLoc()).str();
  r.location = describePlace(op->getLoc());
  r.backward = isBackward(op->getLoc());
  r.why = explainCollective(op);
  r.bucket = op->getAttrOfType<DictionaryAttr>(kBucketAttr);
  r.alone = op->getAttrOfType<DictionaryAttr>(kAloneAttr);
  return r;
}

/// A function that was specialised, or one that was not: then all devices run it as it is.
struct Entry {
  std::string name;
  std::vector<func::FuncOp> variants;
  std::vector<int64_t> variantOfDevice;
};

std::vector<Entry> findEntries(ModuleOp module, int64_t devices) {
  std::vector<Entry> entries;
  llvm::StringMap<std::pair<StringRef, dist::VariantsAttr>> byFirst;
  llvm::StringMap<func::FuncOp> functions;
  llvm::StringSet<> others;
  if (auto all = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr))
    for (NamedAttribute entry : all) {
      auto variants = cast<dist::VariantsAttr>(entry.getValue());
      byFirst[variants.getFunctions().front().getValue()] = {entry.getName(), variants};
      for (FlatSymbolRefAttr function : variants.getFunctions().drop_front())
        others.insert(function.getValue());
    }
  for (auto function : module.getOps<func::FuncOp>())
    functions[function.getName()] = function;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || others.contains(function.getName()))
      continue;
    auto found = byFirst.find(function.getName());
    if (found == byFirst.end()) {
      entries.push_back({function.getName().str(), {function}, std::vector<int64_t>(devices, 0)});
      continue;
    }
    auto [name, variants] = found->second;
    Entry &entry = entries.emplace_back();
    entry.name = name.str();
    for (FlatSymbolRefAttr variant : variants.getFunctions())
      entry.variants.push_back(functions.lookup(variant.getValue()));
    entry.variantOfDevice.assign(variants.getPositions().begin(), variants.getPositions().end());
  }
  return entries;
}

/// A collective counts for each module whose tensors it moves; its bytes and times are shared by
/// the sizes of these tensors.
void addToModules(const CollectiveRecord &r, ModuleTable &modules) {
  llvm::MapVector<std::pair<StringRef, unsigned>, double> shares;
  double total = 0;
  if (auto members = r.bucket ? r.bucket.getAs<ArrayAttr>("members") : ArrayAttr())
    for (auto member : members.getAsRange<DictionaryAttr>()) {
      auto module = member.getAs<StringAttr>("module");
      auto size = member.getAs<IntegerAttr>("bytes");
      double bytes = size ? static_cast<double>(size.getInt()) : 0;
      shares[{module ? module.getValue() : StringRef(), member.contains("backward")}] += bytes;
      total += bytes;
    }
  if (total == 0) {
    shares.clear();
    shares[{r.module, r.backward}] = total = 1;
  }
  for (auto &[place, bytes] : shares) {
    ModuleRecord &module = modules.of(place.first, place.second != 0);
    module.collectives += 1;
    module.bytesPerRank += r.bytesPerRank * bytes / total;
    module.collectiveUs += r.predicted.us * bytes / total;
    module.exposedUs += r.predicted.exposedUs * bytes / total;
  }
}

} // namespace

FailureOr<CollectiveReport> reportCollectives(ModuleOp module, const cost::CostModel &model) {
  CollectiveReport report;
  if (auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr))
    report.mesh = mesh.getValue();
  if (auto others = module->getAttrOfType<DictionaryAttr>(dist::kMeshesAttr))
    for (NamedAttribute other : others)
      report.meshes.emplace_back(other.getName().str(),
                                 cast<dist::MeshAttr>(other.getValue()).getValue());
  std::vector<int64_t> ranks = dist::findWorld(module).value_or(report.mesh).ranks();
  report.world = static_cast<int64_t>(ranks.size());
  Devices devices(dist::findWorld(module).value_or(report.mesh));
  for (const Entry &entry : findEntries(module, ranks.size())) {
    // Clones of one function have the same collectives in the same order, or some of them.
    std::map<int64_t, CollectiveRecord> records;
    for (auto [variant, function] : llvm::enumerate(entry.variants)) {
      int64_t place = 0;
      SmallVector<int64_t> runBy = devicesThatRun(function, devices);
      func::FuncOp(function).walk([&](dist::CollectiveOpInterface op) {
        CollectiveRecord next = record(op, runBy, devices);
        next.entry = entry.name;
        double bytes = next.bytesPerRank;
        auto [known, isNew] = records.try_emplace(dist::getOrdinal(op, place++), std::move(next));
        known->second.bytesPerRank = std::max(known->second.bytesPerRank, bytes);
      });
    }
    std::vector<CollectivePrediction> predicted;
    FailureOr<EntryPrediction> prediction =
        predictEntry(entry.variants, entry.variantOfDevice, ranks, model, predicted);
    if (failed(prediction))
      return failure();
    for (const CollectivePrediction &one : predicted)
      if (auto known = records.find(one.ordinal); known != records.end())
        known->second.predicted = one;
    for (auto &[ordinal, next] : records) {
      addToModules(next, prediction->modules);
      report.collectives.push_back(std::move(next));
    }
    std::vector<ModuleRecord> modules = prediction->modules.take();
    func::FuncOp first = entry.variants.front();
    auto recomputed = first->getAttrOfType<DictionaryAttr>(dist::kRecomputedAttr);
    if (recomputed && recomputed.getAs<ArrayAttr>("choices").empty())
      recomputed = nullptr;
    report.entries.push_back({entry.name, std::move(*prediction), std::move(modules),
                              first->getAttrOfType<DictionaryAttr>(kPredictedAttr), recomputed});
  }
  return report;
}

LogicalResult keepEntry(CollectiveReport &report, StringRef name, std::string &message) {
  auto isOther = [&](const EntryReport &entry) { return entry.name != name; };
  if (llvm::all_of(report.entries, isOther)) {
    message = "there is no entry '" + name.str() + "'; entries are ";
    llvm::raw_string_ostream os(message);
    llvm::interleaveComma(report.entries, os, [&](const EntryReport &entry) { os << entry.name; });
    return failure();
  }
  llvm::erase_if(report.entries, isOther);
  llvm::erase_if(report.collectives, [&](const CollectiveRecord &r) { return r.entry != name; });
  return success();
}

std::vector<ReportRemark> remarksOf(const CollectiveReport &report) {
  std::vector<ReportRemark> remarks;
  for (const CollectiveRecord &r : report.collectives)
    if (auto reason = r.alone ? r.alone.getAs<StringAttr>("reason") : StringAttr())
      remarks.push_back({(StringRef(nameOf(r.kind)) + " over " + r.group +
                          " is in no bucket: " + reason.getValue())
                             .str(),
                         r.module, r.location});
  return remarks;
}

} // namespace shardc
