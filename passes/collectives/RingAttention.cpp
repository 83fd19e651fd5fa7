// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/FindMesh.h"
#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"
#include "passes/collectives/attention/ApplyRing.h"
#include "passes/collectives/attention/RingMode.h"
#include "passes/collectives/core/ProgramTrials.h"
#include "passes/collectives/simplify/Pairs.h"

namespace shardc {
#define GEN_PASS_DEF_RINGATTENTION
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

/// Less of the step is within what a prediction cannot tell.
constexpr double kLeastRingGain = 0.01;
/// By `auto`, of all rings of a function.
constexpr uint64_t kMostStepsTried = 4096;

enum class Form { Gathered, Ring, Balanced };

/// An attention that can be a ring, by number among those of a function.
struct Candidate {
  unsigned number;
  bool canBalance;
};

SmallVector<Operation *> attentionOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<aten::ScaledDotProductAttentionOp, aten::ScaledDotProductFlashAttentionOp,
            aten::ScaledDotProductFlashAttentionBackwardOp>(op))
      ops.push_back(op);
  });
  return ops;
}

/// Adds the pairs of a query and a key that it sees, by device, in this form.
void addPairs(const RingSite &site, Form form, SmallVector<double> &pairs) {
  if (site.queries.empty())
    return;
  pairs.resize(site.queries.size());
  double keys = 0;
  for (int64_t extent : site.extents)
    keys += static_cast<double>(extent);
  for (auto [device, count] : llvm::enumerate(site.queries)) {
    auto rows = static_cast<double>(count);
    if (!site.isCausal) {
      pairs[device] += rows * keys;
      continue;
    }
    double others = 0;
    for (size_t step = 1; step < site.seen.size(); ++step)
      others += static_cast<double>(site.seen[step][device]);
    if (form == Form::Balanced)
      others = rows * static_cast<double>(site.size() - 1) / 2;
    pairs[device] += rows * others + rows * (rows + 1) / 2;
  }
}

struct RingAttention : shardc::impl::RingAttentionBase<RingAttention> {
  using RingAttentionBase::RingAttentionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto move = readMove<RingMode>(module, "mode", mode.getValue(), parseRingMode,
                                   {topology, caps, memoryLimit, sizes},
                                   moveOptions(bucket, policy, robust, flat, mixedDtype));
    if (failed(move))
      return signalPassFailure();
    if (move->mode == RingMode::Off)
      return;
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (!function.isExternal() && !attentionOps(function).empty() &&
          failed(whileSynchronous(function, [&](AsyncPairs &pairs) {
            return change(function, move->input, move->mode, pairs);
          })))
        return signalPassFailure();
  }

