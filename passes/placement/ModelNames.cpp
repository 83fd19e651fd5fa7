// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/ModelNames.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "dialects/interfaces/OriginMemory.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shardc {
namespace {

std::vector<int64_t> shapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return {};
  std::vector<int64_t> shape;
  for (int64_t size : type.getShape())
    shape.push_back(ShapedType::isDynamic(size) ? kDynamic : size);
  return shape;
}

std::vector<std::string> namesOf(Attribute attribute, StringRef otherwise) {
  if (auto one = dyn_cast_or_null<StringAttr>(attribute))
    return {one.getValue().str()};
  std::vector<std::string> names;
  if (auto several = dyn_cast_or_null<ArrayAttr>(attribute))
    for (Attribute name : several)
      if (auto text = dyn_cast<StringAttr>(name))
        names.push_back(text.getValue().str());
  if (names.empty())
    names.push_back(otherwise.str());
  return names;
}

bool isWeight(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto kind = function
                  ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), dist::kKindAttr)
                  : nullptr;
  return kind && kind.getValue() != "input";
}

using RolesByModule = llvm::StringMap<plan::DimRoles>;

/// Calls `visit` with a module's path and those of the modules around it.
void forEachModule(StringRef path, llvm::function_ref<void(StringRef)> visit) {
  for (; !path.empty(); path = path.contains('.') ? path.rsplit('.').first : StringRef())
    visit(path);
}

/// Looks for the ops that give the dims of a parameter a role, through copies, casts and
/// permutations of it.
class RoleFinder {
public:
  /// The roles in all of the function, which is the path "", and in each module with an op that
  /// gives one. Of several ops the first one in the program decides.
  RolesByModule find(BlockArgument parameter) {
    SmallVector<std::optional<int64_t>> dims;
    for (int64_t d = 0, e = cast<RankedTensorType>(parameter.getType()).getRank(); d < e; ++d)
      dims.push_back(d);
    visit(parameter, dims);
    llvm::erase_if(readings, [&](const Reading &reading) {
      return reading.op->getBlock() != parameter.getOwner();
    });
    llvm::sort(readings,
               [](const Reading &a, const Reading &b) { return a.op->isBeforeInBlock(b.op); });
    RolesByModule found;
    for (const Reading &reading : readings) {
      found[""].complete(reading.roles);
      forEachModule(getModulePath(reading.op->getLoc()),
                    [&](StringRef path) { found[path].complete(reading.roles); });
    }
    return found;
  }

  /// The first op on the way from the parameter to its uses that makes something else of it; null
  /// where there is none.
  Operation *changingOp() const { return changing; }

private:
  struct Reading {
    Operation *op;
    plan::DimRoles roles;
  };

  /// `dims[i]`: the dim of the parameter that dim i of `value` is, or none.
  void visit(Value value, ArrayRef<std::optional<int64_t>> dims, unsigned depth = 0) {
    for (OpOperand &use : value.getUses()) {
      auto op = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
      if (!op)
        continue;
      ShardingRule rule = op.getShardingRule();
      unsigned operand = use.getOperandNumber();
      if (operand >= rule.operands.size() || rule.operands[operand].size() != dims.size())
        continue;
      bool reads = findRoles(op, rule, operand, dims);
      bool isFollowed =
          !reads && rule.operands.size() == 1 && rule.results.size() == 1 && depth < 4;
      // A value that is only moved or cast on its way: follow it, a few steps at most.
      if (isFollowed) {
        SmallVector<std::optional<int64_t>> next;
        for (const DimFactors &factors : rule.results[0])
          next.push_back(sourceDim(rule.operands[0], factors, dims));
        isFollowed = llvm::any_of(next, [](auto &dim) { return dim.has_value(); });
        if (isFollowed)
          visit(op->getResult(0), next, depth + 1);
      }
      bool isFirst =
          !changing || (op->getBlock() == changing->getBlock() && op->isBeforeInBlock(changing));
      if (!reads && !isFollowed && isFirst)
        changing = op;
    }
  }

  static std::optional<int64_t> sourceDim(const TensorFactors &source, const DimFactors &factors,
                                          ArrayRef<std::optional<int64_t>> dims) {
    if (!factors.empty())
      for (auto [d, candidate] : llvm::enumerate(source))
        if (candidate == factors)
          return dims[d];
    return std::nullopt;
  }

