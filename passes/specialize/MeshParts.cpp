// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/MeshParts.h"

#include "dialects/aten/Emitter.h"
#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static MeshAttr meshOf(DictionaryAttr attributes) {
  auto layout = attributes ? attributes.getAs<LayoutAttr>(kLayoutAttr) : LayoutAttr();
  return layout ? layout.getMesh() : MeshAttr();
}

/// Groups that are rank lists come with programs that were imported with collectives in them: they
/// say which ranks meet, not which ranks have a tensor.
static MeshAttr meshOf(CollectiveOpInterface op) {
  auto axes = dyn_cast<AxesAttr>(op.getGroup());
  return axes ? axes.getMesh() : MeshAttr();
}

std::vector<MeshAttr> shardc::partialMeshes(func::FuncOp function, Devices &devices) {
  llvm::SetVector<MeshAttr> meshes;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    meshes.insert(meshOf(function.getArgAttrDict(i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    meshes.insert(meshOf(function.getResultAttrDict(i)));
  function.walk([&](Operation *op) {
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      meshes.insert(meshOf(collective));
    else if (auto leave = dyn_cast<LeaveMeshOp>(op))
      meshes.insert(leave.getMesh());
    else if (auto enter = dyn_cast<EnterMeshOp>(op))
      meshes.insert(enter.getMesh());
  });
  std::vector<MeshAttr> partial;
  for (MeshAttr mesh : meshes)
    if (mesh && llvm::any_of(llvm::seq<int64_t>(0, devices.size()),
                             [&](int64_t device) { return !devices.isIn(mesh, device); }))
      partial.push_back(mesh);
  return partial;
}

std::deque<DeviceClass> shardc::splitByMeshes(std::deque<DeviceClass> classes,
                                              ArrayRef<MeshAttr> meshes, Devices &devices) {
  std::deque<DeviceClass> result;
  for (const DeviceClass &devicesOfClass : classes) {
    std::map<std::vector<bool>, size_t> known;
    for (int64_t device : devicesOfClass) {
      std::vector<bool> memberships;
      for (MeshAttr mesh : meshes)
        memberships.push_back(devices.isIn(mesh, device));
      auto [entry, added] = known.try_emplace(std::move(memberships), result.size());
      if (added)
        result.emplace_back();
      result[entry->second].push_back(device);
    }
  }
  return result;
}

namespace {

class PartKeeper {
public:
  PartKeeper(func::FuncOp function, int64_t device, Devices &all)
      : function(function), device(device), all(all) {}

  void numberCollectives() {
    int64_t ordinal = 0;
    Builder numbers(function.getContext());
    function.walk([&](CollectiveOpInterface op) {
      op->setAttr(kOrdinalAttr, numbers.getI64IntegerAttr(ordinal++));
    });
    function->removeAttr(kSequenceHashAttr); // a part of the sequence has another one
  }

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      visit(&op);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isUnused(&op))
        op.erase();
    for (BlockArgument argument : function.getArguments())
      if (isOutside(meshOf(function.getArgAttrDict(argument.getArgNumber()))))
        argument.setType(emptyType(argument.getType()));
    return checkAbsent();
  }

private:
  bool isOutside(MeshAttr mesh) { return mesh && !all.isIn(mesh, device); }

  void visit(Operation *op) {
    OpBuilder builder(op);
    if (auto leave = dyn_cast<LeaveMeshOp>(op)) {
      Value empty;
      if (isOutside(leave.getMesh()))
        empty = Emitter(builder, op->getLoc())
                    .zeros({builder.getIndexAttr(0)}, leave.getInput().getType().getElementType());
      op->getResult(0).replaceAllUsesWith(empty ? empty : leave.getInput());
      op->erase();
    } else if (auto enter = dyn_cast<EnterMeshOp>(op)) {
      op->getResult(0).replaceAllUsesWith(
          isOutside(enter.getMesh()) ? absent(builder, enter.getResult()) : enter.getInput());
      op->erase();
    } else if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
      if (!isOutside(meshOf(collective)))
        return;
      bool isExchange = isa<AllToAllOp>(op);
      for (Value result : op->getResults()) {
        Value none = isExchange && !collective.isAsync() ? nothing(builder, result) : Value();
        if (!none) {
          none = absent(builder, result);
          if (isExchange)
            exchanged.insert(none);
        }
        result.replaceAllUsesWith(none);
      }
      op->erase();
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      waitForRest(builder, wait);
    } else if (isa<func::ReturnOp>(op)) {
      for (OpOperand &operand : op->getOpOperands())
        if (isOutside(meshOf(function.getResultAttrDict(operand.getOperandNumber()))))
          operand.set(empty(builder, operand.get()));
    }
  }

  /// Stands for a value that the device does not have.
  Value absent(OpBuilder &builder, Value value) {
    auto none =
        UnrealizedConversionCastOp::create(builder, value.getLoc(), value.getType(), ValueRange());
    placeholders.insert(none);
    return none.getResult(0);
  }
  bool isAbsent(Value value) {
    Operation *op = value.getDefiningOp();
    return op && placeholders.contains(op);
  }

  /// To a rank that takes no part in an exchange of blocks nothing comes: it may be one that is to
  /// have an empty shard. Null for what is no flat tensor.
  Value nothing(OpBuilder &builder, Value result) {
    RankedTensorType type = getDeliveredType(result.getType());
    if (type.getRank() != 1)
      return Value();
    return Emitter(builder, result.getLoc())
        .zeros({builder.getIndexAttr(0)}, type.getElementType());
  }
  Value undelivered(OpBuilder &builder, Value future, Value result) {
    Value none = exchanged.contains(future) ? nothing(builder, result) : Value();
    return none ? none : absent(builder, result);
  }

  /// What a collective of another mesh delivers is absent, the rest is waited for.
  void waitForRest(OpBuilder &builder, WaitOp wait) {
    if (llvm::none_of(wait.getFutures(), [&](Value future) { return isAbsent(future); }))
      return;
    SmallVector<Value> rest;
    for (Value future : wait.getFutures())
      if (!isAbsent(future))
        rest.push_back(future);
    SmallVector<Value> delivered;
    if (!rest.empty())
      llvm::append_range(delivered, WaitOp::create(builder, wait.getLoc(), rest).getResults());
    size_t next = 0;
    for (auto [future, result] : llvm::zip_equal(wait.getFutures(), wait.getResults()))
      result.replaceAllUsesWith(isAbsent(future) ? undelivered(builder, future, result)
                                                 : delivered[next++]);
    wait.erase();
  }

  static Type emptyType(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? RankedTensorType::get(SmallVector<int64_t>(tensor.getRank(), 0),
                                          tensor.getElementType())
                  : type;
  }
  Value empty(OpBuilder &builder, Value value) {
    RankedTensorType type = getDeliveredType(value.getType());
    SmallVector<OpFoldResult> sizes(type.getRank(), builder.getIndexAttr(0));
    return Emitter(builder, value.getLoc()).zeros(sizes, type.getElementType());
  }

  /// Others may need what a collective sends, and every start needs its wait.
  static bool isUnused(Operation *op) {
    return isOpTriviallyDead(op) && !isa<CollectiveOpInterface, WaitOp>(op);
  }

  LogicalResult checkAbsent() {
    bool ok = true;
    function.walk([&](UnrealizedConversionCastOp op) {
      if (!placeholders.contains(op))
        return;
      ok = false;
      InFlightDiagnostic error =
          op->emitError() << "rank " << all.rank(device)
                          << " is outside of the mesh that this value is on, but runs ops that use "
                             "it";
      error.attachNote((*op->user_begin())->getLoc()) << "used here";
    });
    return success(ok);
  }

  func::FuncOp function;
  int64_t device;
  Devices &all;
  llvm::SmallPtrSet<Operation *, 8> placeholders;
  llvm::DenseSet<Value> exchanged; ///< placeholders of what an exchange delivers
};

} // namespace

LogicalResult shardc::keepPart(func::FuncOp function, ArrayRef<MeshAttr> meshes,
                               const DeviceClass &devices, Devices &all) {
  bool crosses = false;
  function.walk([&](Operation *op) { crosses |= isa<LeaveMeshOp, EnterMeshOp>(op); });
  if (meshes.empty() && !crosses)
    return success();
  PartKeeper keeper(function, devices.front(), all);
  if (!meshes.empty())
    keeper.numberCollectives();
  return keeper.run();
}
