// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/ShardingAttributes.h"

#include "passes/placement/PlacedParts.h"
#include "passes/placement/core/TensorStates.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/Shardings.h"
#include "dialects/dist/SignatureAttributes.h"

#include <unordered_map>

using namespace mlir;

namespace shardc {
namespace {

/// Whether there is something to say about the op's results.
bool isToBePlaced(Operation &op) { return llvm::any_of(op.getResults(), isUnplacedTensor); }

//===-- Writing
//----------------------------------------------------------------------------------===//

class Writer {
public:
  Writer(const FunctionGraph &source, const Propagation &propagation)
      : source(source), function(source.function), propagation(propagation),
        numAxes(source.graph.numAxes()) {}

  void run() {
    auto name = StringAttr::get(function.getContext(), dist::kShardingAttr);
    for (Operation &op : function.getBody().front().without_terminator())
      if (ArrayAttr shardings = ofResults(op))
        op.setDiscardableAttr(name, shardings);
    dist::SignatureAttributes signature(function);
    for (BlockArgument argument : function.getArguments())
      if (auto tensor = source.tensorOf.find(argument);
          tensor != source.tensorOf.end() && isUnplacedTensor(argument))
        signature.argument(argument.getArgNumber()).set(name, get(tensor->second));
    for (auto [number, tensor] : llvm::enumerate(source.outputs))
      if (tensor != kNone)
        signature.result(number).set(name, get(tensor));
    signature.store();
  }

private:
  /// Null for an op without tensors, or one that is placed.
  ArrayAttr ofResults(Operation &op) {
    if (!isToBePlaced(op))
      return {};
    SmallVector<Attribute> list;
    for (Value value : op.getResults()) {
      auto tensor = source.tensorOf.find(value);
      list.push_back(tensor != source.tensorOf.end() ? get(tensor->second) : getWhole());
    }
    return ArrayAttr::get(function.getContext(), list);
  }

  /// Of an invariant value that only invariant ops use; as that of those that others use.
  Attribute getWhole() {
    if (!whole) {
      SmallVector<AxisState> states(
          numAxes, {AxisPlacement::replicate(), Strength::Weak, /*annotated=*/true, kNone});
      whole = make(states);
    }
    return whole;
  }

  Attribute get(TensorId tensor) {
    std::span states(propagation.states);
    states = states.subspan(size_t(tensor) * numAxes, numAxes);
    key.clear();
    for (const AxisState &s : states) {
      const AxisPlacement &p = s.placement;
      key.insert(key.end(),
                 {int64_t(p.kind), int64_t(s.strength), s.annotated, int64_t(p.reduction)});
      if (p.isShard())
        key.insert(key.end(), {p.dim, p.level, p.storage, p.split.fixed, p.split.blocks,
                               p.split.granule, reinterpret_cast<int64_t>(p.split.sizes)});
    }
    Attribute &made = attributes[key];
    if (!made)
      made = make(states);
    return made;
  }

  Attribute make(std::span<const AxisState> states) {
    return dist::ShardingAttr::get(function.getContext(), shardingOf(source.graph.mesh, states));
  }

  struct KeyHash {
    size_t operator()(const std::vector<int64_t> &key) const {
      return llvm::hash_combine_range(key.begin(), key.end());
    }
  };
  const FunctionGraph &source;
  func::FuncOp function;
  const Propagation &propagation;
  unsigned numAxes;
  Attribute whole;
  std::unordered_map<std::vector<int64_t>, Attribute, KeyHash> attributes;
  std::vector<int64_t> key; ///< scratch
};

//===-- Reading
//----------------------------------------------------------------------------------===//

class Reader {
public:
  explicit Reader(const FunctionGraph &source)
      : source(source), function(source.function), numAxes(source.graph.numAxes()) {}

  FailureOr<Propagation> run() {
    result.states.resize(source.graph.tensors.size() * numAxes);
    setFinalStates(source.graph, result);
    for (BlockArgument argument : function.getArguments())
      if (auto tensor = source.tensorOf.find(argument);
          tensor != source.tensorOf.end() && isUnplacedTensor(argument))
        readArgument(argument, tensor->second);
    for (Operation &op : function.getBody().front().without_terminator())
      if (isToBePlaced(op))
        readOp(op);
    for (auto [number, tensor] : llvm::enumerate(source.outputs))
      if (tensor != kNone)
        readResult(number, tensor);
    if (failed(reportMissing()) || wrong)
      return failure();
    if (failed(report(source, {}, checkStates(source.graph, result))))
      return failure();
    return std::move(result);
  }

private:
  void readArgument(BlockArgument argument, TensorId tensor) {
    unsigned number = argument.getArgNumber();
    read(function.getArgAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttr), tensor,
         "argument " + std::to_string(number), argument.getLoc(),
         source.wholeSources.contains(argument));
  }

