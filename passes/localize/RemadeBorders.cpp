// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/RemadeBorders.h"

#include "passes/localize/BorderPlan.h"
#include "passes/localize/MadeParts.h"
#include "passes/localize/WindowedImages.h"

#include "dialects/aten/OwnRows.h"
#include "dialects/aten/Spatial.h"
#include "dialects/interfaces/FewUsers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;

namespace {

/// What moves must leave of what would move otherwise, and the arithmetic operations that are worth
/// to save a byte. Ranks of one host compute some ten in the time that a byte takes, devices of
/// different hosts a thousand.
constexpr double kWorthBytes = 0.75, kWorthFlops = 32;
/// Elementwise ops between two with windows.
constexpr size_t kMostOps = 16;

const Layout &placedLayout(Value placed) { return dist::getLayout(placed.getType()).getValue(); }
bool isPlaced(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && dist::getLayout(type);
}
SplitDim placedDim(Value placed, int64_t dim) {
  return {aten::typeOf(placed).getDimSize(static_cast<unsigned>(dim)),
          placedLayout(placed).splitOfDim(dim)};
}

/// The dim of an op's operand 0 over which its windows slide, where they do so over no other dim
/// that is sharded.
std::optional<HaloDim> onlyHaloDim(Operation *op) {
  auto windowed = dyn_cast<aten::WindowOpInterface>(op);
  if (!windowed || !isPlaced(op->getOperand(0)) || !isPlaced(op->getResult(0)))
    return std::nullopt;
  std::optional<HaloDim> first = firstHaloDim(op);
  if (!first)
    return std::nullopt;
  auto numWindows = static_cast<int64_t>(windowed.getWindows().size());
  auto isSharded = [&](Value value, int64_t fromEnd) {
    return !placedLayout(value).splitOfDim(aten::typeOf(value).getRank() + fromEnd).empty();
  };
  for (int64_t i = 0; i < numWindows; ++i)
    if (i != static_cast<int64_t>(first->spatial) &&
        (isSharded(op->getOperand(0), i - numWindows) ||
         isSharded(op->getResult(0), i - numWindows)))
      return std::nullopt;
  first->positionsDim = aten::typeOf(op->getResult(0)).getRank() + first->imageDim -
                        aten::typeOf(op->getOperand(0)).getRank();
  first->findCovers(placedLayout(op->getResult(0)).mesh);
  return first;
}

/// Whether rows of the result along `dim` are made of the same rows of operands `of`, and of what
/// the other operands have for all rows alike.
bool isMadeByRow(Operation *op, int64_t dim, SmallVectorImpl<unsigned> &of) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  auto rules = dyn_cast<ShardingRuleOpInterface>(op);
  if (!kernel || kernel.getKernelForm() != KernelForm::Elementwise || !aten::worksRowByRow(op) ||
      !rules || op->getNumResults() != 1 || !isPlaced(op->getResult(0)))
    return false;
  ShardingRule rule = rules.getShardingRule();
  const TensorFactors &result = rule.results.front();
  if (dim >= static_cast<int64_t>(result.size()) || result[dim].size() != 1)
    return false;
  unsigned factor = result[dim].front();
  for (auto [number, factors] : llvm::enumerate(rule.operands)) {
    if (!isa<RankedTensorType>(op->getOperand(number).getType()))
      continue;
    for (auto [at, list] : llvm::enumerate(factors)) {
      if (!llvm::is_contained(list, factor))
        continue;
      if (list.size() != 1 || static_cast<int64_t>(at) != dim || !isPlaced(op->getOperand(number)))
        return false;
      of.push_back(static_cast<unsigned>(number));
    }
  }
  return !of.empty();
}

/// Looks for the op with windows that an image is made of.
class SourceSearch {
public:
  SourceSearch(Value image, int64_t dim) : dim(dim), split(placedLayout(image).splitOfDim(dim)) {}

  bool visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isPlaced(value) || !placedLayout(value).partialAxes().empty() ||
        !(placedLayout(value).splitOfDim(dim) == split))
      return false;
    if (op == source || ops.contains(op))
      return true;
    if (isa<aten::WindowOpInterface>(op)) {
      if (source || !mayRepeat(op))
        return false;
      source = op;
      return true;
    }
    SmallVector<unsigned> of;
    if (!isMadeByRow(op, dim, of) || ops.size() == kMostOps)
      return false;
    ops.insert(op);
    return llvm::all_of(of, [&](unsigned number) { return visit(op->getOperand(number)); });
  }

  Operation *source = nullptr;
  std::optional<HaloDim> halo;
  llvm::SetVector<Operation *> ops;

