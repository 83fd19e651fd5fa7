// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/OptimizeFunction.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/DecisionAttributes.h"
#include "passes/collectives/analysis/TensorNames.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/specialize/AssumedSizes.h"
#include "support/ByteSize.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

static LogicalResult checkUnspecialized(ModuleOp module) {
  if (!module->hasAttr(kSpecializationsAttr))
    return success();
  return module.emitOpError("has one function for each kind of rank already: the order of "
                            "collectives is decided in the one function that all ranks share; run "
                            "this before dist-specialize");
}

FailureOr<OptimizeInput> shardc::readOptimizeText(ModuleOp module, const OptimizeText &text,
                                                  OptimizeOptions options) {
  OptimizeInput input{std::move(options)};
  std::string errors;
  std::optional<BucketCaps> caps = BucketCaps::parse(text.caps, errors);
  if (!caps)
    module.emitError() << errors;
  std::string modelErrors;
  input.model = cost::loadModel(text.topology, modelErrors);
  if (!input.model)
    module.emitError() << "topology: " << StringRef(modelErrors).rtrim();
  std::optional<uint64_t> limit = parseByteSize(text.memoryLimit);
  bool limitIsRight = (limit && *limit != 0) || text.memoryLimit.empty();
  if (!limitIsRight)
    module.emitError() << "memory-limit: '" << text.memoryLimit
                       << "' is not a number of bytes, e.g. 2GiB";
  bool isRobust = isRobustness(input.options.robust);
  if (!isRobust)
    module.emitError() << "robust: " << describeRobustness(input.options.robust);
  FailureOr<SymbolValues> sizes = assumedSizes(module, text.sizes);
  if (!isRobust || !caps || !input.model || !limitIsRight || failed(sizes))
    return failure();
  input.sizes = std::move(*sizes);
  input.options.buckets.caps = *caps;
  // Groups have one name for all their rank lists.
  input.options.buckets.groupsByName = true;
  input.options.memoryLimit = limit;
  return input;
}

namespace {

/// Notes decisions as attributes, and as remarks.
class Recorder {
public:
  /// Before the plan is applied: members of buckets are gone afterwards.
  Recorder(func::FuncOp function, const ProgramGraph &program, const OptimizeResult &result)
      : function(function), result(result), builder(function.getContext()) {
    for (const BucketRecord &bucket : result.buckets) {
      SmallVector<Attribute> members;
      for (NodeId member : bucket.members)
        members.push_back(describe(member, program));
      membersOf.push_back(builder.getArrayAttr(members));
    }
  }

  void run(ArrayRef<Operation *> partOf, bool remarks) {
    for (auto [bucket, members] : llvm::zip_equal(result.buckets, membersOf))
      record(bucket, members, partOf[bucket.members.front()], remarks);
    for (const AloneRecord &alone : result.alone)
      record(alone, partOf[alone.node], remarks);
    auto figures = [&](const Figures &f, StringRef when) {
      number("step" + when.str() + "_us", f.stepUs);
      number("exposed" + when.str() + "_us", f.totalExposedUs());
      integer("peak" + when.str() + "_bytes", f.peakHoldBytes);
    };
    figures(result.before, "_before");
    figures(result.after, "");
    number("step_least_us", std::ranges::min(result.stepsUs));
    number("step_most_us", std::ranges::max(result.stepsUs));
    function->setAttr(kPredictedAttr, take());
  }

private:
  DictionaryAttr describe(NodeId member, const ProgramGraph &program) {
    Operation *op = program.opOf[member];
    integer("bytes", program.graph.fullBytes(member));
    text("location", describePlace(op->getLoc()));
    if (StringRef module = getModulePath(op->getLoc()); !module.empty())
      text("module", module);
    if (isBackward(op->getLoc()))
      entries.set("backward", builder.getBoolAttr(true));
    if (StringRef tensor = nameOfSource(op->getOperand(0)); !tensor.empty())
      text("tensor", tensor);
    return take();
  }

