// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/attention/RingSite.h"

#include "dialects/dist/FunctionAttributes.h"
#include "passes/collectives/analysis/Transfers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

using Forward = aten::ScaledDotProductAttentionOp;
using WithSums = aten::ScaledDotProductFlashAttentionOp;
using Backward = aten::ScaledDotProductFlashAttentionBackwardOp;

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

bool RingSite::canBalance() const {
  // Each rank has two pieces of its queries, which are as many as its keys.
  return isCausal && isEven() && extents.front() % 2 == 0 && extents.front() > 0 &&
         llvm::all_of(queries, [&](int64_t count) { return count == extents.front(); });
}

/// Of an argument whose layout is known.
static DeviceTable extentsOfArgument(BlockArgument argument, int64_t dim, RankValues &ranks) {
  auto function = dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function)
    return {};
  unsigned number = argument.getArgNumber();
  auto layout = function.getArgAttrOfType<LayoutAttr>(number, kLayoutAttr);
  auto type = function.getArgAttrOfType<TypeAttr>(number, kGlobalTypeAttr);
  auto global = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!layout || !global || global.isDynamicDim(dim) || layout.getMesh() != ranks.getMesh())
    return {};
  const Mesh &mesh = ranks.getMesh().getValue();
  DimSplit split = layout.getValue().splitOfDim(dim);
  DeviceTable lengths;
  for (int64_t device = 0; device < ranks.getDevices().size(); ++device)
    lengths.push_back(split.extent(global.getDimSize(dim), mesh.coordinateOfPosition(device)));
  return lengths;
}

/// How many elements a value has along a dim, by device; empty where that is not known.
static DeviceTable lengthsAlong(Value value, int64_t dim, RankValues &ranks) {
  while (true) {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
    if (!ShapedType::isDynamic(size))
      return DeviceTable(ranks.getDevices().size(), size);
    Operation *op = value.getDefiningOp();
    OpFoldResult given;
    if (auto view = dyn_cast_or_null<aten::ViewOp>(op))
      given = view.getMixedSize()[dim];
    else if (auto expand = dyn_cast_or_null<aten::ExpandOp>(op))
      given = expand.getMixedSize()[dim];
    if (given)
      return DeviceTable(ranks.of(given));
    std::optional<int64_t> before = op ? dimBefore(op, dim) : std::nullopt;
    if (!before)
      return op ? DeviceTable() : extentsOfArgument(cast<BlockArgument>(value), dim, ranks);
    value = op->getOperand(0);
    dim = *before;
  }
}

namespace {

class SiteFinder {
public:
  SiteFinder(RankValues &ranks, RingSite &site) : ranks(ranks), site(site) {}

  template <typename OpT> RingObstacle run(OpT op) {
    site.op = op;
    site.isBackward = std::is_same_v<OpT, Backward>;
    site.isCausal = op.getIsCausal();
    site.mask = op.getAttnMask();
    if (!findGather(site.key, op.getKey()) || !findGather(site.value, op.getValue()))
      return RingObstacle::NoGather;
    if (site.key.gather.getGroup().getCanonicalGroup() !=
        site.value.gather.getGroup().getCanonicalGroup())
      return RingObstacle::Unknown;
    site.group = site.key.gather.getGroup();
    if (site.group.getGroupSize() < 2)
      return RingObstacle::NoGather;
    if (isPartial(op) || !op.getDropoutP().isZero() || !findBlocks() || !findPositions())
      return RingObstacle::Unknown;
    if (site.isBackward && !(findScatter(site.key, op->getResult(op->getNumResults() - 2)) &&
                             findScatter(site.value, op->getResult(op->getNumResults() - 1))))
      return RingObstacle::Unknown;
    site.queries = lengthsAlong(site.query(), rankOf(site.query()) - 2, ranks);
    if (!site.isCausal)
      return RingObstacle::None;
    DeviceTable firstQueries(ranks.of(op.getMixedFirst()));
    if (site.queries.empty() || firstQueries.empty() || site.mask)
      return RingObstacle::Unknown;
    return findSeen(firstQueries) ? RingObstacle::None : RingObstacle::Unaligned;
  }

private:
  static bool isPartial(Forward) { return false; }
  template <typename OpT> static bool isPartial(OpT op) { return op.getPartial(); }

