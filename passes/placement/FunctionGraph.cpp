// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/FunctionGraph.h"
#include "passes/placement/MarkOwnRows.h"
#include "passes/placement/PlacedParts.h"

#include "dialects/aten/KnownLookups.h"
#include "dialects/aten/LookupLine.h"
#include "dialects/aten/Random.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/Shardings.h"
#include "dialects/dist/StateArguments.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "dialects/interfaces/OriginMemory.h"
#include "dialects/sharding/RuleBuilder.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc {
namespace {

std::vector<int64_t> shapeOf(RankedTensorType type) {
  std::vector<int64_t> shape;
  for (int64_t size : type.getShape())
    shape.push_back(ShapedType::isDynamic(size) ? kDynamic : size);
  return shape;
}

int64_t elementSize(RankedTensorType type) { return (type.getElementTypeBitWidth() + 7) / 8; }

/// The rule with the entries of operands that are no tensors taken out.
ShardingRule keepOperands(ShardingRule rule, ArrayRef<unsigned> kept) {
  auto renumber = [&](std::vector<unsigned> &list) {
    std::vector<unsigned> renumbered;
    for (unsigned operand : list) {
      const auto *found = llvm::find(kept, operand);
      if (found != kept.end())
        renumbered.push_back(found - kept.begin());
    }
    list = std::move(renumbered);
  };
  std::vector<TensorFactors> operands;
  for (unsigned operand : kept)
    operands.push_back(std::move(rule.operands[operand]));
  rule.operands = std::move(operands);
  for (std::vector<unsigned> &set : rule.linearIn)
    renumber(set);
  renumber(rule.additive);
  return rule;
}

struct Request {
  Layout layout;
  std::vector<Strength> strengths;
  std::vector<std::string> origins;
};

std::optional<Request> readRequest(Attribute annotation, Attribute strength, Attribute origin) {
  auto layout = dyn_cast_or_null<dist::LayoutAttr>(annotation);
  if (!layout)
    return std::nullopt;
  Request request{layout.getValue(), {}, {}};
  if (auto names = dyn_cast_or_null<ArrayAttr>(strength))
    for (StringRef name : names.getAsValueRange<StringAttr>())
      request.strengths.push_back(name == "pinned" ? Strength::Pinned
                                  : name == "weak" ? Strength::Weak
                                                   : Strength::Normal);
  if (auto texts = dyn_cast_or_null<ArrayAttr>(origin))
    for (StringRef text : texts.getAsValueRange<StringAttr>())
      request.origins.push_back(text.str());
  return request;
}

/// What the graph needs to know of an op beside its operands.
struct OpFacts {
  unsigned rule;
  SmallVector<unsigned> shapes;
  SmallVector<int64_t> sizes;

  /// Whether it follows from the op's own attributes and types: all sizes are static. (Where they
  /// are not, a rule asks where they come from.) That of a lookup looks at positions that are
  /// known, or at what is known of them.
  static bool areOfTypes(Operation *op) {
    if (auto lookup = dyn_cast<aten::IndexSelectOp>(op); lookup && aten::constantPositions(lookup))
      return false;
    if (aten::LookupLine::of(op))
      return false;
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    return llvm::all_of(op->getOperandTypes(), isStatic) &&
           llvm::all_of(op->getResultTypes(), isStatic);
  }
};

/// Ops that are equal but for their operands' values and for what the dialect does not define.
struct SameOp : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(const Operation *constOp) {
    auto *op = const_cast<Operation *>(constOp); // as MLIR's own CSE: what is asked changes nothing
    auto types = [](auto range) { return llvm::hash_combine_range(range.begin(), range.end()); };
    return llvm::hash_combine(op->getName(), op->hashProperties(), types(op->getOperandTypes()),
                              types(op->getResultTypes()));
  }
  static bool isEqual(const Operation *constA, const Operation *constB) {
    auto *a = const_cast<Operation *>(constA), *b = const_cast<Operation *>(constB);
    auto isKey = [](Operation *op) { return op == getEmptyKey() || op == getTombstoneKey(); };
    if (a == b || isKey(a) || isKey(b))
      return a == b;
    return a->getName() == b->getName() && a->getOperandTypes() == b->getOperandTypes() &&
           a->getResultTypes() == b->getResultTypes() &&
           a->getName().compareOpProperties(a->getPropertiesStorage(), b->getPropertiesStorage());
  }
};

