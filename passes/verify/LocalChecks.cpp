// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/StageChecks.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Whether some rank holds `extent` of a dim (L3, L3a).
static bool isLocalExtent(const Layout &layout, int64_t dim, int64_t size, int64_t extent) {
  DimSplit split = layout.splitOfDim(dim);
  if (split.empty())
    return extent == size;
  if (ShapedType::isDynamic(size))
    return false;
  return llvm::is_contained(split.distinctExtents(size, split.axes.size()), extent);
}

/// Whether some rank of the program has nothing of a tensor because it is outside of its mesh (L5).
static bool hasRanksOutside(FunctionOpInterface function, const Mesh &mesh) {
  auto module = function->getParentOfType<ModuleOp>();
  std::optional<Mesh> world = module ? findWorld(module) : std::nullopt;
  if (!world)
    return false;
  std::vector<int64_t> ranks = mesh.ranks();
  llvm::DenseSet<int64_t> inside(ranks.begin(), ranks.end());
  return llvm::any_of(world->ranks(), [&](int64_t rank) { return !inside.contains(rank); });
}

static void checkLocalType(FunctionOpInterface function, Type type, DictionaryAttr attributes,
                           const Twine &name, Violations &violations) {
  Location place = function.getLoc();
  auto layout = attributes ? attributes.getAs<LayoutAttr>(kLayoutAttr) : LayoutAttr();
  auto global = attributes ? attributes.getAs<TypeAttr>(kGlobalTypeAttr) : TypeAttr();
  RankedTensorType local = getDeliveredType(type);
  if (!local)
    return;
  if (!layout || !global) {
    // Without a layout a `?` is nobody's extent. (Programs imported with collectives in them say no
    // more than this about symbolic dims: they carry dist.sizes.)
    if (!local.hasStaticShape() && !(attributes && attributes.contains(kSizesAttr)))
      violations.add(place, name + " has a dynamic dim, but no 'dist.layout' or 'dist.sizes' that "
                                   "gives its size");
    return;
  }
  auto whole = cast<RankedTensorType>(global.getValue());
  if (llvm::all_of(local.getShape(), [](int64_t size) { return size == 0; }) &&
      hasRanksOutside(function, layout.getValue().mesh))
    return;
  for (int64_t dim = 0; dim < local.getRank(); ++dim)
    if (!local.isDynamicDim(dim) &&
        !isLocalExtent(layout.getValue(), dim, whole.getDimSize(dim), local.getDimSize(dim)))
      violations.add(place, name + ": no rank has extent " + Twine(local.getDimSize(dim)) +
                                " along dim " + Twine(dim) + " in its 'dist.layout'");
}

void shardc::checkLocalSignature(FunctionOpInterface function, Violations &violations) {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    checkLocalType(function, type, function.getArgAttrDict(i), "argument " + Twine(i), violations);
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (DictionaryAttr attributes = function.getResultAttrDict(i);
        attributes && attributes.contains(kLayoutAttr))
      checkLocalType(function, type, attributes, "result " + Twine(i), violations);
}

void shardc::checkCollective(CollectiveOpInterface op, Stage stage, Violations &violations) {
  if (!isa<FunctionOpInterface>(op->getParentOp()))
    violations.add(op, "stands in a region of '" + op->getParentOp()->getName().getStringRef() +
                           "': every rank must run every collective, in one order");
  if (op->getNumResults() == 0)
    return;
  if (stage == Stage::Local && op.isAsync())
    violations.add(op, "is asynchronous: futures come with the stage \"scheduled\"");
  if (stage == Stage::Scheduled && !op.isAsync())
    violations.add(op, "is synchronous: every collective of the stage \"scheduled\" is a start, "
                       "with a dist.wait");
}

/// One start, one wait (S1).
void shardc::checkFuture(Value future, Violations &violations) {
  int64_t waits = 0;
  llvm::SmallPtrSet<Operation *, 4> others; // an op that uses it twice is one violation
  for (OpOperand &use : future.getUses()) {
    if (isa<WaitOp, func::ReturnOp>(use.getOwner()))
      ++waits;
    else if (others.insert(use.getOwner()).second)
      violations.add(use.getOwner(), "uses a future: only dist.wait and return may");
  }
  if (waits > 1)
    violations.add(future.getLoc(),
                   "a future is waited for or returned " + Twine(waits) + " times, may be once");
}