private:
  bool mayRepeat(Operation *op) {
    if (!cast<aten::WindowOpInterface>(op).isComputedByPosition() ||
        !placedLayout(op->getOperand(0)).partialAxes().empty())
      return false;
    // Its rank counts groups of its own.
    if (auto conv = dyn_cast<aten::ConvolutionOp>(op))
      if (conv.getGroups() != 1 && !placedLayout(conv.getResult()).splitOfDim(1).empty())
        return false;
    halo = onlyHaloDim(op);
    return halo && halo->positionsDim == dim;
  }

  int64_t dim;
  DimSplit split;
};

/// What is made row by row of what an op with windows makes, along this dim of it.
llvm::SetVector<Value> rowsMadeOf(Operation *source, int64_t dim) {
  constexpr size_t kMostValues = 64;
  llvm::SetVector<Value> values;
  values.insert(source->getResult(0));
  for (size_t next = 0; next < values.size(); ++next) {
    if (!hasFewUsers(values[next]))
      continue;
    for (Operation *user : values[next].getUsers()) {
      SmallVector<unsigned> by;
      if (values.size() < kMostValues && isMadeByRow(user, dim, by))
        values.insert(user->getResult(0));
    }
  }
  return values;
}

/// As a convolution of 1 x 1.
bool needsNoHalo(aten::WindowOpInterface op) {
  return llvm::all_of(op.getWindows(),
                      [](const aten::Window &window) { return window.isIdentity(); });
}

/// Ops with windows over a dim of an image.
SmallVector<HaloDim> windowsOver(Value image, int64_t dim, bool &hasOthers) {
  SmallVector<HaloDim> windows;
  for (Operation *user : image.getUsers()) {
    auto windowed = dyn_cast<aten::WindowOpInterface>(user);
    if (!windowed || user->getOperand(0) != image || needsNoHalo(windowed))
      continue;
    std::optional<HaloDim> halo = onlyHaloDim(user);
    hasOthers |= !halo || halo->imageDim != dim;
    if (halo && halo->imageDim == dim)
      windows.push_back(std::move(*halo));
  }
  return windows;
}

/// For every position of a mesh what these cover together.
std::vector<Run> coveredBy(ArrayRef<HaloDim> windows, const Mesh &mesh) {
  std::vector<Run> covered(static_cast<size_t>(mesh.numDevices()));
  for (const HaloDim &window : windows)
    for (auto [run, cover] : llvm::zip_equal(covered, window.covers))
      run = hullOf(run, cover.elements);
  return covered;
}

class Decision {
public:
  Decision(Value image, int64_t dim) : image(image), dim(dim), mesh(placedLayout(image).mesh) {}