class Builder {
public:
  Builder(func::FuncOp function, const Mesh &mesh) : function(function), result(function, mesh) {}

  FailureOr<FunctionGraph> run() {
    if (!llvm::hasSingleElement(function.getBody())) {
      function.emitError("placement needs straight-line code, but the function has several blocks");
      return failure();
    }
    if (failed(checkPlacedParts(function, result.graph.mesh)))
      return failure();
    OriginMemory origins;
    halfPlaced = isHalfPlaced(function, result.graph.mesh);
    states = dist::findStateArguments(function);
    gradients = dist::findGradientArguments(function);
    findInvariantSources();
    for (BlockArgument argument : function.getArguments())
      addArgument(argument);
    for (Operation &op : function.getBody().front().without_terminator())
      addOperation(&op);
    addOutputs();
    markOwnRows(function, result);
    if (!unsupported.empty())
      reportUnsupported();
    if (!unsupported.empty() || failedAlready)
      return failure();
    for (const std::string &problem : result.graph.validate()) {
      function.emitError(problem);
      failedAlready = true;
    }
    return failedAlready ? FailureOr<FunctionGraph>(failure()) : std::move(result);
  }

private:
  void bind(Value value, TensorId tensor) {
    result.tensorOf[value] = tensor;
    result.values.resize(std::max<size_t>(result.values.size(), tensor + 1));
    result.values[tensor] = value;
  }

