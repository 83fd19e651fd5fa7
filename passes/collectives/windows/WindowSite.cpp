// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/windows/WindowSite.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// The windows of an op that may be computed position by position; empty for other ops.
static aten::Windows windowsOf(Operation *op) {
  auto windowed = dyn_cast<aten::WindowOpInterface>(op);
  return windowed && windowed.isComputedByPosition() ? windowed.getWindows() : aten::Windows();
}

static ArrayRef<int64_t> shapeOfValue(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

namespace {
/// How many elements values have along a dim, by device; empty where that is not known, or would
/// take long to find.
class Lengths {
public:
  explicit Lengths(RankValues &ranks) : ranks(ranks) {}

  DeviceTable along(Value value, int64_t dim) {
    if (int64_t size = shapeOfValue(value)[dim]; !ShapedType::isDynamic(size))
      return DeviceTable(ranks.getDevices().size(), size);
    auto [entry, isNew] = known.try_emplace({value, dim});
    if (!isNew || known.size() > kMostValues)
      return entry->second;
    DeviceTable lengths = find(value.getDefiningOp(), value, dim);
    return known[{value, dim}] = std::move(lengths);
  }

private:
  static constexpr size_t kMostValues = 256;

  DeviceTable numbers(OpFoldResult size) {
    ArrayRef<int64_t> values = ranks.of(size);
    return DeviceTable(values.begin(), values.end());
  }

  DeviceTable find(Operation *op, Value value, int64_t dim) {
    if (auto slice = dyn_cast_or_null<aten::SliceOp>(op))
      return ofSlice(slice, dim);
    if (auto cat = dyn_cast_or_null<aten::CatOp>(op))
      return ofCat(cat, dim);
    if (auto expand = dyn_cast_or_null<aten::ExpandOp>(op))
      return numbers(expand.getMixedSize()[dim]);
    if (auto view = dyn_cast_or_null<aten::ViewOp>(op))
      return numbers(view.getMixedSize()[dim]);
    if (auto windowed = dyn_cast_or_null<aten::WindowOpInterface>(op))
      return positionsOf(windowed, dim);
    auto kernel = dyn_cast_or_null<KernelOpInterface>(op);
    if (kernel && kernel.getKernelForm() == KernelForm::Elementwise)
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()) &&
            shapeOfValue(operand) == shapeOfValue(value))
          return along(operand, dim);
    return {};
  }

  DeviceTable ofSlice(aten::SliceOp slice, int64_t dim) {
    if (static_cast<int64_t>(slice.getDim()) != dim)
      return along(slice.getSelf(), dim);
    auto bound = [&](Value dynamic, int64_t fixed) {
      return numbers(
          dynamic ? OpFoldResult(dynamic)
                  : OpFoldResult(IntegerAttr::get(IndexType::get(slice.getContext()), fixed)));
    };
    DeviceTable begin = bound(slice.getStart(), slice.getStaticStart());
    DeviceTable end = bound(slice.getEnd(), slice.getStaticEnd());
    if (begin.empty() || end.empty() || slice.getStep() != 1)
      return {};
    DeviceTable whole = along(slice.getSelf(), dim), lengths;
    for (auto [device, first] : llvm::enumerate(begin)) {
      int64_t last = end[device];
      if (first < 0 || last < 0)
        return {};
      if (!whole.empty()) {
        last = std::min(last, whole[device]);
        first = std::min(first, last);
      } else if (last == std::numeric_limits<int64_t>::max()) {
        return {};
      }
      lengths.push_back(std::max<int64_t>(last - first, 0));
    }
    return lengths;
  }

  DeviceTable ofCat(aten::CatOp cat, int64_t dim) {
    if (static_cast<int64_t>(cat.getDim()) != dim)
      return along(cat.getTensors().front(), dim);
    DeviceTable sum(ranks.getDevices().size(), 0);
    for (Value part : cat.getTensors()) {
      DeviceTable lengths = along(part, dim);
      if (lengths.empty())
        return {};
      for (auto [total, length] : llvm::zip_equal(sum, lengths))
        total += length;
    }
    return sum;
  }

  /// How many positions windows have along a dim of what an op makes of them.
  DeviceTable positionsOf(aten::WindowOpInterface op, int64_t dim) {
    aten::Windows windows = op.getWindows();
    int64_t fromEnd = static_cast<int64_t>(shapeOfValue(op->getResult(0)).size()) - dim;
    if (!op.isComputedByPosition() || fromEnd > static_cast<int64_t>(windows.size()))
      return {};
    const aten::Window &window = windows[windows.size() - static_cast<size_t>(fromEnd)];
    Value image = op->getOperand(0);
    DeviceTable lengths = along(image, static_cast<int64_t>(shapeOfValue(image).size()) - fromEnd);
    for (int64_t &length : lengths) {
      int64_t room = length + 2 * window.padding - window.extent();
      length = room < 0 ? 0 : room / window.stride + 1;
    }
    return lengths;
  }

  RankValues &ranks;
  llvm::DenseMap<std::pair<Value, int64_t>, DeviceTable> known;
};
} // namespace

