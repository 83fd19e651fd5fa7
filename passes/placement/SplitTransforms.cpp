// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/placement/FunctionGraph.h"
#include "passes/placement/Passes.h"
#include "passes/placement/core/Place.h"

#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/FourierProduct.h"
#include "dialects/aten/KeptPositions.h"
#include "dialects/dist/Dist.h"
#include "dialects/interfaces/TensorView.h"
#include "passes/redistribute/core/Planner.h"

#include <limits>

namespace shardc {
#define GEN_PASS_DEF_SPLITTRANSFORMS
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

using aten::FourierTransform;
using aten::PositionSet;

/// Elements of the largest matrix that a program gets as a constant.
constexpr double kLargestPart = 1 << 20;
/// Placements that are compared for one function.
constexpr unsigned kMostTrials = 200;
constexpr unsigned kMostSweeps = 2;

/// How a transform is computed.
struct Choice {
  enum Kind : uint8_t { AsItIs, Product, Move };
  Kind kind = AsItIs;
  int64_t dim = 0; ///< Move: where the shards of the operand go

  bool operator==(const Choice &) const = default;
};

/// Transforms that are alike, and so are computed alike: those of all layers of a model.
struct TransformKind {
  // What they have in common.
  StringRef name;
  Type operand, result;
  FourierTransform transform; ///< the first of them
  PositionSet from, to;       ///< elements that are not zero, and those that are read
  SmallVector<unsigned> axes; ///< over which the dim of the operand is sharded
  /// Positions among all transforms of the function.
  SmallVector<unsigned> members;
  SmallVector<Choice> options;

  bool isSame(const TransformKind &o) const {
    return name == o.name && operand == o.operand && result == o.result &&
           transform.dim == o.transform.dim && transform.forward == o.transform.forward &&
           transform.normalization == o.transform.normalization && from == o.from && to == o.to &&
           axes == o.axes;
  }
  bool mayBeProduct() const { return !options.empty() && options.front().kind == Choice::Product; }
};

SmallVector<Operation *> transformsOf(func::FuncOp function) {
  SmallVector<Operation *> transforms;
  for (Operation &op : function.getBody().front())
    if (FourierTransform::of(&op))
      transforms.push_back(&op);
  return transforms;
}

/// Whether no length, and none of the positions that matter, is unknown.
bool isKnown(const FourierTransform &transform) {
  return !ShapedType::isDynamic(transform.length) &&
         !ShapedType::isDynamic(transform.sizeBefore()) &&
         !ShapedType::isDynamic(transform.sizeAfter());
}

/// False where nothing reads the result, or nothing is in the operand.
bool makeProduct(const FourierTransform &transform) {
  OpBuilder builder(transform.op);
  aten::KeptPositions positions;
  PositionSet from = positions.filled(transform.self(), transform.dim),
              to = positions.read(transform.result(), transform.dim);
  if (from.empty() || to.empty())
    return false;
  Value part = aten::partOfTransform(builder, transform, from, to);
  Value whole = aten::spreadPositions(builder, transform.op->getLoc(), part, transform.dim, to,
                                      transform.sizeAfter());
  transform.result().replaceAllUsesWith(whole);
  transform.op->erase();
  aten::forwardSlices(whole);
  return true;
}

/// Before transforms of other dims that come first, where they make more elements than they read:
/// half of a transform of real numbers has one or two more than these.
OpOperand &firstOfChain(const FourierTransform &transform, int64_t dim) {
  OpOperand *least = &transform.op->getOpOperand(0);
  for (OpOperand *operand = least;;) {
    Operation *op = operand->get().getDefiningOp();
    std::optional<FourierTransform> before = op ? FourierTransform::of(op) : std::nullopt;
    if (!before || before->dim == dim || dim >= before->rank() || !op->hasOneUse() ||
        !isKnown(*before))
      return *least;
    operand = &op->getOpOperand(0);
    auto type = aten::typeOf(operand->get()), made = aten::typeOf(least->get());
    if (!type.hasStaticShape() || !made.hasStaticShape())
      return *least;
    if (type.getNumElements() < made.getNumElements())
      least = operand;
  }
}

void moveShards(const FourierTransform &transform, ArrayRef<unsigned> axes, int64_t dim,
                const Mesh &mesh) {
  OpOperand &operand = firstOfChain(transform, dim);
  OpBuilder builder(operand.getOwner());
  Layout layout(mesh);
  for (Placement &placement : layout.placements)
    placement = Placement::open();
  for (unsigned axis : axes)
    layout.placements[axis] = Placement::shard(dim);
  auto attribute = dist::LayoutAttr::get(builder.getContext(), layout);
  operand.set(
      dist::ConstrainOp::create(builder, operand.getOwner()->getLoc(), operand.get(), attribute));
}

class SplitTransformsPass : public shardc::impl::SplitTransformsBase<SplitTransformsPass> {
public:
  using SplitTransformsBase::SplitTransformsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || !function.getBody().hasOneBlock() ||
        transformsOf(function).empty())
      return;
    FailureOr<Mesh> found = requireMesh(function);
    if (failed(found))
      return signalPassFailure();
    mesh = *found;
    FailureOr<FunctionGraph> source = buildFunctionGraph(function, mesh);
    if (failed(source))
      return signalPassFailure();
    Propagation propagation = propagate(source->graph);
    kinds.clear();
    findKinds(*source, propagation);
    if (kinds.empty())
      return;
    SmallVector<Choice> chosen = compare();
    for (auto [kind, choice] : llvm::zip_equal(kinds, chosen)) {
      numProducts += choice.kind == Choice::Product ? kind.members.size() : 0;
      numMoved += choice.kind == Choice::Move ? kind.members.size() : 0;
    }
    apply(function, chosen);
  }