  /// Constants, and those buffers that a run changes by invariant values alone, if at all: a
  /// counter stays whole, but a mean of activations is best where they are. Each value is visited
  /// once.
  void findInvariantSources() {
    SmallVector<Value> varying;
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto kind = function.getArgAttrOfType<StringAttr>(number, dist::kKindAttr);
      if (kind &&
          (kind.getValue() == "buffer" || kind.getValue() == "constant" ||
           kind.getValue() == "state") &&
          isUnplacedTensor(argument) && !function.getArgAttr(number, dist::kAnnotationAttr) &&
          !isSharded(number))
        invariantSources.insert(argument);
      else
        varying.push_back(argument);
    }
    if (llvm::none_of(states, [](std::optional<unsigned> s) { return s.has_value(); }))
      return;
    llvm::DenseSet<Value> seen(varying.begin(), varying.end());
    auto visit = [&](Value value) {
      if (isa<RankedTensorType>(value.getType()) && seen.insert(value).second)
        varying.push_back(value);
    };
    for (Operation &op : function.getBody().front().without_terminator())
      if (!mayBeInvariant(&op))
        llvm::for_each(op.getResults(), visit);
    while (!varying.empty())
      for (OpOperand &use : varying.pop_back_val().getUses()) {
        if (!isa<func::ReturnOp>(use.getOwner())) {
          llvm::for_each(use.getOwner()->getResults(), visit);
        } else if (std::optional<unsigned> state = states[use.getOperandNumber()]) {
          invariantSources.erase(function.getArgument(*state));
          visit(function.getArgument(*state));
        }
      }
  }

  /// What is sharded after propagation is no source: propagation keeps sources whole, so that this
  /// is an argument that invariant ops do not use, or one whose text was edited.
  bool isSharded(unsigned number) {
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttr);
    return sharding && llvm::any_of(sharding.getValue().axes, [](const AxisSharding &axis) {
             return axis.placement.isShard();
           });
  }

  /// Whether all ranks compute the same from the same operands. So they would random numbers, but
  /// these cost too much to be made where only a part of them is used.
  static bool mayBeInvariant(Operation *op) {
    return isa<ShardingRuleOpInterface>(op) && isMemoryEffectFree(op) && !isa<aten::RandomOp>(op);
  }

  void addArgument(BlockArgument argument) {
    if (!isUnplacedTensor(argument))
      return;
    auto type = cast<RankedTensorType>(argument.getType());
    TensorId tensor = result.graph.addInput(shapeOf(type), elementSize(type));
    bind(argument, tensor);
    unsigned number = argument.getArgNumber();
    if (auto request = readRequest(function.getArgAttr(number, dist::kAnnotationAttr),
                                   function.getArgAttr(number, dist::kStrengthAttr),
                                   function.getArgAttr(number, dist::kOriginAttr)))
      result.graph.annotate({tensor, request->layout, request->strengths, request->origins});
    wish(argument, function.getArgAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttr));
  }

  /// Beside a placed part, what is written already is where propagation starts from. (In a function
  /// without one it is what an earlier run found.)
  void wish(Value value, dist::ShardingAttr sharding) {
    if (halfPlaced && sharding)
      result.graph.wish(result.tensorOf.lookup(value), sharding.getValue());
  }

  bool wishesForShard(Operation *op) const {
    return halfPlaced && llvm::any_of(wishesOf(op), [](const Sharding &wish) {
             return llvm::any_of(wish.axes,
                                 [](const AxisSharding &axis) { return axis.placement.isShard(); });
           });
  }

  /// A source that invariant ops compute with is whole on every rank, whatever others would make of
  /// it: they take their part for free.
  void keepWhole(Value source) {
    if (!result.wholeSources.insert(source).second)
      return;
    annotateWhole(result.tensorOf.lookup(source));
  }

  void annotateWhole(TensorId tensor) {
    result.graph.annotate({tensor,
                           Layout(result.graph.mesh),
                           std::vector<Strength>(result.graph.numAxes(), Strength::Weak),
                           {}});
  }

  bool isInvariant(Value value) const {
    return result.invariant.contains(value) || invariantSources.contains(value) ||
           !isa<RankedTensorType>(value.getType());
  }

  /// The tensor of an operand; for an invariant value that another op uses, a replicated input; for
  /// one that has a layout, an input that has it. None where the producer was reported.
  std::optional<TensorId> tensorOf(Value value) {
    auto found = result.tensorOf.find(value);
    if (found != result.tensorOf.end())
      return found->second;
    if (dist::LayoutAttr layout = dist::getLayout(value.getType())) {
      auto type = cast<RankedTensorType>(value.getType());
      bind(value, result.graph.addPlacedInput(shapeOf(type), elementSize(type), layout.getValue()));
      return result.tensorOf.lookup(value);
    }
    if (!result.invariant.contains(value))
      return std::nullopt;
    auto type = cast<RankedTensorType>(value.getType());
    TensorId tensor = result.graph.addInput(shapeOf(type), elementSize(type));
    bind(value, tensor);
    annotateWhole(tensor);
    return tensor;
  }

  /// Remembers which MLIR op the graph's newest op is.
  void bindOperation(Operation *op, ArrayRef<unsigned> operands) {
    result.operations.resize(result.graph.ops.size());
    result.operandNumbers.resize(result.graph.ops.size());
    result.operations.back() = op;
    result.operandNumbers.back().assign(operands.begin(), operands.end());
  }

  void addOperation(Operation *op) {
    if (isPlaced(op))
      return addPlacedOperation(op);
    if (auto redistribute = dyn_cast<dist::RedistributeOp>(op)) {
      if (isElsewhere(redistribute.getInput(), result.graph.mesh))
        return addArrival(redistribute);
      if (isElsewhere(redistribute.getResult(), result.graph.mesh))
        return; // it goes from wherever the value is
    }
    if (mayBeInvariant(op) && !wishesForShard(op) &&
        llvm::all_of(op->getOperands(), [&](Value operand) { return isInvariant(operand); })) {
      for (Value value : op->getResults())
        if (isa<RankedTensorType>(value.getType())) // a size is the same on all ranks anyway
          result.invariant.insert(value);
      for (Value operand : op->getOperands())
        if (invariantSources.contains(operand))
          keepWhole(operand);
      return;
    }
    SmallVector<unsigned> kept;
    std::vector<TensorId> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      std::optional<TensorId> tensor = tensorOf(operand.get());
      if (!tensor)
        return; // its producer was reported
      kept.push_back(operand.getOperandNumber());
      operands.push_back(*tensor);
    }
    if (auto constraint = dyn_cast<dist::ConstrainOp>(op)) {
      auto request = readRequest(constraint.getLayoutAttr(), op->getAttr(dist::kStrengthAttr),
                                 op->getAttr(dist::kOriginAttr));
      bind(constraint.getResult(),
           result.graph.addConstraint(operands.front(), request->layout, request->strengths,
                                      request->origins));
      bindOperation(op, kept);
      return wishForResults(op);
    }
    if (auto redistribute = dyn_cast<dist::RedistributeOp>(op))
      return addRedistribution(redistribute, operands.front());
    bool hasTensors = llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled) {
      // Index arithmetic and queries of global sizes are the same on all ranks.
      if (hasTensors)
        unsupported[op->getName().getStringRef()].push_back(op);
      return;
    }
    if (!hasTensors)
      return;
    const OpFacts *facts = factsOf(op, ruled, kept);
    if (!facts)
      return;
    TensorId first = result.graph.addOp(facts->rule, operands, facts->shapes, facts->sizes);
    for (auto [i, value] : llvm::enumerate(op->getResults()))
      bind(value, first + i);
    bindOperation(op, kept);
    wishForResults(op);
  }

  void wishForResults(Operation *op) {
    if (halfPlaced)
      for (auto [number, wish] : llvm::enumerate(wishesOf(op)))
        result.graph.wish(result.tensorOf.lookup(op->getResult(number)), wish);
  }

  /// One that makes another layout of what ops still to be placed use is there for them as well.
  void addPlacedOperation(Operation *op) {
    auto redistribute = dyn_cast<dist::RedistributeOp>(op);
    if (redistribute && !isElsewhere(redistribute.getInput(), result.graph.mesh) &&
        !isElsewhere(redistribute.getResult(), result.graph.mesh) &&
        hasUnplacedUser(redistribute.getInput()))
      addRedistribution(redistribute, *tensorOf(redistribute.getInput()));
  }

  /// What comes from another mesh is there, in any layout, as if it were made from nothing.
  void addArrival(dist::RedistributeOp op) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    unsigned rule =
        result.graph.internRule(RuleBuilder::ofShapes({}, {shapeOf(type)}).create().build());
    unsigned shape = result.graph.internShape(shapeOf(type));
    int64_t size = elementSize(type);
    bind(op.getResult(), result.graph.addOp(rule, {}, ArrayRef(shape), ArrayRef(size)));
    bindOperation(op, {});
    wishForResults(op);
  }

  void addRedistribution(dist::RedistributeOp op, TensorId input) {
    dist::LayoutAttr target = op.getTargetLayout();
    bind(op.getResult(), result.graph.addRedistribution(
                             input, target ? std::optional(target.getValue()) : std::nullopt));
    bindOperation(op, {0});
    if (!target)
      wishForResults(op);
  }

  /// Null where a result is no tensor, which is reported.
  const OpFacts *factsOf(Operation *op, ShardingRuleOpInterface ruled, ArrayRef<unsigned> kept) {
    bool repeats = OpFacts::areOfTypes(op);
    if (repeats)
      if (auto known = facts.find(op); known != facts.end())
        return &known->second;
    OpFacts found;
    for (Value value : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type) {
        op->emitError("results must be ranked tensors to be placed, got ") << value.getType();
        failedAlready = true;
        return nullptr;
      }
      found.shapes.push_back(result.graph.internShape(shapeOf(type)));
      found.sizes.push_back(elementSize(type));
    }
    found.rule = result.graph.internRule(keepOperands(ruled.getShardingRule(), kept));
    OpFacts &place = repeats ? facts[op] : last;
    place = std::move(found);
    return &place;
  }

  void addOutputs() {
    for (auto [number, value] :
         llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
      bool isDone = dist::getLayout(value.getType()) &&
                    !function.getResultAttr(number, dist::kAnnotationAttr);
      std::optional<TensorId> tensor = isDone ? std::nullopt : tensorOf(value);
      if (!tensor) {
        result.outputs.push_back(kNone);
        continue;
      }
      auto request = readRequest(function.getResultAttr(number, dist::kAnnotationAttr),
                                 function.getResultAttr(number, dist::kStrengthAttr),
                                 function.getResultAttr(number, dist::kOriginAttr));
      if (!request) {
        request.emplace();
        request->layout = Layout(result.graph.mesh);
        for (Placement &placement : request->layout.placements)
          placement = Placement::open();
      }
      TensorId output = result.graph.addConstraint(*tensor, request->layout, request->strengths,
                                                   request->origins);
      if (std::optional<unsigned> state = states[number])
        tie(output, number, *state);
      // Who left the gradient of a placed argument open wants it where it is cheapest.
      else if (std::optional<unsigned> owner = gradients[number];
               !halfPlaced && owner && !function.getResultAttr(number, dist::kAnnotationAttr))
        result.graph.tie(output, result.tensorOf.lookup(function.getArgument(*owner)));
      if (auto wish = function.getResultAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttr);
          halfPlaced && wish)
        result.graph.wish(output, wish.getValue());
      result.values.resize(output + 1);
      result.values[output] = value;
      result.outputs.push_back(output);
      bindOperation(nullptr, {0});
    }
  }

  /// A program starts where the last run ended: the new value of a buffer has the buffer's layout.
  void tie(TensorId output, unsigned number, unsigned state) {
    BlockArgument argument = function.getArgument(state);
    if (function.getResultTypes()[number] == argument.getType() &&
        !function.getResultAttr(number, dist::kAnnotationAttr))
      return result.graph.tie(output, result.tensorOf.lookup(argument));
    function.emitError("result ")
        << number << " is the new value of argument " << state
        << ": it must have its type, and its layout is asked for on the argument";
    failedAlready = true;
  }

  void reportUnsupported() {
    for (auto &[name, operations] : unsupported) {
      InFlightDiagnostic error = operations.front()->emitError()
                                 << "'" << name << "' has no sharding rule (" << operations.size()
                                 << (operations.size() == 1 ? " op" : " ops")
                                 << "); implement ShardingRuleOpInterface for it";
      for (Operation *op : ArrayRef(operations).drop_front().take_front(2))
        error.attachNote(op->getLoc()) << "also here";
    }
  }

  func::FuncOp function;
  FunctionGraph result;
  llvm::DenseSet<Value> invariantSources;
  SmallVector<std::optional<unsigned>> gradients; ///< by result: the argument that it is one of
  SmallVector<std::optional<unsigned>> states;    ///< by result: the argument that it updates
  llvm::MapVector<StringRef, SmallVector<Operation *>> unsupported;
  llvm::DenseMap<Operation *, OpFacts, SameOp> facts; ///< where they follow from types
  OpFacts last;                                       ///< of the last op where they do not
  bool halfPlaced = false;
  bool failedAlready = false;
};

} // namespace

FailureOr<FunctionGraph> buildFunctionGraph(func::FuncOp function, const Mesh &mesh) {
  return Builder(function, mesh).run();
}

FailureOr<Mesh> requireMesh(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr) : dist::MeshAttr();
  if (mesh)
    return mesh.getValue();
  function.emitError("the module has no 'dist.mesh'; run dist-apply-plan with a mesh first");
  return failure();
}

} // namespace shardc
