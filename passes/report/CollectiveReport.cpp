// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/CollectiveReport.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/GroupText.h"
#include "dialects/interfaces/ModelLocation.h"

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
  return r;
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
    collectives.push_back(std::move(entry));
  }
  llvm::json::Object totalsJson;
  for (auto &[kind, total] : totals)
    totalsJson[kind] = llvm::json::Object{{"count", total.count},
                                          {"tensors", total.tensors},
                                          {"bytes_per_rank", roundedBytes(total.bytes)}};
  return llvm::json::Object{{"world", report.mesh.numDevices()},
                            {"mesh", std::move(mesh)},
                            {"collectives", std::move(collectives)},
                            {"totals", std::move(totalsJson)}};
}

void printText(const CollectiveReport &report, llvm::raw_ostream &os) {
  os << "mesh " << report.mesh.str() << ": " << report.mesh.numDevices() << " ranks\n";
  if (report.collectives.empty()) {
    os << "no communication\n";
    return;
  }
  double total = 0;
  os << "     kind             over        bytes per rank  type   from\n";
  for (auto [i, r] : llvm::enumerate(report.collectives)) {
    std::string kind = dist::stringifyCollectiveKind(r.kind).str() +
                       (r.reduction.empty() ? "" : " " + r.reduction);
    os << llvm::format("%4zu ", i) << llvm::left_justify(kind, 17)
       << llvm::left_justify(r.group, 10)
       << llvm::format("%16lld", static_cast<long long>(roundedBytes(r.bytesPerRank)))
       << (r.symbolic ? "+ " : "  ") << llvm::left_justify(r.elementType, 6) << " " << r.location
       << (r.tensors == 1 ? "" : " (" + std::to_string(r.tensors) + " tensors)") << "\n";
    total += r.bytesPerRank;
  }
  os << report.collectives.size() << " collectives, " << roundedBytes(total)
     << " bytes per rank in one step\n";
  if (llvm::any_of(report.collectives, [](const CollectiveRecord &r) { return r.symbolic; }))
    os << "+ with every symbolic dim counted as 1\n";
}

} // namespace shardc
