// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dist-verify-stage: which ops and types a stage has, and what else it promises.

#include "passes/verify/Passes.h"

#include "passes/verify/StageChecks.h"

#include "dialects/dist/Shardings.h"
#include "dialects/interfaces/OriginMemory.h"
#include "passes/verify/HalfPlaced.h"

namespace shardc {
#define GEN_PASS_DEF_VERIFYSTAGE
#include "passes/verify/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

StringRef shardc::stringifyStage(Stage stage) {
  constexpr StringLiteral names[] = {"imported",  "half-placed", "placed",  "local",
                                     "scheduled", "specialized", "planned", "lowered"};
  return names[static_cast<size_t>(stage)];
}

namespace {
/// The ops of a stage, by dialect or by name.
struct Vocabulary {
  ArrayRef<StringLiteral> dialects;
  ArrayRef<StringLiteral> ops;

  bool contains(OperationName name) const {
    return llvm::is_contained(dialects, name.getDialectNamespace()) ||
           llvm::is_contained(ops, name.getStringRef());
  }
};

bool isInFlight(ModuleOp module) {
  return module
      .walk([](dist::CollectiveOpInterface op) {
        return op.isAsync() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

class StageVerifier {
public:
  StageVerifier(Stage stage) : stage(stage), ruleChecks(violations) {}

  LogicalResult verify(ModuleOp module, StageStatistics &statistics);

private:
  static Vocabulary vocabularyOf(Stage stage);
  void check(Operation *op);
  /// Before dist-place a function says what its tensors are to become.
  bool mayHaveShardings() const { return stage == Stage::Imported || stage == Stage::HalfPlaced; }
  void checkFunction(FunctionOpInterface function);
  void checkNoShardings(FunctionOpInterface function);
  /// The type of a value; `value` is null for the types of a function without a body.
  void checkType(Type type, Location place);
  void checkValue(Value value);

  Stage stage;
  Violations violations;
  RuleChecks ruleChecks;
};
} // namespace

Vocabulary StageVerifier::vocabularyOf(Stage stage) {
  static constexpr StringLiteral tensorDialects[] = {"aten", "arith"};
  static constexpr StringLiteral imported[] = {"builtin.module", "func.func", "func.return",
                                               "dist.constrain"};
  // The last entry is for `half-placed` alone.
  static constexpr StringLiteral placed[] = {"builtin.module", "func.func", "func.return",
                                             "dist.redistribute", "dist.constrain"};
  // The last entry is for `scheduled` alone.
  static constexpr StringLiteral local[] = {
      "builtin.module",  "func.func",           "func.return",     "dist.axis_index",
      "dist.extent",     "dist.leave_mesh",     "dist.enter_mesh", "dist.all_gather",
      "dist.all_reduce", "dist.reduce_scatter", "dist.all_to_all", "dist.broadcast",
      "dist.permute",    "dist.read_sizes",     "dist.after",      "dist.wait"};
  static constexpr StringLiteral llvmDialects[] = {"llvm", "nvvm"};
  static constexpr StringLiteral lowered[] = {"builtin.module", "gpu.module"};
  switch (stage) {
  case Stage::Imported:
    return {tensorDialects, imported};
  case Stage::HalfPlaced:
    return {tensorDialects, placed};
  case Stage::Placed:
    return {tensorDialects, ArrayRef(placed).drop_back()};
  case Stage::Local:
    return {tensorDialects, ArrayRef(local).drop_back()};
  case Stage::Scheduled:
  case Stage::Specialized: // looked at as local or scheduled
    return {tensorDialects, local};
  case Stage::Planned:
    break; // checkPlanned: what a function may have depends on what it is
  case Stage::Lowered:
    return {llvmDialects, lowered};
  }
  return {};
}

void StageVerifier::checkType(Type type, Location place) {
  if (stage == Stage::Lowered)
    return; // its dialects have no other types
  if (isa<dist::FutureType>(type) && stage != Stage::Scheduled)
    return violations.add(place, "a future in the stage \"" + stringifyStage(stage) + "\"");
  if (isa<UnrankedTensorType>(type))
    return violations.add(place, "a tensor without a rank");
  RankedTensorType tensor = dist::getDeliveredType(type);
  if (!tensor)
    return;
  if (stage == Stage::Placed || stage == Stage::HalfPlaced) {
    bool isUnplaced = stage == Stage::HalfPlaced && !tensor.getEncoding();
    if (!dist::getLayout(tensor) && !isUnplaced)
      violations.add(place, "a tensor without a layout");
  } else if (tensor.getEncoding()) {
    violations.add(place, "a tensor with a layout (or another encoding)");
  }
}

void StageVerifier::checkValue(Value value) {
  checkType(value.getType(), value.getLoc());
  if (stage == Stage::Scheduled && isa<dist::FutureType>(value.getType()))
    checkFuture(value, violations);
}

void StageVerifier::checkFunction(FunctionOpInterface function) {
  if (function.isExternal())
    for (Type type :
         llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
      checkType(type, function.getLoc());
  if (stage == Stage::Local || stage == Stage::Scheduled)
    checkLocalSignature(function, violations);
  if (stage == Stage::Lowered)
    checkLoweredFunction(function, violations);
  else
    checkStates(function, violations);
  if (!mayHaveShardings())
    checkNoShardings(function);
}

void StageVerifier::checkNoShardings(FunctionOpInterface function) {
  bool left = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    left |= !!function.getArgAttr(i, dist::kShardingAttr);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    left |= !!function.getResultAttr(i, dist::kShardingAttr);
  if (left)
    violations.add(function.getLoc(),
                   "an argument or result with a 'dist.sharding' in the stage \"" +
                       stringifyStage(stage) + "\": dist-place removes it");
}

/// Ops of devices stand in their modules alone.
static bool isOutsideOfDevice(Operation *op) {
  if (op->getName().getDialectNamespace() != "nvvm")
    return false;
  while ((op = op->getParentOp()))
    if (op->getName().getStringRef() == "gpu.module")
      return false;
  return true;
}

void StageVerifier::check(Operation *op) {
  if (stage == Stage::Lowered && isOutsideOfDevice(op))
    return violations.add(op, "is outside of a 'gpu.module'");
  if (!vocabularyOf(stage).contains(op->getName()))
    return violations.add(op, "is no op of the stage \"" + stringifyStage(stage) + "\"");
  if (!mayHaveShardings() && op->getDiscardableAttr(dist::kShardingAttr))
    violations.add(op, "has a 'dist.sharding' in the stage \"" + stringifyStage(stage) +
                           "\": dist-place removes it");
  for (Value result : op->getResults())
    checkValue(result);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Value argument : block.getArguments())
        checkValue(argument);
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    checkFunction(function);
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    checkCollective(collective, stage, violations);
  if (stage == Stage::HalfPlaced)
    if (std::string problem = problemOfHalfPlacedOp(op); !problem.empty())
      violations.add(op, problem);
  bool hasLayouts = stage == Stage::Placed || stage == Stage::HalfPlaced;
  if (hasLayouts && op->getName().getDialectNamespace() == "aten")
    ruleChecks.check(op);
}

LogicalResult StageVerifier::verify(ModuleOp module, StageStatistics &statistics) {
  OriginMemory origins;
  if (stage == Stage::Specialized) {
    checkSpecialized(module, violations);
    stage = isInFlight(module) ? Stage::Scheduled : Stage::Local;
  }
  if (stage == Stage::Planned)
    checkPlanned(module, violations, statistics);
  else
    module->walk<WalkOrder::PreOrder>([&](Operation *op) {
      check(op);
      ++statistics.ops;
    });
  statistics.rules += ruleChecks.getNumDistinct();
  return violations.report();
}

LogicalResult shardc::verifyStage(ModuleOp module, Stage stage, StageStatistics *statistics) {
  StageStatistics ignored;
  return StageVerifier(stage).verify(module, statistics ? *statistics : ignored);
}

namespace {
struct VerifyStage : shardc::impl::VerifyStageBase<VerifyStage> {
  using VerifyStageBase::VerifyStageBase;

  /// `--dist-verify-stage=placed` for `--dist-verify-stage=stage=placed`.
  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> errorHandler) override {
    bool bare = !options.empty() && !options.contains('=');
    return Pass::initializeOptions(bare ? ("stage=" + options).str() : options.str(), errorHandler);
  }

  Stage stageToCheck() const { return stage; }

  void runOnOperation() override {
    StageStatistics statistics;
    Stage checked = stage;
    if (checked == Stage::Local && orScheduled && isInFlight(getOperation()))
      checked = Stage::Scheduled;
    if (failed(verifyStage(getOperation(), checked, &statistics)))
      signalPassFailure();
    numOps += statistics.ops;
    numRules += statistics.rules;
    numUnproven += statistics.unproven;
    markAllAnalysesPreserved();
  }
};
} // namespace

std::optional<Stage> shardc::stageCheckedBy(const Pass &pass) {
  if (pass.getTypeID() != TypeID::get<VerifyStage>())
    return std::nullopt;
  return static_cast<const VerifyStage &>(pass).stageToCheck();
}
