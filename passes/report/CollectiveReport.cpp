// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/CollectiveReport.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/GroupText.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/DecisionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace shardc {
namespace {

/// Bytes of a tensor; dynamic dims count as one element, and are said so.
double bytesOf(RankedTensorType type, bool &symbolic) {
  double bytes = (type.getElementTypeBitWidth() + 7) / 8;
  for (int64_t size : type.getShape()) {
    symbolic |= ShapedType::isDynamic(size);
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  }
  return bytes;
}

CollectiveRecord record(dist::CollectiveOpInterface op) {
  CollectiveRecord r;
  r.kind = op.getCollectiveKind();
  r.group = dist::describeGroup(op.getGroup());
  r.groupSize = op.getGroup().getGroupSize();
  r.tensors = op.getTensors().size();
  double n = r.groupSize, ring = (n - 1) / n;
  for (unsigned t = 0; t < r.tensors; ++t) {
    double sent = bytesOf(op.getOperandType(t), r.symbolic);
    switch (r.kind) {
    case dist::CollectiveKind::AllReduce:
      r.bytesPerRank += 2 * ring * sent;
      break;
    case dist::CollectiveKind::AllGather:
      r.bytesPerRank += ring * bytesOf(op.getResultTensorType(t), r.symbolic);
      break;
    case dist::CollectiveKind::ReduceScatter:
    case dist::CollectiveKind::AllToAll:
      r.bytesPerRank += ring * sent;
      break;
    case dist::CollectiveKind::Broadcast:
    case dist::CollectiveKind::Permute:
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
  r.bucket = op->getAttrOfType<DictionaryAttr>(kBucketAttr);
  r.alone = op->getAttrOfType<DictionaryAttr>(kAloneAttr);
  return r;
}

/// Attributes of decisions hold numbers, texts and lists of texts.
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
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue().str();
  return nullptr;
}

double numberIn(DictionaryAttr attribute, StringRef name) {
  auto number = attribute.getAs<FloatAttr>(name);
  return number ? number.getValueAsDouble() : 0;
}

/// "bucket of 3, 12288 bytes, cap 26214400, closed by cap; exposed 51.0 -> 17.0 us: a, b, c"
void printBucket(DictionaryAttr bucket, llvm::raw_ostream &os) {
  auto members = bucket.getAs<ArrayAttr>("members");
  auto bytes = bucket.getAs<IntegerAttr>("bytes"), cap = bucket.getAs<IntegerAttr>("cap_bytes");
  auto closed = bucket.getAs<StringAttr>("closed");
  if (!members || !bytes || !closed)
    return;
  os << "       bucket of " << members.size() << ", " << bytes.getInt() << " bytes, cap ";
  if (cap)
    os << cap.getInt();
  else
    os << "auto";
  os << ", closed by " << closed.getValue()
     << llvm::format("; exposed %.1f -> %.1f us: ", numberIn(bucket, "exposed_before_us"),
                     numberIn(bucket, "exposed_after_us"));
  llvm::interleaveComma(members, os,
                        [&](Attribute member) { os << cast<StringAttr>(member).getValue(); });
  os << "\n";
}

int64_t roundedBytes(double bytes) { return static_cast<int64_t>(bytes + 0.5); }

} // namespace

CollectiveReport reportCollectives(ModuleOp module) {
  CollectiveReport report;
  if (auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr))
    report.mesh = mesh.getValue();
  // All clones of one function have the same collectives in the same order.
  bool first = true;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!report.predicted)
      report.predicted = function->getAttrOfType<DictionaryAttr>(kPredictedAttr);
    unsigned position = 0;
    function.walk([&](dist::CollectiveOpInterface op) {
      CollectiveRecord next = record(op);
      if (first)
        report.collectives.push_back(std::move(next));
      else if (position < report.collectives.size())
        report.collectives[position].bytesPerRank =
            std::max(report.collectives[position].bytesPerRank, next.bytesPerRank);
      ++position;
    });
    first &= position == 0;
  }
  return report;
}

