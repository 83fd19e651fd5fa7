// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/ExchangeBytes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "passes/collectives/analysis/LocalCosts.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

bool shardc::isExchange(CollectiveOpInterface op, unsigned tensor) {
  return op.getSplitDim(tensor) >= 0 && op.getSplitDim(tensor) == op.getConcatDim(tensor) &&
         !op.getSplitExtents(tensor).empty();
}

SmallVector<int64_t> shardc::devicesThatRun(func::FuncOp function, const Devices &devices) {
  SmallVector<int64_t> result;
  auto module = function->getParentOfType<ModuleOp>();
  auto all = module ? module->getAttrOfType<DictionaryAttr>(kSpecializationsAttr) : nullptr;
  if (all)
    for (NamedAttribute entry : all) {
      auto variants = cast<VariantsAttr>(entry.getValue());
      for (auto [device, variant] : llvm::enumerate(variants.getPositions()))
        if (variants.getFunctions()[variant].getValue() == function.getName())
          result.push_back(static_cast<int64_t>(device));
    }
  if (result.empty())
    llvm::append_range(result, llvm::seq<int64_t>(0, devices.size()));
  return result;
}

/// What leaves or arrives, but for what stays where it is.
static int64_t moved(ArrayRef<int64_t> counts, int64_t position) {
  return std::accumulate(counts.begin(), counts.end(), int64_t(0)) - counts[position];
}

std::optional<uint64_t> shardc::exchangedBytes(CollectiveOpInterface op, ArrayRef<int64_t> runBy,
                                               Devices &devices) {
  bool exchanges = false;
  uint64_t most = 0;
  for (int64_t device : runBy) {
    std::optional<int64_t> position = devices.position(op.getGroup(), device);
    if (!position)
      continue;
    // A rank sends and gets at the same time.
    uint64_t sent = 0, got = 0;
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      RankedTensorType type = op.getOperandType(i), result = op.getResultTensorType(i);
      uint64_t n = op.getGroup().getGroupSize();
      auto addEvenly = [&](uint64_t bytes) {
        sent += bytes * (n - 1) / n;
        got += bytes * (n - 1) / n;
      };
      if (!isExchange(op, i)) {
        addEvenly(bytesOf(type));
        continue;
      }
      exchanges = true;
      ArrayRef<int64_t> leaving = op.getSplitExtents(i), arriving = op.getConcatExtents(i);
      if (llvm::any_of(leaving, ShapedType::isDynamic) ||
          llvm::any_of(arriving, ShapedType::isDynamic)) {
        if (!type.hasStaticShape() || !result.hasStaticShape())
          return std::nullopt;
        // Counts that depend on values. One of the sides has room for as many as can come.
        addEvenly(std::min(bytesOf(type), bytesOf(result)));
        continue;
      }
      SmallVector<int64_t> shape(type.getShape());
      auto bytesOfElements = [&](int64_t elements) {
        shape[op.getSplitDim(i)] = elements;
        return bytesOf(type.clone(shape));
      };
      sent += bytesOfElements(moved(leaving, *position));
      got += bytesOfElements(moved(arriving, *position));
    }
    most = std::max({most, sent, got});
  }
  return exchanges ? std::optional(most) : std::nullopt;
}