  bool findRoles(ShardingRuleOpInterface op, const ShardingRule &rule, unsigned operand,
                 ArrayRef<std::optional<int64_t>> dims) {
    // Factors of activations are not the parameter's to give.
    llvm::SmallDenseSet<unsigned> ofActivations;
    bool hasActivation = false;
    for (auto [o, tensor] : llvm::enumerate(rule.operands)) {
      if (o == operand || o >= op->getNumOperands() || isWeight(op->getOperand(o)))
        continue;
      hasActivation = true;
      for (const DimFactors &factors : tensor)
        ofActivations.insert(factors.begin(), factors.end());
    }
    if (!hasActivation)
      return false;
    plan::DimRoles roles;
    for (auto [d, factors] : llvm::enumerate(rule.operands[operand])) {
      if (factors.empty() || !dims[d])
        continue;
      FactorKind kind = rule.factors[factors.front()].kind;
      bool isShared = ofActivations.contains(factors.front());
      if (kind == FactorKind::Reducing)
        // A sum over what no activation has is a selection by an index.
        roles.complete({{}, dims[d], isShared ? std::nullopt : dims[d]});
      else if (kind == FactorKind::Parallel && !isShared)
        roles.complete({dims[d], {}, {}});
    }
    readings.push_back({op, roles});
    return true;
  }

  std::vector<Reading> readings;
  Operation *changing = nullptr;
};

/// `roles[i]` is of parameter i.
void findModules(func::FuncOp function, ArrayRef<RolesByModule> roles, ModelIndex &index) {
  // Every module path and its ancestors, with the ops inside, in order of first appearance.
  llvm::MapVector<StringRef, ModelIndex::Boundary> modules;
  for (Operation &op : function.getBody().front().without_terminator())
    forEachModule(getModulePath(op.getLoc()),
                  [&](StringRef path) { modules[path].operations.push_back(&op); });

  // Parameters belong to the module that their name says.
  llvm::StringMap<std::vector<unsigned>> parametersOf;
  for (auto [p, parameter] : llvm::enumerate(index.names.parameters))
    for (const std::string &name : parameter.names)
      parametersOf[StringRef(name).contains('.') ? StringRef(name).rsplit('.').first : StringRef()]
          .push_back(p);
  for (auto &entry : parametersOf)
    forEachModule(entry.getKey(), [&](StringRef path) { modules[path]; });

  for (auto &[path, boundary] : modules) {
    llvm::SmallDenseSet<Operation *> inside(boundary.operations.begin(), boundary.operations.end());
    llvm::SetVector<Value> inputs, outputs;
    for (Operation *op : boundary.operations) {
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()) && !isWeight(operand) &&
            !inside.contains(operand.getDefiningOp()))
          inputs.insert(operand);
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()) &&
            llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !inside.contains(user); }))
          outputs.insert(result);
    }
    plan::ModuleBoundary names{path.str(), {}, {}, {}};
    for (unsigned p : parametersOf.lookup(path)) {
      auto own = roles[p].find(path);
      names.parameters.push_back(
          {p, own == roles[p].end() ? index.names.parameters[p].roles : own->second});
    }
    for (Value value : inputs) {
      boundary.inputs.push_back(value);
      names.inputs.push_back(shapeOf(value));
    }
    for (Value value : outputs) {
      boundary.outputs.push_back(value);
      names.outputs.push_back(shapeOf(value));
    }
    index.names.modules.push_back(std::move(names));
    index.modules.push_back(std::move(boundary));
  }
}

} // namespace

ModelIndex indexModel(func::FuncOp function) {
  OriginMemory origins;
  ModelIndex index;
  std::vector<RolesByModule> roles;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto kind = function.getArgAttrOfType<StringAttr>(number, dist::kKindAttr);
    bool isInput = !kind || kind.getValue() == "input";
    // Buffers and constants are named like parameters, so that a plan can place them.
    plan::NamedTensor tensor{
        namesOf(function.getArgAttr(number, dist::kNameAttr), "arg" + std::to_string(number)),
        shapeOf(argument),
        {}};
    tensor.isBuffer = !isInput && kind.getValue() != "parameter";
    if (!isInput) {
      RoleFinder finder;
      roles.push_back(isa<RankedTensorType>(argument.getType()) ? finder.find(argument)
                                                                : RolesByModule());
      tensor.roles = roles.back().lookup("");
      if (Operation *op = finder.changingOp(); op && roles.back().empty())
        tensor.changedBy =
            ("'" + op->getName().getStringRef() + "' in " + describePlace(op->getLoc())).str();
    }
    (isInput ? index.names.inputs : index.names.parameters).push_back(std::move(tensor));
    (isInput ? index.inputArguments : index.parameterArguments).push_back(number);
  }
  Operation *end = function.getBody().front().getTerminator();
  // What the model returns comes first, whatever it changes before. New values of buffers are no
  // outputs: they have the layout of the buffer.
  for (bool isMutation : {false, true})
    for (auto [number, value] : llvm::enumerate(end->getOperands())) {
      auto kind = function.getResultAttrOfType<StringAttr>(number, dist::kKindAttr);
      if (dist::isStateUpdate(kind) || (kind && kind.getValue() == "input_mutation") != isMutation)
        continue;
      index.names.outputs.push_back({namesOf(function.getResultAttr(number, dist::kNameAttr),
                                             "output" + std::to_string(number)),
                                     shapeOf(value),
                                     {}});
      index.outputResults.push_back(number);
      index.names.numReturned += !isMutation;
    }
  findModules(function, roles, index);
  return index;
}

} // namespace shardc
