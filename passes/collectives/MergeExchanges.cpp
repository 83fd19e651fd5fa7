// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"

#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/analysis/LocalCosts.h"
#include "passes/collectives/analysis/Transfers.h"
#include "passes/collectives/simplify/Pairs.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace shardc {
#define GEN_PASS_DEF_MERGEEXCHANGES
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

/// How far an exchange looks for one before it, which keeps the pass linear in the ops.
constexpr unsigned kFarthest = 256;
/// Of one collective.
constexpr size_t kMostTensors = 64;

/// Two exchanges of a block, and what is between them.
struct Meeting {
  CollectiveOpInterface first, second;
  /// What depends on the first one, in order.
  SmallVector<Operation *> behind;
  /// By how much the first one is later, in microseconds: what the second one needs and the first
  /// does not, and its bytes.
  double delayUs = 0;
};

struct MergeExchanges : shardc::impl::MergeExchangesBase<MergeExchanges> {
  using MergeExchangesBase::MergeExchangesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<OptimizeInput> input = readOptimizeText(module, {topology, "auto", "", sizes}, {});
    if (failed(input))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(merge(function, *input)))
        return signalPassFailure();
  }

private:
  LogicalResult merge(func::FuncOp function, const OptimizeInput &input) {
    auto exchanges = [](Block &block) {
      return llvm::to_vector(llvm::make_filter_range(
          block.getOps<CollectiveOpInterface>(), [](CollectiveOpInterface op) {
            return op.getCollectiveKind() == CollectiveKind::AllToAll && !op.isAsync();
          }));
    };
    return whileSynchronous(function, [&](AsyncPairs &pairs) -> LogicalResult {
      std::optional<LocalCosts> costs;
      for (Block &block : function.getBody()) {
        SmallVector<CollectiveOpInterface> all = exchanges(block);
        if (all.size() < 2)
          continue;
        if (!costs) {
          FailureOr<LocalCosts> computed = LocalCosts::compute(function, *input.model, input.sizes);
          if (failed(computed))
            return failure();
          costs.emplace(std::move(*computed));
        }
        mergeIn(all, *costs, *input.model, pairs);
      }
      return success();
    });
  }

  void mergeIn(ArrayRef<CollectiveOpInterface> all, const LocalCosts &costs,
               const cost::CostModel &model, AsyncPairs &pairs) {
    // The last one of each group and element type.
    llvm::DenseMap<std::pair<Attribute, Type>, CollectiveOpInterface> last;
    for (CollectiveOpInterface op : all) {
      if (op->getNumResults() == 0)
        continue;
      CollectiveOpInterface &before =
          last[{op.getGroup().getCanonicalGroup(), op.getOperandType(0).getElementType()}];
      std::optional<Meeting> found = before ? meet(before, op, costs, model) : std::nullopt;
      before = found ? together(*found, pairs) : op;
    }
  }

  /// Nothing where one depends on the other, or the first would be later by more than what one
  /// exchange less saves.
  static std::optional<Meeting> meet(CollectiveOpInterface first, CollectiveOpInterface second,
                                     const LocalCosts &costs, const cost::CostModel &model) {
    if (first->getNumResults() + second->getNumResults() > kMostTensors)
      return std::nullopt;
    Meeting meeting{first, second, {}};
    llvm::DenseSet<Operation *> dependent{first};
    SmallVector<Operation *> between;
    for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode()) {
      if (between.size() == kFarthest || op->getNumRegions() != 0)
        return std::nullopt;
      between.push_back(op);
      if (!dependsOnAny(op, dependent))
        continue;
      // It is moved behind the second one.
      if (!isMemoryEffectFree(op))
        return std::nullopt;
      dependent.insert(op);
      meeting.behind.push_back(op);
    }
    if (dependsOnAny(second, dependent))
      return std::nullopt;
    llvm::DenseSet<Operation *> needed;
    auto need = [&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Operation *made = operand.getDefiningOp())
          needed.insert(made);
    };
    need(second);
    for (Operation *op : llvm::reverse(between)) {
      if (!needed.contains(op))
        continue;
      need(op);
      if (isa<CollectiveOpInterface>(op))
        return std::nullopt; // how long it is waited for is not known here
      if (double us = costs.kernelUs(op))
        meeting.delayUs += model.launchUs() + us;
    }
    cost::Group ranks{static_cast<uint32_t>(first.getGroup().getGroupSize())};
    if (!model.supports(CollectiveKind::AllToAll))
      return std::nullopt;
    // What reads the first one waits for the second one's bytes as well.
    double latency = model.latencyUs(CollectiveKind::AllToAll, ranks);
    meeting.delayUs +=
        model.collectiveUs(CollectiveKind::AllToAll, ranks, fullBytes(second, costs)) - latency;
    if (meeting.delayUs > latency)
      return std::nullopt;
    return meeting;
  }

  /// As those of an even all-to-all, of whose operand a rank keeps its part.
  static uint64_t fullBytes(CollectiveOpInterface op, const LocalCosts &costs) {
    uint64_t size = op.getGroup().getGroupSize(), bytes = 0;
    if (std::optional<uint64_t> moved = costs.exchangedBytes(op); moved && size > 1)
      return (*moved * size + size - 2) / (size - 1);
    for (Value tensor : op.getTensors())
      bytes += costs.bytesOf(tensor);
    return bytes;
  }

  static bool dependsOnAny(Operation *op, const llvm::DenseSet<Operation *> &ops) {
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return ops.contains(operand.getDefiningOp()); });
  }

  CollectiveOpInterface together(const Meeting &meeting, AsyncPairs &pairs) {
    CollectiveOpInterface first = meeting.first, second = meeting.second;
    SmallVector<Transfer> transfers = getTransfers(first);
    llvm::append_range(transfers, getTransfers(second));
    OpBuilder builder(second);
    CollectiveOpInterface merged =
        buildCollective(builder, first->getLoc(), first, first.getGroup(), transfers);
    ResultRange results = merged->getResults();
    first->replaceAllUsesWith(results.take_front(first->getNumResults()));
    second->replaceAllUsesWith(results.drop_front(first->getNumResults()));
    Operation *at = second;
    for (Operation *op : meeting.behind) {
      op->moveAfter(at);
      at = op;
    }
    for (CollectiveOpInterface old : {first, second}) {
      pairs.forget(old);
      old->erase();
    }
    ++numMerged;
    return merged;
  }
};

} // namespace
