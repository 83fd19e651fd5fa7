// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/MarkOwnRows.h"

#include "dialects/aten/Grouped.h"
#include "dialects/aten/OwnRows.h"

using namespace mlir;

void shardc::markOwnRows(func::FuncOp function, FunctionGraph &graph) {
  auto isOwner = [](Operation *) { return true; };
  auto isWhole = [](Value) { return true; };
  aten::OwnRows rows(isOwner, isWhole);
  SmallVector<std::pair<Value, int64_t>> reached;
  llvm::DenseSet<Value> seen;
  for (auto product : function.getBody().front().getOps<aten::IndexedMmOp>()) {
    Value index = aten::lookThroughIdentities(product.getIndex());
    reached.assign({{product.getResult(), 0}});
    seen.clear();
    while (!reached.empty()) {
      auto [value, dim] = reached.pop_back_val();
      if (!seen.insert(value).second || !rows.readByOwners(value, dim, index))
        continue;
      if (auto tensor = graph.tensorOf.find(value); tensor != graph.tensorOf.end())
        graph.graph.markOwnRows(tensor->second);
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (auto dims = aten::rowDimsOfResults(user, use.getOperandNumber(), dim))
          for (auto [next, at] : llvm::zip_equal(user->getResults(), *dims))
            reached.emplace_back(next, at);
      }
    }
  }
}
