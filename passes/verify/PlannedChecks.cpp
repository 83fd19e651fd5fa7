// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// planned: which ops its functions have, and views.

#include "passes/verify/PlannedChecks.h"
#include "passes/verify/StageChecks.h"

#include "dialects/exec/CustomOps.h"
#include "dialects/exec/GroupedOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace shardc;

namespace {

enum class Role { Entry, Plan, Kernel };

StringRef nameOf(Role role) {
  switch (role) {
  case Role::Entry:
    return "an entry";
  case Role::Plan:
    return "a plan function";
  case Role::Kernel:
    return "a kernel";
  }
  return "";
}

/// Arithmetic on what a rank knows of itself and of the symbols of a run.
bool isSizeOp(Operation *op) {
  return op->getName().getDialectNamespace() == "arith" ||
         isa<dist::ExtentOp, dist::AxisIndexOp, func::ReturnOp>(op);
}

bool belongsIn(Role role, Operation *op) {
  switch (role) {
  case Role::Entry:
    return isSizeOp(op) ||
           isa<exec::AllocOp, exec::LaunchOp, exec::GemmOp, exec::GroupedGemmOp, exec::AttentionOp,
               exec::AttentionBackwardOp, exec::ScatterOp, exec::SortOp, exec::CollectiveOp,
               exec::StartOp, exec::WaitOp, exec::CommitOp, exec::ReadSizesOp, exec::CallSymbolOp,
               memref::ReinterpretCastOp, memref::CastOp, memref::GetGlobalOp>(op);
  case Role::Plan:
    return isSizeOp(op) || isa<exec::SetOffsetOp, exec::SetArenaBytesOp>(op);
  case Role::Kernel: {
    static constexpr StringLiteral dialects[] = {"aten",   "arith",  "math",
                                                 "linalg", "tensor", "bufferization"};
    return llvm::is_contained(dialects, op->getName().getDialectNamespace()) ||
           isa<func::ReturnOp, UnrealizedConversionCastOp, exec::CheckRangeOp>(op);
  }
  }
  return false;
}

class PlannedChecker {
public:
  PlannedChecker(ModuleOp module, Violations &violations, StageStatistics &statistics)
      : module(module), known(module), violations(violations), statistics(statistics) {}

  void run();

private:
  void checkFunction(func::FuncOp function);
  void checkEntry(func::FuncOp entry);
  void checkView(memref::ReinterpretCastOp view);
  void checkCast(memref::CastOp cast);

  ModuleOp module;
  PlannedModule known;
  Violations &violations;
  StageStatistics &statistics;
};

void PlannedChecker::checkView(memref::ReinterpretCastOp view) {
  if (view.getSource().getDefiningOp<ViewLikeOpInterface>())
    return violations.add(view, "is a view of a view: it must be one of the buffer itself");
  auto buffer = cast<MemRefType>(view.getSource().getType());
  MemRefType type = view.getType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!buffer.hasStaticShape() || !type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, ShapedType::isDynamic)) {
    ++statistics.unproven;
    return;
  }
  if (type.getNumElements() == 0)
    return;
  int64_t first = offset, last = offset;
  for (auto [stride, size] : llvm::zip_equal(strides, type.getShape()))
    (stride < 0 ? first : last) += stride * (size - 1);
  if (first < 0 || last >= buffer.getNumElements())
    violations.add(view, "reaches outside of its buffer: elements " + Twine(first) + " to " +
                             Twine(last) + " of " + Twine(buffer.getNumElements()));
}

/// Folding makes types more exact, and a cast gives what reads memory the type that it knows: it
/// says less, and never more.
void PlannedChecker::checkCast(memref::CastOp cast) {
  auto from = dyn_cast<MemRefType>(cast.getSource().getType()),
       to = dyn_cast<MemRefType>(cast.getType());
  bool saysMore =
      !from || !to || llvm::any_of(llvm::zip(from.getShape(), to.getShape()), [](auto sizes) {
        return ShapedType::isDynamic(std::get<0>(sizes)) &&
               !ShapedType::isDynamic(std::get<1>(sizes));
      });
  if (saysMore)
    violations.add(cast, "makes sizes known that nothing has checked");
}

void PlannedChecker::checkEntry(func::FuncOp entry) {
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    if (!isa<MemRefType>(entry.getArgumentTypes()[i]))
      violations.add(entry, "has an argument that is no memory: argument " + Twine(i));
    else if (!entry.getArgAttr(i, exec::kArgumentAttr))
      violations.add(entry,
                     "does not say what argument " + Twine(i) + " is: it has no 'exec.argument'");
    if (entry.getArgAttr(i, exec::kUpdatesAttr) && !entry->hasAttr(exec::kInPlaceAttr))
      violations.add(entry, "has argument " + Twine(i) +
                                " as the new value of a parameter, but not in its memory: run "
                                "exec-update-in-place");
  }
  if (entry.getNumResults() != 0)
    violations.add(entry, "returns values: the results of an entry are arguments");
  for (auto view : entry.getBody().front().getOps<memref::ReinterpretCastOp>())
    checkView(view);
  for (auto cast : entry.getBody().front().getOps<memref::CastOp>())
    checkCast(cast);
  checkArena(entry, known, violations);
  FlightStatistics flights;
  checkFlights(entry, known, violations, flights);
  statistics.unproven += flights.unproven;
}

void PlannedChecker::checkFunction(func::FuncOp function) {
  std::optional<Role> role;
  if (function->hasAttr(exec::kEntryAttr))
    role = Role::Entry;
  else if (function->hasAttr(exec::kKernelAttr))
    role = Role::Kernel;
  else if (function->hasAttrOfType<UnitAttr>(exec::kPlanAttr))
    role = Role::Plan;
  if (!role)
    return violations.add(function, "is neither an entry, a kernel nor a plan function");
  if (function.isExternal())
    return violations.add(function, "has no body");
  bool isStraight = function.getBody().hasOneBlock();
  if (!isStraight)
    violations.add(function, "has several blocks: " + nameOf(*role) + " is straight-line code");
  if (*role == Role::Kernel && !function->hasAttr(exec::kWritesAttr) &&
      llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>))
    violations.add(function, "does not say with '" + exec::kWritesAttr +
                                 "' which of its arguments the kernel writes");
  bool sound = isStraight;
  function.getBody().walk([&](Operation *op) {
    ++statistics.ops;
    if (*role != Role::Kernel && llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
      violations.add(op, "makes a tensor in " + nameOf(*role) +
                             ": its values are memory, numbers and tokens");
    if (belongsIn(*role, op))
      return;
    violations.add(op, "does not belong in " + nameOf(*role) + " of the stage \"planned\"");
    sound = false;
  });
  if (sound && *role == Role::Entry)
    checkEntry(function);
}

void PlannedChecker::run() {
  for (Operation &op : *module.getBody()) {
    ++statistics.ops;
    if (auto function = dyn_cast<func::FuncOp>(op))
      checkFunction(function);
    else if (!isa<memref::GlobalOp>(op))
      violations.add(&op, "is no op of the stage \"planned\"");
  }
}

} // namespace

void shardc::checkPlanned(ModuleOp module, Violations &violations, StageStatistics &statistics) {
  PlannedChecker(module, violations, statistics).run();
}
