// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/CustomOps.h"
#include "dialects/exec/GroupedOps.h"
#include "lowering/host/Emission.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shardc::host {
namespace {

std::string nameOf(Operation *op) {
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    return launch.getName().value_or(launch.getKernel()).str();
  if (auto gemm = dyn_cast<exec::GemmOp>(op))
    return gemm.getName().value_or("gemm").str();
  if (auto gemm = dyn_cast<exec::GroupedGemmOp>(op))
    return gemm.getName().value_or("grouped_gemm").str();
  if (auto call = dyn_cast<exec::CallSymbolOp>(op))
    return call.getName().value_or(call.getSymbol()).str();
  return std::string(nameOf(cast<exec::CollectiveCallInterface>(op).getKind()));
}

SmallVector<NamedAttribute> describe(exec::CollectiveCallInterface op) {
  SmallVector<Attribute> types;
  for (Value input : op.getInputs())
    types.push_back(TypeAttr::get(input.getType()));
  OpBuilder b(op.getContext());
  SmallVector<NamedAttribute> fields{
      b.getNamedAttr("kind", exec::CollectiveKindAttr::get(op.getContext(), op.getKind())),
      b.getNamedAttr("types", b.getArrayAttr(types)),
      b.getNamedAttr("elements", op.getElementTypes()),
      b.getNamedAttr("gather_dims", b.getDenseI64ArrayAttr(op.getGatherDims())),
      b.getNamedAttr("scatter_dims", b.getDenseI64ArrayAttr(op.getScatterDims())),
      b.getNamedAttr("root", b.getI64IntegerAttr(op.getRoot())),
      b.getNamedAttr("pairs", b.getDenseI64ArrayAttr(op.getPairs()))};
  if (op.getReductionAttr())
    fields.push_back(b.getNamedAttr("reduction", op.getReductionAttr()));
  return fields;
}

} // namespace

ProgramTables::ProgramTables(ModuleOp module) {
  OpBuilder b(module.getContext());
  for (auto entry : module.getOps<func::FuncOp>()) {
    if (!entry->hasAttr(exec::kEntryAttr))
      continue;
    if (auto list = entry->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr))
      for (auto symbol : list.getAsRange<dist::SymbolAttr>())
        symbols.insert({symbol.getName().getValue(), symbols.size()});
    // Ranks with programs of their own compare names: a collective has the same one in each.
    unsigned ordinal = 0;
    entry.walk([&](Operation *op) {
      if (!isa<exec::LaunchOp, exec::GemmOp, exec::GroupedGemmOp, exec::CallSymbolOp,
               exec::CollectiveOp, exec::StartOp>(op))
        return;
      if (auto collective = dyn_cast<exec::CollectiveCallInterface>(op)) {
        // Ranks that run a part of the sequence have gaps in it.
        ordinal = static_cast<unsigned>(dist::getOrdinal(op, ordinal));
        addCollective(collective, ordinal++);
      }
      usesBlas |= isa<exec::GemmOp, exec::GroupedGemmOp>(op);
      if (auto call = dyn_cast<exec::CallSymbolOp>(op); call && call.getLibrary())
        libraries.insert(b.getStrArrayAttr({*call.getLibrary(), call.getSymbol(), nameOf(op)}));
      opIndex[op] = ops.size();
      ops.push_back(b.getStrArrayAttr({nameOf(op), describePlace(op->getLoc())}));
    });
  }
}

unsigned ProgramTables::group(Attribute canonical) {
  return groups.insert({canonical, groups.size()}).first->second;
}

void ProgramTables::addCollective(exec::CollectiveCallInterface op, unsigned ordinal) {
  OpBuilder b(op->getContext());
  dist::GroupAttrInterface group = op.getGroup();
  SmallVector<NamedAttribute> fields = describe(op);
  fields.push_back(
      b.getNamedAttr("group", b.getI64IntegerAttr(this->group(group.getCanonicalGroup()))));
  fields.push_back(b.getNamedAttr("group_name", group));
  fields.push_back(b.getNamedAttr("location", b.getStringAttr(describePlace(op->getLoc()))));
  fields.push_back(b.getNamedAttr("name", b.getStringAttr(nameOf(op) + "." + Twine(ordinal))));
  collectiveIndex[op] = collectives.size();
  collectives.push_back(b.getDictionaryAttr(fields));
}

std::optional<unsigned> ProgramTables::op(Operation *op) const {
  auto it = opIndex.find(op);
  return it == opIndex.end() ? std::nullopt : std::optional(it->second);
}

std::optional<unsigned> ProgramTables::symbol(StringRef name) const {
  auto it = symbols.find(name);
  return it == symbols.end() ? std::nullopt : std::optional(it->second);
}

void ProgramTables::writeTo(ModuleOp module) {
  OpBuilder b(module.getContext());
  SmallVector<Attribute> list;
  for (auto &[group, index] : groups)
    list.push_back(group);
  module->setAttr(exec::kGroupsAttr, b.getArrayAttr(list));
  module->setAttr(exec::kCollectivesAttr, b.getArrayAttr(collectives));
  if (usesBlas)
    module->setAttr(exec::kUsesBlasAttr, b.getUnitAttr());
  if (!libraries.empty())
    module->setAttr(exec::kLibrariesAttr, b.getArrayAttr(libraries.getArrayRef()));
  module->setAttr(exec::kOpsAttr, b.getArrayAttr(ops));
}

} // namespace shardc::host
