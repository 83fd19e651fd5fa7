// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/inference/Passes.h"
#include "passes/inference/RestoreAttention.h"

#include "dialects/aten/Random.h"
#include "dialects/aten/TrainingNorm.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/RandomMode.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

namespace shardc {
#define GEN_PASS_DEF_TOINFERENCE
#include "passes/inference/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// The ops of one batch norm. It may lose its own op where nobody reads the result.
struct TrainingNorm {
  aten::BatchNormOp op;
  llvm::StringMap<aten::AliasOp> parts;

  /// The running statistic as it comes into the norm.
  Value running(StringRef part) const { return parts.lookup(part).getSelf(); }
};

using TrainingNorms = llvm::MapVector<Attribute, TrainingNorm>;

constexpr StringLiteral kParts[] = {aten::kOldMean, aten::kNewMean, aten::kOldVariance,
                                    aten::kNewVariance};

TrainingNorms findNorms(Block &block) {
  TrainingNorms norms;
  for (Operation &op : block) {
    Attribute mark = op.getAttr(aten::kTrainingNormAttr);
    if (!mark)
      continue;
    auto part = op.getAttrOfType<StringAttr>(aten::kTrainingPartAttr);
    if (auto norm = dyn_cast<aten::BatchNormOp>(op))
      norms[mark].op = norm;
    else if (auto alias = dyn_cast<aten::AliasOp>(op); alias && part)
      norms[mark].parts[part.getValue()] = alias;
  }
  return norms;
}

LogicalResult checkNorm(const TrainingNorm &norm) {
  for (StringRef part : kParts) {
    if (norm.parts.contains(part))
      continue;
    aten::BatchNormOp op = norm.op;
    if (!op)
      return success(); // with parts of it left that nobody reads
    return emitError(op.getLoc())
           << "'" << op->getName() << "' op in " << describePlace(op.getLoc()) << " has no op '"
           << part << "' of its running statistics any more: run aten-to-inference on the "
           << "imported function, before passes that simplify it";
  }
  return success();
}

/// `value` for a user that had a value of type `type` before, which may have another layout, and of
/// the statistics of a norm of shorter floats another element type.
Value inLayoutOf(Value value, Type type, Operation *user) {
  OpBuilder builder(user);
  auto own = cast<RankedTensorType>(value.getType());
  Type element = cast<RankedTensorType>(type).getElementType();
  if (own.getElementType() != element) {
    value = aten::ToCopyOp::create(builder, user->getLoc(), value, element);
    value.setType(RankedTensorType::get(own.getShape(), element, own.getEncoding()));
  }
  if (value.getType() == type || !dist::getLayout(type))
    return value;
  return dist::RedistributeOp::create(builder, user->getLoc(), type, value, /*backward=*/false);
}

LogicalResult useRunningStatistics(Block &block, unsigned &count) {
  TrainingNorms norms = findNorms(block);
  bool complete = true;
  for (auto &[mark, norm] : norms)
    complete &= succeeded(checkNorm(norm));
  if (!complete)
    return failure();
  // A norm that runs twice reads what its first run wrote: first, nothing is written any more.
  for (auto &[mark, norm] : norms)
    for (auto [from, to] : {std::pair(aten::kNewMean, aten::kOldMean),
                            std::pair(aten::kNewVariance, aten::kOldVariance)})
      if (norm.parts.contains(from) && norm.parts.contains(to)) {
        aten::AliasOp written = norm.parts.lookup(from);
        written.getResult().replaceAllUsesWith(
            inLayoutOf(norm.running(to), written.getType(), written));
      }
  for (auto &[mark, norm] : norms) {
    if (!norm.op)
      continue;
    for (auto [operand, part] : {std::pair(&norm.op.getRunningMeanMutable(), aten::kOldMean),
                                 std::pair(&norm.op.getRunningVarMutable(), aten::kOldVariance)})
      operand->assign(inLayoutOf(norm.running(part), operand->get().getType(), norm.op));
    norm.op->removeAttr(aten::kTrainingNormAttr);
    ++count;
  }
  return success();
}

/// What a value has its elements of.
Value strip(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<aten::ToCopyOp, aten::CloneOp, aten::AliasOp, dist::RedistributeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> numberOf(Value value) {
  auto constant = strip(value).getDefiningOp<aten::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

/// The probability with which an element is 1, of zeros and ones that are drawn.
std::optional<double> probabilityOf(Value kept) {
  Operation *op = strip(kept).getDefiningOp();
  if (!isa_and_nonnull<aten::LtOp, aten::GtOp>(op))
    return std::nullopt;
  auto random = strip(op->getOperand(0)).getDefiningOp<aten::RandomOp>();
  std::optional<double> limit = numberOf(op->getOperand(1));
  if (!random || random.getDistribution() != "uniform" || !limit)
    return std::nullopt;
  return isa<aten::LtOp>(op) ? *limit : 1 - *limit;
}

/// Whether two numbers are one that was rounded to the type of each.
bool areSame(double a, double b, Type type) {
  double unit = std::ldexp(1.0, -cast<FloatType>(type).getFPMantissaWidth());
  return std::abs(a - b) <= 2 * std::max(unit, std::ldexp(1.0, -24)) * std::abs(b);
}

/// What PyTorch's decompositions leave of a dropout of `x`: x * (kept / q), where `kept` is 1 with
/// probability q and else 0, or (kept * x) * (1 / q). Null: `op` is none.
Value droppedBy(aten::MulOp op) {
  Type type = aten::elementTypeOf(op.getResult());
  if (!isa<FloatType>(type))
    return {};
  for (auto [noise, x] : {std::pair(op.getSelf(), op.getOther()), {op.getOther(), op.getSelf()}}) {
    if (auto quotient = strip(noise).getDefiningOp<aten::DivOp>()) {
      std::optional<double> q = probabilityOf(quotient.getSelf()),
                            by = numberOf(quotient.getOther());
      if (q && by && !quotient.getRoundingMode() && areSame(*q, *by, type))
        return x;
    }
    auto product = strip(noise).getDefiningOp<aten::MulOp>();
    std::optional<double> scale = numberOf(x);
    if (!product || !scale)
      continue;
    for (auto [kept, inner] : {std::pair(product.getSelf(), product.getOther()),
                               {product.getOther(), product.getSelf()}})
      if (std::optional<double> q = probabilityOf(kept); q && areSame(*scale * *q, 1, type))
        return inner;
  }
  return {};
}

void removeDecomposedDropouts(Block &block, unsigned &count) {
  for (auto op : llvm::make_early_inc_range(block.getOps<aten::MulOp>())) {
    Value x = droppedBy(op);
    if (!x || aten::shapeOf(x) != aten::shapeOf(op.getResult()))
      continue;
    op.getResult().replaceAllUsesWith(inLayoutOf(x, op.getType(), op));
    op.erase();
    ++count;
  }
}

void removeDropouts(Block &block, unsigned &count) {
  for (auto op : llvm::make_early_inc_range(block.getOps<aten::DropoutOp>())) {
    op.getResult().replaceAllUsesWith(inLayoutOf(op.getSelf(), op.getType(), op));
    op.erase();
    ++count;
  }
  // Attention drops probabilities itself.
  for (auto op : block.getOps<aten::ScaledDotProductAttentionOp>()) {
    if (op.getDropoutP().isZero())
      continue;
    op.setDropoutP(APFloat(0.0));
    ++count;
  }
}

bool isWrittenBack(func::FuncOp function, unsigned result) {
  return dist::isStateUpdate(function.getResultAttrOfType<StringAttr>(result, dist::kKindAttr));
}

bool isRandomOffset(func::FuncOp function, unsigned result) {
  return llvm::is_contained(dist::getNames(function.getResultAttrDict(result)),
                            dist::kRandomOffset);
}

void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

unsigned dropResults(func::FuncOp function, function_ref<bool(unsigned)> isDropped) {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  Builder builder(function.getContext());
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (isDropped(i))
      continue;
    values.push_back(terminator.getOperand(i));
    types.push_back(function.getResultTypes()[i]);
    DictionaryAttr ofResult = function.getResultAttrDict(i);
    attributes.push_back(ofResult ? ofResult : builder.getDictionaryAttr({}));
  }
  unsigned dropped = function.getNumResults() - values.size();
  terminator.getOperandsMutable().assign(values);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  function.setResAttrsAttr(builder.getArrayAttr(attributes));
  return dropped;
}

/// A model that draws random numbers for other ends than dropout goes on to do so.
unsigned dropMutations(func::FuncOp function) {
  Block &block = function.getBody().front();
  unsigned dropped = dropResults(function, [&](unsigned result) {
    return isWrittenBack(function, result) && !isRandomOffset(function, result);
  });
  eraseDeadOps(block);
  if (!block.getOps<aten::RandomOp>().empty())
    return dropped;
  dropped +=
      dropResults(function, [&](unsigned result) { return isWrittenBack(function, result); });
  eraseDeadOps(block);
  return dropped;
}

/// A dropout in another form than those above cannot be told from noise that belongs to the model.
void remarkNoise(func::FuncOp function) {
  auto draws = function.getBody().front().getOps<aten::RandomOp>();
  if (draws.empty())
    return;
  Location loc = (*draws.begin()).getLoc();
  emitRemark(loc) << "'" << function.getName()
                  << "' goes on to draw random numbers in inference, first in "
                  << describePlace(loc)
                  << ": they are not those of a dropout in a form that is known";
}

struct ToInferencePass : shardc::impl::ToInferenceBase<ToInferencePass> {
  using ToInferenceBase::ToInferenceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto source = symbols.lookup<func::FuncOp>(function);
    if (!source || source.isDeclaration() || !source.getBody().hasOneBlock()) {
      emitError(module.getLoc()) << "there is no function '" << function
                                 << "' of one block to bring into inference form";
      return signalPassFailure();
    }
    bool isCopy = !into.empty() && into != function;
    if (isCopy && symbols.lookup(into)) {
      emitError(module.getLoc()) << "there is a function '" << into
                                 << "' already; name another with 'into'";
      return signalPassFailure();
    }
    OwningOpRef<func::FuncOp> copy;
    if (isCopy)
      copy = source.clone();
    FailureOr<InferenceChanges> changes = bringToInference(isCopy ? *copy : source);
    if (failed(changes))
      return signalPassFailure();
    if (isCopy) {
      copy->setName(into);
      symbols.insert(copy.release(), std::next(Block::iterator(source)));
    }
    numDropouts += changes->dropouts;
    numNorms += changes->norms;
    numAttentions += changes->attentions;
    numMutations += changes->mutations;
  }
};

} // namespace

FailureOr<InferenceChanges> shardc::bringToInference(func::FuncOp function) {
  Block &block = function.getBody().front();
  InferenceChanges changes;
  if (failed(useRunningStatistics(block, changes.norms)))
    return failure();
  changes.attentions = restoreAttention(block);
  removeDropouts(block, changes.dropouts);
  removeDecomposedDropouts(block, changes.dropouts);
  changes.mutations = dropMutations(function);
  remarkNoise(function);
  return changes;
}
