// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/FindMesh.h"
#include "passes/collectives/OptimizeFunction.h"
#include "passes/collectives/Passes.h"
#include "passes/collectives/core/ProgramTrials.h"
#include "passes/collectives/nodes/core/ChooseSplits.h"
#include "passes/collectives/simplify/Pairs.h"
#include "passes/collectives/windows/SplitWindow.h"

#include "mlir/IR/IRMapping.h"

namespace shardc {
#define GEN_PASS_DEF_SPLITWINDOWS
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

/// Less of the step is within what a prediction cannot tell.
constexpr double kLeastGain = 0.01;
/// As many launches as a window in parts has more.
constexpr double kMoreLaunches = 4;

/// What is split, by number among the window ops of a function, and how far.
struct WindowChoice {
  SmallVector<unsigned> windows;
  /// Where exchanges along several dims follow each other, the interior of the last dim is split
  /// too, so that there is something to compute during each of them.
  bool alongAll = true;
};

SmallVector<Operation *> windowOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<aten::WindowOpInterface>(op))
      ops.push_back(op);
  });
  return ops;
}

struct SplitWindows : shardc::impl::SplitWindowsBase<SplitWindows> {
  using SplitWindowsBase::SplitWindowsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto move = readMove<SplitMode>(module, "mode", mode.getValue(), parseSplitMode,
                                    {topology, caps, memoryLimit, sizes},
                                    moveOptions(bucket, policy, robust, flat, mixedDtype));
    if (failed(move))
      return signalPassFailure();
    if (move->mode == SplitMode::Off)
      return;
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (!function.isExternal() && failed(split(function, move->input, move->mode)))
        return signalPassFailure();
  }

private:
  LogicalResult split(func::FuncOp function, const OptimizeInput &input, SplitMode how) {
    if (windowOps(function).empty())
      return success();
    return whileSynchronous(
        function, [&](AsyncPairs &pairs) { return splitSynchronous(function, input, how, pairs); });
  }

  LogicalResult splitSynchronous(func::FuncOp function, const OptimizeInput &input, SplitMode how,
                                 AsyncPairs &pairs) {
    std::optional<Mesh> mesh = findMesh(function);
    if (!mesh)
      return success();
    SmallVector<unsigned> windows;
    SmallVector<Operation *> exchanges;
    RankValues ranks(*mesh, &getContext());
    for (auto [number, op] : llvm::enumerate(windowOps(function)))
      if (std::optional<WindowSite> site = findWindowSite(op, ranks)) {
        windows.push_back(number);
        exchanges.push_back(site->exchange);
      }
    if (windows.empty())
      return success();
    WindowChoice choice{windows};
    if (how == SplitMode::Auto) {
      FailureOr<WindowChoice> best = choose(function, input, windows, exchanges);
      if (failed(best))
        return failure();
      choice = std::move(*best);
    }
    numWhole += windows.size() - choice.windows.size();
    SmallVector<Operation *> ops = windowOps(function);
    for (unsigned number : choice.windows) {
      if (remarks)
        ops[number]->emitRemark() << "what needs nothing of other ranks is computed apart";
      ++numSplit;
    }
    apply(function, choice, ranks, [&](Operation *op) { pairs.forget(op); });
    return success();
  }

  /// Tries the windows whose exchange is waited for.
  FailureOr<WindowChoice> choose(func::FuncOp function, const OptimizeInput &input,
                                 ArrayRef<unsigned> windows, ArrayRef<Operation *> exchanges) {
    FailureOr<ProgramGraph> program = buildProgramGraph(function, *input.model, input.sizes);
    if (failed(program) || failed(checkPrices(*program, *input.model)))
      return failure();
    ProgramTrials trials(program->graph, *input.model, input.options, kLeastGain);
    if (!trials.begin()) // the scheduler says what is wrong
      return WindowChoice();
    llvm::DenseMap<Operation *, double> exposed;
    for (NodeId node = 0; node != program->graph.numNodes(); ++node)
      if (program->graph.isCollective(node))
        exposed[program->opOf[node]] = trials.exposedUs(node);
    WindowChoice late, worth;
    for (auto [window, exchange] : llvm::zip_equal(windows, exchanges)) {
      double us = exposed.lookup(exchange);
      if (us > 0)
        late.windows.push_back(window);
      if (us > kMoreLaunches * input.model->launchUs())
        worth.windows.push_back(window);
    }
    SmallVector<WindowChoice> tried;
    auto attempt = [&](const WindowChoice &choice) -> LogicalResult {
      if (choice.windows.empty())
        return success();
      FailureOr<ProgramGraph> variant = graphOf(function, input, choice);
      if (failed(variant))
        return failure();
      trials.add(variant->graph);
      tried.push_back(choice);
      return success();
    };
    WindowChoice once = worth;
    once.alongAll = false;
    if (failed(attempt(worth)) || (mesh2d(function) && failed(attempt(once))) ||
        (late.windows.size() != worth.windows.size() && failed(attempt(late))))
      return failure();
    WindowChoice chosen;
    if (std::optional<size_t> best = trials.best())
      chosen = tried[*best];
    stepBefore += static_cast<uint64_t>(trials.stepBeforeUs() + 0.5);
    stepAfter += static_cast<uint64_t>(trials.stepAfterUs() + 0.5);
    return chosen;
  }

  /// Whether there may be exchanges along several dims.
  static bool mesh2d(func::FuncOp function) {
    std::optional<Mesh> mesh = findMesh(function);
    return mesh && llvm::count_if(mesh->axes, [](const auto &axis) { return axis.size > 1; }) > 1;
  }

  FailureOr<ProgramGraph> graphOf(func::FuncOp function, const OptimizeInput &input,
                                  const WindowChoice &choice) {
    func::FuncOp copy = function.clone();
    copy.setName((function.getName() + ".split").str());
    getOperation().push_back(copy);
    RankValues ranks(*findMesh(copy), &getContext());
    apply(copy, choice, ranks, [](Operation *) {});
    FailureOr<ProgramGraph> graph = buildProgramGraph(copy, *input.model, input.sizes);
    copy.erase();
    return graph;
  }

  static void apply(func::FuncOp function, const WindowChoice &choice, RankValues &ranks,
                    function_ref<void(Operation *)> erased) {
    SmallVector<Operation *> ops = windowOps(function);
    SmallVector<Operation *> images;
    auto forget = [&](Operation *op) {
      llvm::erase(images, op);
      erased(op);
    };
    for (unsigned number : choice.windows) {
      SmallVector<Operation *> interior{ops[number]};
      // Along another dim, one piece is computed during the exchange before, and one during this.
      unsigned pieces = 1;
      while (!interior.empty()) {
        std::optional<WindowSite> site = findWindowSite(interior.front(), ranks);
        if (!site)
          break;
        if (!llvm::is_contained(images, site->image))
          images.push_back(site->image);
        interior = splitWindow(*site, pieces, ranks, forget);
        if (!choice.alongAll)
          break;
        pieces = 2;
      }
    }
    while (!images.empty()) {
      auto image = cast<aten::CatOp>(images.pop_back_val());
      sliceBeforeJoining(image, ranks, forget);
    }
  }
};

} // namespace