private:
  void findKinds(const FunctionGraph &source, const Propagation &propagation) {
    for (auto [number, op] : llvm::enumerate(transformsOf(getOperation()))) {
      FourierTransform transform = *FourierTransform::of(op);
      auto before = source.tensorOf.find(transform.self()),
           after = source.tensorOf.find(transform.result());
      if (!isKnown(transform) || before == source.tensorOf.end() || after == source.tensorOf.end())
        continue;
      aten::KeptPositions positions;
      TransformKind kind{op->getName().getStringRef(),
                         transform.self().getType(),
                         transform.result().getType(),
                         transform,
                         positions.filled(transform.self(), transform.dim),
                         positions.read(transform.result(), transform.dim),
                         {},
                         {static_cast<unsigned>(number)},
                         {}};
      bool isBehind = false;
      for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
        auto isAlong = [&](TensorId tensor) {
          const AxisPlacement &p =
              propagation.states[size_t(tensor) * mesh.numAxes() + axis].placement;
          return p.isShard() && p.dim == transform.dim;
        };
        if (isAlong(before->second))
          kind.axes.push_back(axis);
        isBehind |= isAlong(after->second);
      }
      if (kind.axes.empty() && !isBehind)
        continue;
      auto same = llvm::find_if(kinds, [&](const TransformKind &k) { return k.isSame(kind); });
      if (same != kinds.end()) {
        same->members.push_back(static_cast<unsigned>(number));
        continue;
      }
      addOptions(kind);
      if (!kind.options.empty())
        kinds.push_back(std::move(kind));
    }
  }

  void addOptions(TransformKind &kind) {
    const FourierTransform &transform = kind.transform;
    bool isPart = !kind.from.isAll(transform.sizeBefore()) || !kind.to.isAll(transform.sizeAfter());
    if (isPart && !kind.from.empty() && !kind.to.empty() &&
        aten::sizeOfPart(transform, kind.from, kind.to) <= kLargestPart)
      kind.options.push_back({Choice::Product});
    int64_t ranks = 1;
    for (unsigned axis : kind.axes)
      ranks *= mesh.axes[axis].size;
    if (ranks == 1)
      return;
    // Parts of unlike sizes fit together badly with what comes next.
    SmallVector<Choice> uneven;
    for (int64_t dim = 0; dim < transform.rank(); ++dim) {
      int64_t size = aten::shapeOf(transform.self())[dim];
      if (dim == transform.dim || (!ShapedType::isDynamic(size) && size < ranks))
        continue;
      bool isEven = !ShapedType::isDynamic(size) && size % ranks == 0;
      (isEven ? kind.options : uneven).push_back({Choice::Move, dim});
    }
    if (kind.options.empty() || kind.options.back().kind != Choice::Move)
      llvm::append_range(kind.options, uneven);
  }

  /// Of one choice for each kind, the bytes that placement moves.
  double bytesOf(ArrayRef<Choice> choices) {
    ++numTrials;
    ++trials;
    OwningOpRef<func::FuncOp> copy = getOperation().clone();
    apply(*copy, choices);
    ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
    FailureOr<FunctionGraph> source = buildFunctionGraph(*copy, mesh);
    if (failed(source))
      return std::numeric_limits<double>::infinity();
    PlacedGraph placed = placeGraph(source->graph);
    if (!placed.errors.empty())
      return std::numeric_limits<double>::infinity();
    double bytes = placed.exchangedBytes;
    for (const Redistribution &change : placed.redistributions)
      bytes += cheapestBytes(placed.tensorLayout(change.tensor), placed.layouts[change.to],
                             source->graph.shape(change.tensor),
                             source->graph.tensors[change.tensor].elementSize);
    return bytes;
  }

  static SmallVector<Choice> withGather(const TransformKind &kind) {
    SmallVector<Choice> options = kind.options;
    options.push_back({});
    return options;
  }

  /// Goes from the better of two beginnings, in which all is as it is or a product, to what is
  /// better in one kind, as long as there is such a choice.
  SmallVector<Choice> compare() {
    trials = 0;
    SmallVector<Choice> best(kinds.size()), products(kinds.size());
    for (auto [kind, choice] : llvm::zip_equal(kinds, products))
      if (kind.mayBeProduct())
        choice = kind.options.front();
    double least = bytesOf(best);
    // Where as many bytes move, the backward of a product moves fewer.
    if (products != best)
      if (double bytes = bytesOf(products); bytes <= least) {
        least = bytes;
        best = products;
      }
    bool isBetter = true;
    for (unsigned sweep = 0; sweep < kMostSweeps && isBetter; ++sweep) {
      isBetter = false;
      for (auto [number, kind] : llvm::enumerate(kinds)) {
        for (const Choice &option : withGather(kind)) {
          if (best[number] == option || trials >= kMostTrials)
            continue;
          SmallVector<Choice> choices = best;
          choices[number] = option;
          double bytes = bytesOf(choices);
          // A gather needs room for the whole on each rank, which then transforms all of it.
          bool isGather = best[number].kind == Choice::AsItIs;
          if (isGather ? bytes > least + 0.5 : bytes >= least - 0.5)
            continue;
          least = bytes;
          best = choices;
          isBetter = true;
        }
      }
    }
    return best;
  }

  void apply(func::FuncOp function, ArrayRef<Choice> choices) {
    SmallVector<Operation *> transforms = transformsOf(function);
    SmallVector<const TransformKind *> kindOf(transforms.size());
    SmallVector<Choice> choiceOf(transforms.size());
    for (auto [kind, choice] : llvm::zip_equal(kinds, choices))
      for (unsigned member : kind.members) {
        kindOf[member] = &kind;
        choiceOf[member] = choice;
      }
    bool isChanged = false;
    for (auto [number, op] : llvm::enumerate(transforms)) {
      FourierTransform transform = *FourierTransform::of(op);
      if (choiceOf[number].kind == Choice::Product)
        isChanged |= makeProduct(transform);
      else if (choiceOf[number].kind == Choice::Move)
        moveShards(transform, kindOf[number]->axes, choiceOf[number].dim, mesh);
    }
    if (isChanged)
      aten::eraseUnused(function);
  }

  Mesh mesh;
  std::vector<TransformKind> kinds;
  unsigned trials = 0;
};

} // namespace