  void readResult(unsigned number, TensorId tensor) {
    read(function.getResultAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttr), tensor,
         "result " + std::to_string(number), function.getLoc(), /*isWhole=*/false);
  }

  void readOp(Operation &op) {
    auto list = op.getAttrOfType<ArrayAttr>(dist::kShardingAttr);
    for (OpResult value : op.getResults()) {
      auto tensor = source.tensorOf.find(value);
      auto sharding = list ? cast<dist::ShardingAttr>(list[value.getResultNumber()]) : nullptr;
      read(sharding, tensor == source.tensorOf.end() ? kNone : tensor->second,
           ("'" + op.getName().getStringRef() + "'").str(), op.getLoc(),
           source.invariant.contains(value));
    }
  }

  void read(dist::ShardingAttr sharding, TensorId tensor, const std::string &what, Location loc,
            bool isWhole) {
    ++numTensors;
    if (!sharding) {
      missing.emplace_back(loc, what);
      return;
    }
    const std::vector<AxisState> &states = statesOf(sharding);
    if (states.size() != numAxes || !(sharding.getValue().mesh == source.graph.mesh)) {
      emitError(loc) << what << " has a 'dist.sharding' for " << sharding.getMesh()
                     << ", which is not the module's 'dist.mesh'";
      wrong = true;
      return;
    }
    bool replicated = llvm::all_of(
        states, [](const AxisState &s) { return s.placement.kind == PlacementKind::Replicate; });
    if (isWhole && !replicated) {
      emitError(loc) << what
                     << " is the same on every rank, because it is made from constants and buffers "
                        "alone, or such values are made from it: its 'dist.sharding' must be R on "
                        "every axis; put a dist.constrain where a part of it is to be used";
      wrong = true;
    } else if (tensor != kNone) {
      std::copy(states.begin(), states.end(), result.states.begin() + size_t(tensor) * numAxes);
    }
  }

  const std::vector<AxisState> &statesOf(dist::ShardingAttr sharding) {
    auto [known, isNew] = decoded.try_emplace(sharding);
    if (isNew)
      known->second = shardc::statesOf(sharding.getValue(), result.sizes);
    return known->second;
  }

  LogicalResult reportMissing() {
    if (missing.empty())
      return success();
    if (missing.size() == numTensors) {
      function.emitError("no tensor has a 'dist.sharding': run dist-propagate first, which says "
                         "what dist-place is to do");
      return failure();
    }
    InFlightDiagnostic error = emitError(missing.front().first)
                               << missing.front().second << " has no 'dist.sharding' ("
                               << missing.size() << " of " << numTensors
                               << " tensors have none): run dist-propagate again, or write one "
                                  "with ? for each axis to ask for nothing";
    for (auto &[loc, what] : ArrayRef(missing).drop_front().take_front(2))
      error.attachNote(loc) << what << " has no 'dist.sharding' either";
    return failure();
  }

  const FunctionGraph &source;
  func::FuncOp function;
  unsigned numAxes;
  Propagation result;
  llvm::DenseMap<Attribute, std::vector<AxisState>> decoded;
  SmallVector<std::pair<Location, std::string>, 0> missing;
  size_t numTensors = 0;
  bool wrong = false;
};

} // namespace

void writeShardings(const FunctionGraph &function, const Propagation &propagation) {
  Writer(function, propagation).run();
}

FailureOr<Propagation> readShardings(const FunctionGraph &function) {
  return Reader(function).run();
}

void removeShardings(func::FuncOp function) {
  auto name = StringAttr::get(function.getContext(), dist::kShardingAttr);
  for (Operation &op : function.getBody().getOps())
    op.removeDiscardableAttr(name);
  dist::SignatureAttributes signature(function);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    signature.argument(i).erase(name);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    signature.result(i).erase(name);
  signature.store();
}

} // namespace shardc
