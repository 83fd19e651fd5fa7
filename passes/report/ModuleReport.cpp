// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/ModuleReport.h"

#include "dialects/interfaces/ModelLocation.h"

using namespace mlir;

namespace shardc {

ModuleRecord &ModuleTable::of(StringRef module, bool backward) {
  std::optional<ModuleRecord> &record = records[module][backward];
  if (!record)
    record.emplace(ModuleRecord{module.str(), backward});
  return *record;
}

std::vector<ModuleRecord> ModuleTable::take() {
  std::vector<ModuleRecord> list;
  for (auto &[module, directions] : records)
    for (std::optional<ModuleRecord> &record : directions)
      if (record)
        list.push_back(std::move(*record));
  return list;
}

ModuleTable tabulateModules(const ProgramGraph &program) {
  using collectives::NodeId;
  using collectives::ValueId;
  const collectives::Graph &graph = program.graph;
  ModuleTable table;
  auto placeOf = [&](NodeId node) { return program.opOf[node]->getLoc(); };
  llvm::DenseSet<ValueId> kept;
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    bool backward = isBackward(placeOf(node));
    if (graph.isKernel(node))
      table.of(getModulePath(placeOf(node)), backward).computeUs += graph.durationUs(node);
    if (!backward)
      continue;
    for (ValueId value : graph.operands(node)) {
      ValueId storage = graph.rootOf(value);
      NodeId maker = graph.producerOf(storage);
      if (maker == collectives::none || isBackward(placeOf(maker)) || !kept.insert(storage).second)
        continue;
      table.of(getModulePath(placeOf(maker)), false).keptBytes +=
          static_cast<double>(graph.bytesOf(storage));
    }
  }
  return table;
}

} // namespace shardc