  static bool findGather(RingTensor &tensor, Value value) {
    tensor.chain = BlockChain::to(value, rankOf(value) - 2);
    tensor.gather = singleCollective<AllGatherOp>(tensor.chain.source);
    return tensor.gather &&
           tensor.gather.getDims().front() == static_cast<int64_t>(tensor.chain.sourceDim);
  }

  bool findBlocks() {
    auto extentsOf = [](RingTensor &tensor) {
      return extentsByPosition(
          CollectiveOpInterface(tensor.gather).getConcatExtents(0),
          cast<RankedTensorType>(tensor.chain.source.getType()).getDimSize(tensor.chain.sourceDim),
          tensor.gather.getGroup().getGroupSize());
    };
    auto ofKey = extentsOf(site.key), ofValue = extentsOf(site.value);
    if (!ofKey || !ofValue || *ofKey != *ofValue)
      return false;
    site.extents = *ofKey;
    return true;
  }

  bool findPositions() {
    Devices &devices = ranks.getDevices();
    for (int64_t device = 0; device < devices.size(); ++device) {
      std::optional<int64_t> position = devices.position(site.group, device);
      if (!position)
        return false;
      site.position.push_back(*position);
    }
    return true;
  }

  /// What becomes of a cotangent: it may be viewed in other ways, and is then scattered as the
  /// gather put it together.
  bool findScatter(RingTensor &tensor, Value gradient) {
    if (gradient.use_empty())
      return true;
    Value value = gradient;
    constexpr unsigned kMostViews = 32;
    for (unsigned n = 0; value.hasOneUse() && !isa<ReduceScatterOp>(*value.user_begin()); ++n) {
      Operation *user = *value.user_begin();
      if (user->getNumResults() != 1 || n == kMostViews)
        return false;
      value = user->getResult(0);
    }
    if (!value.hasOneUse())
      return false;
    auto scatter = cast<ReduceScatterOp>(*value.user_begin());
    if (scatter->getNumResults() != 1 || CollectiveOpInterface(scatter).isAsync() ||
        scatter.getReduction().getValue() != Reduction::Sum ||
        scatter.getGroup().getCanonicalGroup() != site.group.getCanonicalGroup())
      return false;
    int64_t dim = scatter.getDims().front();
    auto extents = extentsByPosition(CollectiveOpInterface(scatter).getSplitExtents(0),
                                     cast<RankedTensorType>(value.getType()).getDimSize(dim),
                                     site.group.getGroupSize());
    if (!extents || *extents != site.extents)
      return false;
    tensor.scattered = BlockChain::to(value, dim);
    tensor.scatter = scatter;
    int64_t rows = rankOf(gradient) - 2;
    return tensor.scattered.source == gradient && tensor.scattered.sourceDim == rows;
  }

  /// By the place of a rank's queries among all keys.
  bool findSeen(const DeviceTable &firstQueries) {
    int64_t size = site.size();
    SmallVector<int64_t> begin{0};
    for (int64_t extent : site.extents)
      begin.push_back(begin.back() + extent);
    for (int64_t step = 0; step < size; ++step) {
      DeviceTable &table = site.seen.emplace_back();
      for (auto [device, position] : llvm::enumerate(site.position)) {
        int64_t count = site.queries[device], block = site.blockAt(position, step);
        int64_t first = firstQueries[device], length = site.extents[block];
        bool isSameRange = first == begin[block] && count == length;
        if (count == 0)
          table.push_back(0);
        else if (step == 0 ? isSameRange : begin[block + 1] - 1 <= first)
          table.push_back(length);
        else if (step != 0 && begin[block] > first + count - 1)
          table.push_back(0);
        else if (step != 0 && length == 0)
          table.push_back(0);
        else
          return false;
      }
    }
    return true;
  }

  RankValues &ranks;
  RingSite &site;
};

} // namespace

RingObstacle shardc::findRingSite(Operation *op, RankValues &ranks, RingSite &site) {
  SiteFinder finder(ranks, site);
  if (auto forward = dyn_cast<Forward>(op))
    return finder.run(forward);
  if (auto forward = dyn_cast<WithSums>(op))
    return finder.run(forward);
  if (auto backward = dyn_cast<Backward>(op))
    return finder.run(backward);
  return RingObstacle::NoGather;
}