  void record(const BucketRecord &bucket, ArrayAttr members, Operation *op, bool remarks) {
    StringRef closed = textOf(bucket.closed);
    entries.set("members", members);
    integer("bytes", bucket.bytes);
    if (bucket.capBytes != UINT64_MAX)
      integer("cap_bytes", bucket.capBytes);
    text("closed", closed);
    number("exposed_before_us", bucket.exposedBeforeUs);
    number("exposed_after_us", bucket.exposedAfterUs);
    slack(bucket.slackUs);
    op->setAttr(kBucketAttr, take());
    if (remarks)
      op->emitRemark() << "a bucket of " << bucket.members.size() << " collectives, "
                       << bucket.bytes << " bytes, closed by: " << closed;
  }

  void record(const AloneRecord &alone, Operation *op, bool remarks) {
    if (!op || op->hasAttr(kBucketAttr)) // a bucket of an earlier pass
      return;
    StringRef reason = textOf(alone.reason);
    text("reason", reason);
    number("exposed_before_us", alone.exposedBeforeUs);
    number("exposed_after_us", alone.exposedAfterUs);
    slack(alone.slackUs);
    op->setAttr(kAloneAttr, take());
    if (remarks)
      op->emitRemark() << "left alone: " << reason;
  }

  void text(StringRef name, StringRef value) { entries.set(name, builder.getStringAttr(value)); }
  void integer(StringRef name, uint64_t value) {
    entries.set(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
  }
  /// To a thousandth: what is below comes from the order of additions.
  void number(StringRef name, double value) {
    entries.set(name, builder.getF64FloatAttr(std::round(value * 1000) / 1000));
  }
  void slack(double us) {
    if (std::isfinite(us))
      number("slack_us", us);
  }
  DictionaryAttr take() {
    DictionaryAttr attribute = entries.getDictionary(builder.getContext());
    entries = NamedAttrList();
    return attribute;
  }

  func::FuncOp function;
  const OptimizeResult &result;
  std::vector<ArrayAttr> membersOf;
  Builder builder;
  NamedAttrList entries;
};

} // namespace

static FailureOr<OptimizeResult> optimizeFunction(func::FuncOp function, const OptimizeInput &input,
                                                  const OptimizeMode &mode) {
  const cost::CostModel &model = *input.model;
  FailureOr<ProgramGraph> program = buildProgramGraph(function, model, input.sizes);
  if (failed(program))
    return failure();
  if (failed(checkPrices(*program, model)))
    return failure();
  const Graph &graph = program->graph;
  OptimizeResult result = optimize(graph, model, input.options);
  if (!result.error.empty() && mode.bestEffort) {
    OptimizeOptions asItIs = input.options;
    asItIs.schedule = asItIs.bucket = false;
    result = optimize(graph, model, asItIs);
  }
  if (!result.error.empty()) {
    InFlightDiagnostic error = function.emitOpError() << result.error;
    if (Operation *op = result.boundNode == none ? nullptr : program->opOf[result.boundNode])
      error.attachNote(op->getLoc()) << "in every order so much is live when this runs";
    return error;
  }
  Recorder recorder(function, *program, result);
  recorder.run(applyPlan(function, *program, result.plan, mode.form), mode.remarks);
  return result;
}

LogicalResult
shardc::optimizeModule(ModuleOp module, const OptimizeText &text, OptimizeOptions options,
                       const OptimizeMode &mode,
                       function_ref<void(func::FuncOp, const OptimizeResult &)> visit) {
  if (failed(checkUnspecialized(module)))
    return failure();
  FailureOr<OptimizeInput> input = readOptimizeText(module, text, std::move(options));
  if (failed(input))
    return failure();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<OptimizeResult> result = optimizeFunction(function, *input, mode);
    if (failed(result))
      return failure();
    visit(function, *result);
  }
  return success();
}