llvm::json::Object toJson(const CollectiveReport &report) {
  llvm::json::Object mesh;
  for (const MeshAxis &axis : report.mesh.axes)
    mesh[axis.name] = axis.size;
  llvm::json::Array collectives;
  struct Total {
    int64_t count = 0, tensors = 0;
    double bytes = 0;
  };
  llvm::MapVector<StringRef, Total> totals;
  for (auto kind : {dist::CollectiveKind::AllReduce, dist::CollectiveKind::AllGather,
                    dist::CollectiveKind::ReduceScatter, dist::CollectiveKind::AllToAll,
                    dist::CollectiveKind::Broadcast, dist::CollectiveKind::Permute})
    totals[dist::stringifyCollectiveKind(kind)];
  for (const CollectiveRecord &r : report.collectives) {
    StringRef kind = dist::stringifyCollectiveKind(r.kind);
    Total &total = totals[kind];
    total.count += 1;
    total.tensors += r.tensors;
    total.bytes += r.bytesPerRank;
    llvm::json::Object entry{{"kind", kind},
                             {"group", r.group},
                             {"group_size", r.groupSize},
                             {"count", 1},
                             {"tensors", r.tensors},
                             {"bytes_per_rank", roundedBytes(r.bytesPerRank)},
                             {"element_type", r.elementType},
                             {"module", r.module},
                             {"location", r.location}};
    if (!r.reduction.empty())
      entry["reduction"] = r.reduction;
    if (r.symbolic)
      entry["symbolic"] = true;
    if (r.bucket)
      entry["bucket"] = toJson(Attribute(r.bucket));
    if (r.alone)
      entry["alone"] = toJson(Attribute(r.alone));
    collectives.push_back(std::move(entry));
  }
  llvm::json::Object totalsJson;
  for (auto &[kind, total] : totals)
    totalsJson[kind] = llvm::json::Object{{"count", total.count},
                                          {"tensors", total.tensors},
                                          {"bytes_per_rank", roundedBytes(total.bytes)}};
  llvm::json::Object json{{"world", report.mesh.numDevices()},
                          {"mesh", std::move(mesh)},
                          {"collectives", std::move(collectives)},
                          {"totals", std::move(totalsJson)}};
  if (report.predicted)
    json["predicted"] = toJson(Attribute(report.predicted));
  return json;
}

std::vector<AloneRemark> remarksOf(const CollectiveReport &report) {
  std::vector<AloneRemark> remarks;
  for (const CollectiveRecord &r : report.collectives)
    if (auto reason = r.alone ? r.alone.getAs<StringAttr>("reason") : StringAttr())
      remarks.push_back({(dist::stringifyCollectiveKind(r.kind) + " over " + r.group +
                          " is in no bucket: " + reason.getValue())
                             .str(),
                         r.module, r.location});
  return remarks;
}

/// `reduce_scatter sum`.
static std::string kindOf(const CollectiveRecord &r) {
  return dist::stringifyCollectiveKind(r.kind).str() +
         (r.reduction.empty() ? "" : " " + r.reduction);
}

void printText(const CollectiveReport &report, llvm::raw_ostream &os) {
  os << "mesh " << report.mesh.str() << ": " << report.mesh.numDevices() << " ranks\n";
  if (report.collectives.empty()) {
    os << "no communication\n";
    return;
  }
  double total = 0;
  size_t kindWidth = 17, groupWidth = 10;
  for (const CollectiveRecord &r : report.collectives) {
    kindWidth = std::max(kindWidth, kindOf(r).size() + 1);
    groupWidth = std::max(groupWidth, r.group.size() + 1);
  }
  os << "     " << llvm::left_justify("kind", kindWidth) << llvm::left_justify("over", groupWidth)
     << "  bytes per rank  type   from\n";
  for (auto [i, r] : llvm::enumerate(report.collectives)) {
    os << llvm::format("%4zu ", i) << llvm::left_justify(kindOf(r), kindWidth)
       << llvm::left_justify(r.group, groupWidth)
       << llvm::format("%16lld", static_cast<long long>(roundedBytes(r.bytesPerRank)))
       << (r.symbolic ? "+ " : "  ") << llvm::left_justify(r.elementType, 6) << " " << r.location
       << (r.tensors == 1 ? "" : " (" + std::to_string(r.tensors) + " tensors)") << "\n";
    if (r.bucket)
      printBucket(r.bucket, os);
    total += r.bytesPerRank;
  }
  os << report.collectives.size() << " collectives, " << roundedBytes(total)
     << " bytes per rank in one step\n";
  if (report.predicted)
    os << llvm::format("predicted: step %.1f us, of which exposed communication %.1f us "
                       "(unoptimised: %.1f and %.1f)\n",
                       numberIn(report.predicted, "step_us"),
                       numberIn(report.predicted, "exposed_us"),
                       numberIn(report.predicted, "step_before_us"),
                       numberIn(report.predicted, "exposed_before_us"));
  if (llvm::any_of(report.collectives, [](const CollectiveRecord &r) { return r.symbolic; }))
    os << "+ with every symbolic dim counted as 1\n";
}

} // namespace shardc
