// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/LocalCosts.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/TypicalSizes.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "passes/collectives/analysis/ExchangeBytes.h"
#include "passes/specialize/FunctionSpecializer.h"
#include "passes/specialize/RankValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

uint64_t shardc::bytesOf(RankedTensorType type) {
  Type element = type.getElementType();
  unsigned parts = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    element = complex.getElementType();
    parts = 2;
  }
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64; // index
  uint64_t bytes = uint64_t(parts) * ((bits + 7) / 8);
  for (int64_t size : type.getShape())
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes,
                                               ShapedType::isDynamic(size) ? kTypicalSymbol : size);
  return bytes;
}

static bool isStatic(func::FuncOp function) {
  auto dynamic = [](Type type) {
    RankedTensorType tensor = getDeliveredType(type);
    return tensor && !tensor.hasStaticShape();
  };
  WalkResult result = function.walk([&](Operation *op) {
    return llvm::any_of(op->getResultTypes(), dynamic) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
  });
  return !result.wasInterrupted() && llvm::none_of(function.getArgumentTypes(), dynamic);
}

/// The element type whose arithmetic a model prices, as models call it: that of the result, and of
/// attention that of what it multiplies, since parts of its result have the type of sums.
static std::string elementTypeOf(Operation *op) {
  std::string text;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  bool isAttention = kernel && kernel.getKernelForm() == KernelForm::Attention;
  for (Value value : isAttention ? ValueRange(op->getOperands()) : ValueRange(op->getResults()))
    if (RankedTensorType type = getDeliveredType(value.getType())) {
      llvm::raw_string_ostream(text) << type.getElementType();
      break;
    }
  return text;
}

/// Of causal attention, the queries that some of `devices` have see the more keys the later these
/// queries are: its cost where they are last. Nothing where that is the same everywhere, or not
/// known.
static std::optional<double> flopsOfLast(Operation *op, RankValues &values,
                                         ArrayRef<int64_t> devices) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel || kernel.getKernelForm() != KernelForm::Attention)
    return std::nullopt;
  auto operands = op->getOperands();
  auto first = llvm::find_if(operands, [](Value value) { return value.getType().isIndex(); });
  if (first == operands.end())
    return std::nullopt;
  ArrayRef<int64_t> everywhere = values.of(*first);
  if (everywhere.empty() || devices.empty())
    return std::nullopt;
  int64_t last = 0;
  for (int64_t device : devices)
    last = std::max(last, everywhere[device]);
  OpBuilder builder(op);
  auto constant = arith::ConstantIndexOp::create(builder, op->getLoc(), last);
  Operation *there = builder.clone(*op);
  there->setOperand(first.getIndex(), constant);
  std::optional<double> flops = cast<CostOpInterface>(there).getFlops();
  there->erase();
  constant->erase();
  return flops;
}

static double kernelUsOf(Operation *op, const cost::CostModel &model, std::optional<double> flops) {
  double traffic = 0;
  for (Value operand : llvm::SetVector<Value>(op->operand_begin(), op->operand_end()))
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
      traffic += bytesOf(type);
  for (Value result : op->getResults())
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      traffic += bytesOf(type);
  if (auto costs = dyn_cast<CostOpInterface>(op); costs && !flops)
    flops = costs.getFlops();
  return model.kernelUs(flops.value_or(0), traffic, elementTypeOf(op));
}

uint64_t LocalCosts::bytesOf(Value value) const {
  auto it = bytes.find(value);
  return it != bytes.end() ? it->second : shardc::bytesOf(getDeliveredType(value.getType()));
}

std::optional<uint64_t> LocalCosts::exchangedBytes(Operation *op) const {
  auto it = exchanged.find(op);
  return it == exchanged.end() ? std::nullopt : std::optional(it->second);
}

