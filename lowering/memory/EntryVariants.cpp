// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/EntryVariants.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;

SmallVector<SmallVector<func::FuncOp>> shardc::memory::groupVariants(ModuleOp module) {
  llvm::StringMap<StringRef> functionOf;
  if (auto all = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr))
    for (NamedAttribute function : all)
      for (FlatSymbolRefAttr variant : cast<dist::VariantsAttr>(function.getValue()).getFunctions())
        functionOf[variant.getValue()] = function.getName();
  llvm::MapVector<StringRef, SmallVector<func::FuncOp>> groups;
  for (auto entry : module.getOps<func::FuncOp>())
    if (entry->hasAttr(exec::kEntryAttr)) {
      auto it = functionOf.find(entry.getName());
      groups[it == functionOf.end() ? entry.getName() : it->second].push_back(entry);
    }
  SmallVector<SmallVector<func::FuncOp>> lists;
  for (auto &[name, list] : groups)
    lists.push_back(std::move(list));
  return lists;
}

std::vector<std::pair<int64_t, exec::CollectiveCallInterface>>
shardc::memory::collectivesOf(func::FuncOp entry) {
  std::vector<std::pair<int64_t, exec::CollectiveCallInterface>> list;
  for (Operation &op : entry.getBody().front())
    if (auto collective = dyn_cast<exec::CollectiveCallInterface>(op))
      list.emplace_back(dist::getOrdinal(&op, static_cast<int64_t>(list.size())), collective);
  return list;
}