  std::unique_ptr<RemadeBorder> make() {
    bool hasOthers = false;
    SmallVector<HaloDim> windows = windowsOver(image, dim, hasOthers);
    SourceSearch search(image, dim);
    if (windows.empty() || hasOthers || !search.visit(image) || !search.source)
      return nullptr;
    // Otherwise those that fetch beside it would not know.
    if (!hasFewUsers(search.source->getOperand(0)) ||
        !rowsMadeOf(search.source, dim).contains(image))
      return nullptr;
    auto border = std::make_unique<RemadeBorder>(
        RemadeBorder{search.source, *search.halo, search.ops.takeVector(), {}});
    llvm::sort(border->ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    border->rows = rowsBeside(piecesOf(mesh, placedDim(image, dim)), coveredBy(windows, mesh));
    return isWorth(*border) ? std::move(border) : nullptr;
  }

private:
  /// What a rank has of a row, in bytes, where it has most.
  double bytesOfRow(Value value, int64_t along) const {
    std::vector<double> numbers =
        LocalExtents(mesh, aten::typeOf(value), &placedLayout(value)).beside(along);
    return *llvm::max_element(numbers) * aten::elementTypeOf(value).getIntOrFloatBitWidth() / 8;
  }
  /// The bytes that sums of parts of windows would be, where these may be sent in place of rows.
  std::optional<double> bytesOfParts() const {
    Operation *op = nullptr;
    for (Operation *user : image.getUsers()) {
      auto windowed = dyn_cast<aten::WindowOpInterface>(user);
      if (!windowed || user->getOperand(0) != image || needsNoHalo(windowed))
        continue;
      if (op || !windowed.getPartReduction())
        return std::nullopt;
      op = user;
    }
    std::optional<HaloDim> halo = onlyHaloDim(op);
    std::vector<Run> touched;
    for (Run run : piecesOf(mesh, halo->image))
      touched.push_back(aten::positionsOver(halo->window, run, halo->positions.size));
    return static_cast<double>(rowsBeside(piecesOf(mesh, halo->positions), touched).most()) *
           bytesOfRow(op->getResult(0), halo->positionsDim);
  }

  bool isWorth(const RemadeBorder &border) const {
    Value from = border.source->getOperand(0);
    int64_t along = border.halo.imageDim, made = border.rows.most();
    bool hasOthers = false;
    std::vector<Run> usual = coveredBy(windowsOver(from, along, hasOthers), mesh), wide = usual;
    if (made == 0 || hasOthers)
      return false;
    for (const std::vector<Run> *rows : {&border.rows.before, &border.rows.behind})
      for (auto [run, cover] : llvm::zip_equal(wide, border.haloOf(*rows).covers))
        run = hullOf(run, cover.elements);
    std::vector<Run> have = piecesOf(mesh, border.halo.image);
    int64_t more = rowsBeside(have, wide).most() - rowsBeside(have, usual).most();
    double moved = static_cast<double>(more) * bytesOfRow(from, along);
    double otherwise = static_cast<double>(made) * bytesOfRow(image, dim);
    if (std::optional<double> parts = bytesOfParts())
      otherwise = std::min(otherwise, *parts);
    return moved <= kWorthBytes * otherwise &&
           flopsOf(border, made) <= kWorthFlops * (otherwise - moved);
  }

  /// Of the windows, for so many rows on one rank.
  double flopsOf(const RemadeBorder &border, int64_t rows) const {
    auto cost = dyn_cast<CostOpInterface>(border.source);
    std::optional<double> all = cost ? cost.getFlops() : std::nullopt;
    if (!all)
      return 0;
    Value result = border.source->getResult(0);
    RankedTensorType type = aten::typeOf(result);
    double elements = static_cast<double>(type.getNumElements());
    std::vector<double> beside = LocalExtents(mesh, type, &placedLayout(result)).beside(dim);
    return elements == 0 ? 0
                         : *all / elements * *llvm::max_element(beside) * static_cast<double>(rows);
  }

  Value image;
  int64_t dim;
  const Mesh &mesh;
};

} // namespace

HaloDim RemadeBorder::haloOf(ArrayRef<Run> of) const {
  HaloDim wide = halo;
  for (auto [cover, run] : llvm::zip_equal(wide.covers, of))
    cover = run.size() > 0 ? aten::coverOf(halo.window, run, halo.image.size)
                           : aten::coverOf(halo.window, {}, 0);
  return wide;
}

const RemadeBorder *RemadeBorders::of(Value image, int64_t dim) {
  auto [entry, isNew] = known.try_emplace({image, dim});
  if (!isNew)
    return entry->second.get();
  if (!isPlaced(image) || placedLayout(image).splitOfDim(dim).empty() || !hasFewUsers(image))
    return nullptr;
  std::unique_ptr<RemadeBorder> border = Decision(image, dim).make();
  // Rows are made of what is fetched, and of nothing that is made again itself.
  if (border && of(border->source->getOperand(0), border->halo.imageDim))
    border = nullptr;
  return (known[{image, dim}] = std::move(border)).get();
}

int64_t RemadeBorders::count() const {
  return llvm::count_if(known, [](const auto &entry) { return entry.second != nullptr; });
}

SmallVector<const RemadeBorder *> RemadeBorders::from(Value image, int64_t dim) {
  SmallVector<const RemadeBorder *> borders;
  if (!hasFewUsers(image))
    return borders;
  for (Operation *user : image.getUsers()) {
    std::optional<HaloDim> halo = onlyHaloDim(user);
    if (user->getOperand(0) != image || !halo || halo->imageDim != dim)
      continue;
    for (Value value : rowsMadeOf(user, halo->positionsDim))
      if (const RemadeBorder *border = of(value, halo->positionsDim))
        if (border->source == user)
          borders.push_back(border);
  }
  return borders;
}