/// `instance` is the function, or a clone of it made for some device, op by op.
LogicalResult LocalCosts::take(func::FuncOp function, func::FuncOp instance,
                               const cost::CostModel &model, std::optional<RunBy> runBy) {
  auto takeValue = [&](Value value, Value sized) {
    RankedTensorType type = getDeliveredType(sized.getType());
    if (type && !getDeliveredType(value.getType()).hasStaticShape()) {
      uint64_t &most = bytes[value];
      most = std::max(most, shardc::bytesOf(type));
    }
  };
  for (auto [value, sized] : llvm::zip_equal(function.getArguments(), instance.getArguments()))
    takeValue(value, sized);
  // Index arithmetic and empty buckets may be gone in the clone, and cost nothing; everything else
  // is there, in the same order.
  auto mayBeGone = [](Operation &op) {
    return llvm::all_of(op.getResultTypes(), [](Type type) { return type.isIntOrIndex(); }) &&
           (op.getNumResults() != 0 || op.getNumOperands() == 0);
  };
  auto other = instance.getBody().front().begin(), end = instance.getBody().front().end();
  for (Operation &op : function.getBody().front()) {
    if (mayBeGone(op))
      continue;
    while (other != end && mayBeGone(*other))
      ++other;
    if (other == end || other->getName() != op.getName())
      return op.emitOpError("has no cost on one rank: costs are those of the stages \"local\" and "
                            "\"scheduled\", and this op belongs to neither");
    for (auto [value, sized] : llvm::zip_equal(op.getResults(), other->getResults()))
      takeValue(value, sized);
    double &most = us[&op];
    std::optional<double> flops =
        runBy ? flopsOfLast(&*other, runBy->values, runBy->which) : std::nullopt;
    most = std::max(most, kernelUsOf(&*other, model, flops));
    if (auto collective = dyn_cast<CollectiveOpInterface>(*other); collective && runBy)
      if (auto moved = shardc::exchangedBytes(collective, runBy->which, runBy->all))
        exchanged[&op] = std::max(exchanged[&op], *moved);
    ++other;
  }
  return success();
}

/// Some of many kinds of devices, from the first to the last, where sizes are symbolic and looking
/// at each would take long: each has a clone of the function, in which index arithmetic is done.
/// Symbolic dims are in chunks, of which the first rank has the most, and some rank between it and
/// the last the most neighbours. Of shares that are known every one is looked at.
static std::deque<DeviceClass> sampled(std::deque<DeviceClass> classes, func::FuncOp function) {
  auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
  if (!symbols || symbols.empty())
    return classes;
  constexpr size_t kAll = 16, kFewest = 4, kMostOps = 20000;
  auto ops = static_cast<size_t>(llvm::range_size(function.getBody().front()));
  size_t count = std::max(kFewest, kMostOps / std::max<size_t>(ops, 1));
  if (classes.size() <= kAll || classes.size() <= count)
    return classes;
  std::deque<DeviceClass> some;
  for (size_t i = 0; i < count; ++i)
    some.push_back(std::move(classes[i * (classes.size() - 1) / (count - 1)]));
  return some;
}

FailureOr<LocalCosts> LocalCosts::compute(func::FuncOp function, const cost::CostModel &model,
                                          const SymbolValues &sizes) {
  LocalCosts costs;
  std::optional<Mesh> mesh = findMesh(function);
  if (!mesh) {
    if (failed(costs.take(function, function, model, std::nullopt)))
      return failure();
    return costs;
  }
  // Clones say by positions in the mesh of all ranks which devices run them.
  auto module = function->getParentOfType<ModuleOp>();
  Mesh world = module ? findWorld(module).value_or(*mesh) : *mesh;
  Devices devices(world);
  if (isStatic(function)) {
    SmallVector<int64_t> runBy = devicesThatRun(function, devices);
    RankValues values(world, function.getContext());
    if (failed(costs.take(function, function, model, RunBy{runBy, devices, values})))
      return failure();
    return costs;
  }
  func::FuncOp bound = function.clone();
  bindSymbols(bound, sizes, /*typical=*/true, MeshAttr::get(function.getContext(), *mesh));
  std::vector<SpecializedFunction> variants;
  {
    // A size that cannot be followed is an error where shapes must be static, and a guess here.
    ScopedDiagnosticHandler silent(function.getContext(), [](Diagnostic &) {});
    auto varying = varyingExtents(bound, MeshAttr::get(function.getContext(), world));
    variants =
        makeVariants(bound, sampled(classifyDevices(varying, devices), function), devices, world);
  }
  bool taken = true;
  for (SpecializedFunction &variant : variants) {
    RankValues values(world, function.getContext());
    taken = taken && succeeded(costs.take(function, variant.function, model,
                                          RunBy{variant.devices, devices, values}));
    variant.function.erase();
  }
  bound.erase();
  if (!taken)
    return failure();
  return costs;
}
