// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Passes.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/RecomputeAttributes.h"
#include "dialects/exec/Exec.h"
#include "dialects/interfaces/ModelLocation.h"
#include "pipeline/Steps.h"
#include "support/ByteSize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;
using namespace shardc;

namespace shardc {
#define GEN_PASS_DEF_FITMEMORY
#include "pipeline/Passes.h.inc"
} // namespace shardc

namespace {

/// How often the limit of the estimate is moved before everything that helps is computed again.
constexpr unsigned kMostMoves = 4;
/// Room under the limit, as a part of it, that is worth another try with less recomputation.
constexpr uint64_t kWorthwhileRoom = 50;
/// How often the scheduler gets less room before the program's order is kept.
constexpr unsigned kMostOrders = 3;

/// One choice and its bytes.
struct Trial {
  /// What dist-recompute is told; nothing: no limit.
  std::optional<uint64_t> limit;
  /// What the scheduler is told; nothing: the program's order is kept.
  std::optional<uint64_t> scheduled;
  uint64_t planned = 0;
  /// Of these, inputs and outputs, which are the caller's.
  uint64_t caller = 0;
};

bool hasBackward(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isBackward(op->getLoc()) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

uint64_t totalBytes(DictionaryAttr memory) {
  ArrayRef<int64_t> parameters = memory.getAs<DenseI64ArrayAttr>("parameters").asArrayRef();
  return std::accumulate(parameters.begin(), parameters.end(), uint64_t(0)) +
         memory.getAs<IntegerAttr>("caller").getInt() + memory.getAs<IntegerAttr>("arena").getInt();
}

class FitMemory : public shardc::impl::FitMemoryBase<FitMemory> {
public:
  using FitMemoryBase::FitMemoryBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    PipelineOptions defaults;
    OpPassManager passes(ModuleOp::getOperationName());
    addAll(passes, defaults, {}, {});
    passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    options = std::make_shared<PipelineOptions>();
    if (failed(readOptions()))
      return signalPassFailure();
    entries.clear();
    hasCollectives = false;
    for (auto function : module.getOps<func::FuncOp>())
      if (hasBackward(function)) {
        entries.insert(function.getName());
        hasCollectives |= !function.getOps<dist::CollectiveOpInterface>().empty();
      }
    bool bestEffort = options->bestEffort;
    Trial chosen{std::nullopt, limit};
    std::optional<Trial> first;
    if (!entries.empty())
      first = run(std::nullopt, hasCollectives ? std::optional(limit) : std::nullopt);
    // What cannot be planned is told by the passes that come next.
    if (first)
      chosen = first->planned > limit ? search(*first) : *first;
    if (chosen.planned > limit && !bestEffort) {
      getOperation().emitOpError() << "found no way to meet the memory limit of " << limit
                                   << " bytes: a rank needs " << first->planned
                                   << " bytes, and the least that computing values again was found "
                                      "to need is "
                                   << chosen.planned << "; allow at least that much";
      return signalPassFailure();
    }
    OpPassManager passes(ModuleOp::getOperationName());
    addRecompute(passes, *options, chosen.limit, /*remarks=*/true);
    // What was planned is what was found to fit, or to take least.
    addOrder(passes, *options, chosen.scheduled, bestEffort || first);
    if (failed(runPipeline(passes, module)))
      return signalPassFailure();
    if (first)
      record(*first, chosen);
  }

private:
  LogicalResult readOptions() {
    StringRef text = pipeline;
    // Printed options have braces around them, which the parser takes off.
    if (text.consume_front("{"))
      text.consume_back("}");
    std::string problem;
    llvm::raw_string_ostream out(problem);
    if (failed(options->parseFromString(text, out)))
      return getOperation().emitOpError()
             << "has options that the pipeline does not have: " << problem;
    std::optional<uint64_t> parsed = parseByteSize(options->memoryLimit.getValue());
    if (!parsed || *parsed == 0)
      return getOperation().emitOpError() << "needs a memory limit to fit: 'memory-limit' of the "
                                             "pipeline's options is a number of "
                                             "bytes, e.g. 2GiB, not '"
                                          << options->memoryLimit << "'";
    limit = *parsed;
    return success();
  }

  static void addRecompute(OpPassManager &passes, const PipelineOptions &options,
                           std::optional<uint64_t> estimate, bool remarks) {
    RecomputeOptions recompute = recomputeOptions(options);
    recompute.memoryLimit = estimate ? std::to_string(*estimate) : "";
    recompute.remarks = remarks;
    passes.addPass(createRecompute(recompute));
  }

  static void addOrder(OpPassManager &passes, const PipelineOptions &options,
                       std::optional<uint64_t> bytes, bool bestEffort) {
    addSchedule(passes, options,
                {bytes ? std::to_string(*bytes) : "", bytes.has_value(), bestEffort});
  }

  static void addAll(OpPassManager &passes, const PipelineOptions &options,
                     std::optional<uint64_t> estimate, std::optional<uint64_t> scheduled) {
    addRecompute(passes, options, estimate, /*remarks=*/false);
    addOrder(passes, options, scheduled, /*bestEffort=*/true);
    addSpecialize(passes, options);
    addPlanMemory(passes, options);
  }

  /// Plans a copy of the module. Nothing where that fails, or where sizes are not known.
  std::optional<Trial> run(std::optional<uint64_t> estimate, std::optional<uint64_t> scheduled) {
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    ++numTrials;
    Trial trial{estimate, scheduled};
    {
      ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
      PassManager passes(&getContext(), ModuleOp::getOperationName());
      passes.enableVerifier(false);
      addAll(passes, *options, estimate, scheduled);
      if (failed(passes.run(*copy)))
        return std::nullopt;
    }
    for (auto function : copy->getOps<func::FuncOp>()) {
      if (!function->hasAttr(exec::kEntryAttr) || !isOfEntry(function.getName()))
        continue;
      auto memory = function->getAttrOfType<DictionaryAttr>(exec::kMemoryAttr);
      if (!memory)
        return std::nullopt;
      trial.planned = std::max(trial.planned, totalBytes(memory));
      trial.caller = std::max<uint64_t>(trial.caller, memory.getAs<IntegerAttr>("caller").getInt());
    }
    return trial;
  }

  /// Its own name, or that of a variant (`gradients_v1`).
  bool isOfEntry(StringRef name) const {
    return entries.contains(name) || entries.contains(name.take_front(name.rfind("_v")));
  }

  /// The choice that fits with the least recomputation that was found; where none fits, the one
  /// that takes least. First in the order of the program, which holds what the estimate says;
  /// then the scheduler gets what room is left.
  Trial search(const Trial &first) {
    std::optional<Trial> inOrder = first.scheduled ? run(std::nullopt, std::nullopt) : first;
    if (!inOrder)
      return first;
    Trial best = *inOrder;
    uint64_t bound = best.planned;
    for (unsigned move = 0; best.planned > limit && move <= kMostMoves; ++move) {
      uint64_t excess = inOrder->planned - limit;
      bool isLast = move == kMostMoves || bound <= excess;
      bound = isLast ? 1 : bound - excess;
      inOrder = run(bound, std::nullopt);
      if (!inOrder)
        break;
      if (inOrder->planned < best.planned)
        best = *inOrder;
      if (isLast)
        break;
    }
    return best.planned <= limit ? order(relax(best)) : best;
  }

  /// With less recomputation, where much room is left.
  Trial relax(const Trial &fitting) {
    uint64_t room = limit - fitting.planned;
    if (room <= limit / kWorthwhileRoom || fitting.limit.value_or(1) == 1)
      return fitting;
    std::optional<Trial> wider = run(*fitting.limit + room, std::nullopt);
    return wider && wider->planned <= limit ? *wider : fitting;
  }

  /// The scheduler's estimate counts outputs when they are made, while the caller has memory for
  /// them all the time: so it gets less than the limit, where that turns out to be too much.
  Trial order(const Trial &inOrder) {
    uint64_t room = limit;
    for (unsigned i = 0; hasCollectives && i != kMostOrders; ++i) {
      std::optional<Trial> trial = run(inOrder.limit, room);
      if (!trial)
        break;
      if (trial->planned <= limit)
        return *trial;
      uint64_t less = std::max(trial->planned - limit, trial->caller / 2);
      if (room <= less)
        break;
      room -= less;
    }
    return inOrder;
  }

  void record(const Trial &first, const Trial &chosen) {
    Builder b(&getContext());
    auto integer = [&](StringRef name, uint64_t value) {
      return b.getNamedAttr(name, b.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto made = function->getAttrOfType<DictionaryAttr>(dist::kRecomputedAttr)) {
        NamedAttrList list(made);
        list.append(integer("planned_before_bytes", first.planned));
        list.append(integer("planned_bytes", chosen.planned));
        function->setAttr(dist::kRecomputedAttr, list.getDictionary(&getContext()));
      }
    if (chosen.planned > limit)
      getOperation()->setAttr(dist::kLeastMemoryAttr,
                              b.getDictionaryAttr({integer("without_bytes", first.planned),
                                                   integer("least_bytes", chosen.planned)}));
  }

  std::shared_ptr<PipelineOptions> options;
  uint64_t limit = 0;
  llvm::StringSet<> entries;
  bool hasCollectives = false;
};

} // namespace