/// Ops that say where elements are, and compute nothing.
static bool isArrangement(Operation *op) {
  return isa<aten::SliceOp, aten::ViewOp, aten::CatOp, aten::ExpandOp, aten::SelectOp, WaitOp>(op);
}

/// The collectives whose results a value is made of: without computing, or by a few ops whatever
/// these do.
static void collectExchanges(Value value, bool computing, SmallPtrSetImpl<Operation *> &found,
                             SmallPtrSetImpl<Operation *> &seen) {
  constexpr unsigned kMostOps = 64;
  Operation *op = value.getDefiningOp();
  if (!op || (computing && seen.size() == kMostOps) || !seen.insert(op).second)
    return;
  if (isa<CollectiveOpInterface>(op)) {
    found.insert(op);
    return;
  }
  if (computing || isArrangement(op))
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        collectExchanges(operand, computing, found, seen);
}

static bool isFill(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<aten::ConstantOp>(op))
      return true;
    if (!isa<aten::ExpandOp, aten::SliceOp, aten::ViewOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

static int64_t totalOf(const ImageRows &rows) {
  return std::accumulate(rows.lengths.begin(), rows.lengths.end(), int64_t(0));
}

/// Where ranks make rows of others again, of what an exchange has brought: the most rows are taken
/// for those that a rank has itself, which may wait for the same exchange.
static bool findOwnAmongMade(WindowSite &site) {
  const auto *own = llvm::max_element(site.rows, [](const ImageRows &a, const ImageRows &b) {
    return (isFill(a.value) ? -1 : totalOf(a)) < (isFill(b.value) ? -1 : totalOf(b));
  });
  if (own == site.rows.end() || isFill(own->value))
    return false;
  site.own = static_cast<size_t>(own - site.rows.begin());
  SmallPtrSet<Operation *, 4> found;
  for (const ImageRows &rows : site.rows) {
    SmallPtrSet<Operation *, 16> seen;
    if (&rows != own && !isFill(rows.value))
      collectExchanges(rows.value, /*computing=*/true, found, seen);
  }
  for (Operation *op : found)
    if (!site.exchange || site.exchange->isBeforeInBlock(op))
      site.exchange = op;
  return site.exchange != nullptr;
}

/// Which rows the last exchange brings, and which the rank has itself.
static bool findOwnRows(WindowSite &site) {
  SmallVector<SmallPtrSet<Operation *, 4>> exchanges(site.rows.size());
  for (auto [rows, found] : llvm::zip_equal(site.rows, exchanges)) {
    SmallPtrSet<Operation *, 16> seen;
    collectExchanges(rows.value, /*computing=*/false, found, seen);
    for (Operation *op : found)
      if (!site.exchange || site.exchange->isBeforeInBlock(op))
        site.exchange = op;
  }
  if (!site.exchange)
    return findOwnAmongMade(site);
  int64_t most = 0;
  for (auto [i, rows] : llvm::enumerate(site.rows)) {
    int64_t total = totalOf(rows);
    if (total <= most || exchanges[i].contains(site.exchange) || isFill(rows.value))
      continue;
    most = total;
    site.own = i;
  }
  return most > 0;
}

/// Which positions there are, and which of them cover own rows alone.
static bool findInterior(WindowSite &site) {
  int64_t stride = site.window.stride, extent = site.window.extent();
  bool hasInterior = false, hasOthers = false;
  for (size_t device = 0; device != site.rows.front().lengths.size(); ++device) {
    int64_t size = 0, begin = 0, end = 0;
    for (auto [i, rows] : llvm::enumerate(site.rows)) {
      if (i == site.own)
        begin = size;
      size += rows.lengths[device];
      if (i == site.own)
        end = size;
    }
    int64_t count = std::max<int64_t>(llvm::divideFloorSigned(size - extent, stride) + 1, 0);
    // What is covered ends with the last position, whichever way positions are counted.
    if (count > 0 && (count - 1) * stride + extent != size)
      return false;
    int64_t first = llvm::divideCeilSigned(begin, stride);
    int64_t last = std::min(llvm::divideFloorSigned(end - extent, stride) + 1, count);
    if (first >= last)
      first = last = count;
    hasInterior |= first < last;
    hasOthers |= last - first < count;
    site.positions.push_back(count);
    site.interiorBegin.push_back(first);
    site.interiorEnd.push_back(last);
  }
  return hasInterior && hasOthers;
}

static std::optional<WindowSite> siteAlong(Operation *op, size_t spatial,
                                           const aten::Windows &windows, Lengths &known) {
  WindowSite site;
  site.op = op;
  site.window = windows[spatial];
  if (site.window.padding != 0 || ShapedType::isDynamic(site.window.kernel))
    return std::nullopt;
  Value image = op->getOperand(0), result = op->getResult(0);
  auto fromEnd = static_cast<int64_t>(windows.size() - spatial);
  site.imageDim = static_cast<int64_t>(shapeOfValue(image).size()) - fromEnd;
  site.resultDim = static_cast<int64_t>(shapeOfValue(result).size()) - fromEnd;
  auto slice = image.getDefiningOp<aten::SliceOp>();
  while (slice && static_cast<int64_t>(slice.getDim()) != site.imageDim) {
    site.around.push_back(slice);
    image = slice.getSelf();
    slice = image.getDefiningOp<aten::SliceOp>();
  }
  auto cat = image.getDefiningOp<aten::CatOp>();
  if (!cat || static_cast<int64_t>(cat.getDim()) != site.imageDim)
    return std::nullopt;
  site.image = cat;
  Type element = aten::elementTypeOf(image);
  for (Value part : cat.getTensors()) {
    DeviceTable lengths = known.along(part, site.imageDim);
    if (lengths.empty() || aten::elementTypeOf(part) != element)
      return std::nullopt;
    site.rows.push_back({part, std::move(lengths)});
  }
  // Lengths that were read from the program have to agree with what its types say.
  if (int64_t size = shapeOfValue(image)[site.imageDim]; !ShapedType::isDynamic(size))
    for (size_t device = 0; device != site.rows.front().lengths.size(); ++device) {
      int64_t total = 0;
      for (const ImageRows &rows : site.rows)
        total += rows.lengths[device];
      if (total != size)
        return std::nullopt;
    }
  if (!findOwnRows(site) || !findInterior(site))
    return std::nullopt;
  return site;
}

std::optional<WindowSite> shardc::findWindowSite(Operation *op, RankValues &ranks) {
  aten::Windows windows = windowsOf(op);
  std::optional<WindowSite> last;
  Lengths known(ranks);
  for (size_t spatial = 0; spatial != windows.size(); ++spatial)
    if (auto site = siteAlong(op, spatial, windows, known);
        site && (!last || last->exchange->isBeforeInBlock(site->exchange)))
      last = std::move(site);
  return last;
}