private:
  LogicalResult change(func::FuncOp function, const OptimizeInput &input, RingMode how,
                       AsyncPairs &pairs) {
    std::optional<Mesh> mesh = findMesh(function);
    if (!mesh)
      return success();
    RankValues ranks(*mesh, &getContext());
    SmallVector<Candidate> candidates;
    std::vector<RingSite> sites;
    for (auto [number, op] : llvm::enumerate(attentionOps(function))) {
      RingSite site;
      RingObstacle obstacle = findRingSite(op, ranks, site);
      numUnknown += obstacle == RingObstacle::Unknown;
      numUnaligned += obstacle == RingObstacle::Unaligned;
      if (obstacle != RingObstacle::None)
        continue;
      candidates.push_back({static_cast<unsigned>(number), site.canBalance()});
      sites.push_back(std::move(site));
    }
    if (candidates.empty())
      return success();
    Form form = how == RingMode::All ? Form::Ring : Form::Balanced;
    if (how == RingMode::Auto) {
      // Each step of a ring is some twenty ops, which are built to be compared.
      uint64_t steps = 0;
      for (const RingSite &site : sites)
        steps += site.size();
      bool isTried = steps <= kMostStepsTried;
      if (!isTried)
        numUntried += sites.size();
      FailureOr<Form> best = isTried ? choose(function, input, candidates) : Form::Gathered;
      if (failed(best))
        return failure();
      form = *best;
    }
    SmallVector<double> work;
    for (auto [candidate, site] : llvm::zip_equal(candidates, sites)) {
      Form own = formOf(candidate, form);
      addPairs(site, own, work);
      numGathered += own == Form::Gathered;
      numRings += own != Form::Gathered;
      numBalanced += own == Form::Balanced;
      if (remarks && own != Form::Gathered)
        site.op->emitRemark() << "keys and values go around a ring of " << site.size() << " ranks"
                              << (own == Form::Balanced
                                      ? ", which exchange halves of their rows to have equal work"
                                      : "");
    }
    if (!work.empty()) {
      double sum = 0;
      for (double pairsOfRank : work)
        sum += pairsOfRank;
      mostPairs += static_cast<uint64_t>(*llvm::max_element(work));
      meanPairs += static_cast<uint64_t>(sum / static_cast<double>(work.size()));
    }
    apply(function, candidates, form, ranks, [&](Operation *op) { pairs.forget(op); });
    return success();
  }

  static Form formOf(const Candidate &candidate, Form asked) {
    return asked == Form::Balanced && !candidate.canBalance ? Form::Ring : asked;
  }

  FailureOr<Form> choose(func::FuncOp function, const OptimizeInput &input,
                         ArrayRef<Candidate> candidates) {
    if (!input.model->supports(CollectiveKind::Permute))
      return Form::Gathered;
    FailureOr<ProgramGraph> program = buildProgramGraph(function, *input.model, input.sizes);
    if (failed(program) || failed(checkPrices(*program, *input.model)))
      return failure();
    SmallVector<Form> forms;
    if (llvm::any_of(candidates, [](const Candidate &one) { return one.canBalance; }))
      forms.push_back(Form::Balanced);
    forms.push_back(Form::Ring);
    std::vector<ProgramGraph> variants;
    for (Form form : forms) {
      FailureOr<ProgramGraph> variant = graphOf(function, input, candidates, form);
      if (failed(variant))
        return failure();
      variants.push_back(std::move(*variant));
      if (variants.back().graph.numNodes() > ProgramTrials::largeGraph)
        break;
    }
    forms.truncate(variants.size());
    ProgramTrials trials(program->graph, *input.model, input.options, kLeastRingGain);
    if (!trials.begin())
      return fitting(input, forms, variants);
    for (const ProgramGraph &variant : variants)
      trials.add(variant.graph);
    stepBefore += static_cast<uint64_t>(trials.stepBeforeUs() + 0.5);
    stepAfter += static_cast<uint64_t>(trials.stepAfterUs() + 0.5);
    std::optional<size_t> best = trials.best();
    return best ? forms[*best] : Form::Gathered;
  }

  /// Gathered keys do not fit: the shortest of what does. Where nothing does, whoever schedules the
  /// program says so.
  FailureOr<Form> fitting(const OptimizeInput &input, ArrayRef<Form> forms,
                          ArrayRef<ProgramGraph> variants) {
    Form best = Form::Gathered;
    double shortest = std::numeric_limits<double>::infinity();
    for (auto [form, variant] : llvm::zip_equal(forms, variants)) {
      ProgramTrials trials(variant.graph, *input.model, input.options, kLeastRingGain);
      if (!trials.begin() || trials.stepBeforeUs() >= shortest)
        continue;
      shortest = trials.stepBeforeUs();
      best = form;
    }
    if (best != Form::Gathered)
      stepAfter += static_cast<uint64_t>(shortest + 0.5);
    return best;
  }

  FailureOr<ProgramGraph> graphOf(func::FuncOp function, const OptimizeInput &input,
                                  ArrayRef<Candidate> candidates, Form form) {
    func::FuncOp copy = function.clone();
    copy.setName((function.getName() + ".ring").str());
    getOperation().push_back(copy);
    RankValues ranks(*findMesh(copy), &getContext());
    apply(copy, candidates, form, ranks, [](Operation *) {});
    FailureOr<ProgramGraph> graph = buildProgramGraph(copy, *input.model, input.sizes);
    copy.erase();
    return graph;
  }

  static void apply(func::FuncOp function, ArrayRef<Candidate> candidates, Form form,
                    RankValues &ranks, function_ref<void(Operation *)> erased) {
    if (form == Form::Gathered)
      return;
    SmallVector<Operation *> ops = attentionOps(function);
    BalancedValues balanced;
    for (const Candidate &candidate : candidates) {
      RingSite site;
      if (findRingSite(ops[candidate.number], ranks, site) != RingObstacle::None)
        continue;
      auto forget = [&](Operation *op) {
        balanced.forget(op);
        erased(op);
      };
      if (formOf(candidate, form) == Form::Balanced)
        applyBalancedRing(site, ranks, balanced, forget);
      else
        applyRing(site, ranks, forget);
    }
  }
};

} // namespace
