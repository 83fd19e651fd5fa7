// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/RemadeCover.h"

#include "passes/localize/MadeParts.h"
#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"

#include "dialects/aten/Spatial.h"

#include <array>

using namespace mlir;
using namespace shardc;

namespace {

/// Makes rows again, and puts them beside those that the rank has.
class Remaker {
public:
  Remaker(Localizer &localizer, OpBuilder &builder, const RemadeBorder &border)
      : localizer(localizer), builder(builder), border(border), op(localizer.getOp()) {}

  /// On both sides of what the rank has; null where no rank lacks anything there.
  std::array<Value, 2> rows() {
    std::array<Value, 2> made;
    std::array<ArrayRef<Run>, 2> both{border.rows.before, border.rows.behind};
    SmallVector<size_t, 2> sides;
    for (auto [side, runs] : llvm::enumerate(both))
      if (llvm::any_of(runs, [](const Run &run) { return run.size() > 0; }))
        sides.push_back(side);
    localizer.turnTo(border.source);
    auto lacked = llvm::map_to_vector(sides, [&](size_t side) { return both[side]; });
    for (auto [side, image] : llvm::zip_equal(sides, coveredImages(lacked)))
      made[side] = rowsOf(image, both[side]);
    localizer.turnTo(op);
    return made;
  }

private:
  SmallVector<Value> coveredImages(ArrayRef<ArrayRef<Run>> sides) {
    auto halos = llvm::map_to_vector(sides, [&](ArrayRef<Run> s) { return border.haloOf(s); });
    std::optional<Reduction> parts =
        cast<aten::WindowOpInterface>(border.source).getPartReduction();
    Value image = border.source->getOperand(0);
    double fill = parts == Reduction::Max ? lowestOf(aten::elementTypeOf(image)) : 0;
    return coveredParts(localizer, builder, border.halo, halos, localizer.localOf(image), fill);
  }

  /// Rows of the image that are made of what the source covers.
  Value rowsOf(Value covered, ArrayRef<Run> runs) {
    OpFoldResult length = getAsOpFoldResult(localizer.indices(builder).table(
        llvm::map_to_vector(runs, [](const Run &run) { return run.size(); })));
    IRMapping remade;
    Value value;
    auto again = [&](Operation *of, Value first) {
      localizer.turnTo(of);
      SmallVector<Value> operands;
      for (Value operand : of->getOperands())
        operands.push_back(remade.lookupOrNull(operand) ? remade.lookup(operand)
                                                        : localizer.localOf(operand));
      if (first)
        operands.front() = first;
      value = sameOp(localizer, builder, operands)->front();
      SmallVector<OpFoldResult> sizes = localizer.localSizesOf(builder, of->getResult(0));
      sizes[border.halo.positionsDim] = length;
      value.setType(typeOfSizes(value, sizes));
      remade.map(of->getResult(0), value);
    };
    again(border.source, covered);
    auto source = cast<aten::WindowOpInterface>(value.getDefiningOp());
    aten::Windows windows =
        withoutPadding(cast<aten::WindowOpInterface>(border.source).getWindows(), border.halo);
    source.setPadding(
        llvm::map_to_vector(windows, [](const aten::Window &window) { return window.padding; }));
    for (Operation *of : border.ops)
      again(of, {});
    return value;
  }

  Localizer &localizer;
  OpBuilder &builder;
  const RemadeBorder &border;
  Operation *op;
};

} // namespace

Value shardc::remadeCover(Localizer &localizer, OpBuilder &builder, const RemadeBorder &border,
                          const HaloDim &dim, Value local, double fill,
                          SmallVectorImpl<OpFoldResult> &sizes) {
  auto [before, behind] = Remaker(localizer, builder, border).rows();
  Emitter emit = localizer.emitter(builder);
  const Mesh &mesh = localizer.getMesh().getValue();
  std::vector<Run> own = piecesOf(mesh, dim.image), whole;
  for (const aten::Cover &cover : dim.covers)
    whole.push_back(cover.elements);
  RowsBeside beside = rowsBeside(own, whole);
  auto table = [&](ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  };
  SmallVector<Value> parts;
  auto addPadding = [&](auto &&count) {
    SmallVector<int64_t> lengths = llvm::map_to_vector(dim.covers, count);
    if (llvm::all_of(lengths, [](int64_t length) { return length == 0; }))
      return;
    sizes[dim.imageDim] = table(lengths);
    Type element = aten::elementTypeOf(local);
    parts.push_back(emit.full(sizes, newNumber(emit, fill, element)));
  };
  // `of` are the rows that a value has, of which `rows` are covered: there is no value of none.
  auto addRows = [&](Value value, ArrayRef<Run> of, ArrayRef<Run> rows) {
    SmallVector<int64_t> begin, end, length;
    bool isWhole = true, isEmpty = true;
    for (auto [has, run] : llvm::zip_equal(of, rows)) {
      // All ops with windows over the image were asked for what they cover.
      if (run.size() > 0 && (run.begin < has.begin || run.end > has.end))
        llvm::report_fatal_error("windows cover rows that were not made again");
      begin.push_back(run.size() > 0 ? run.begin - has.begin : 0);
      end.push_back(begin.back() + run.size());
      length.push_back(run.size());
      isWhole &= run.size() == has.size();
      isEmpty &= run.size() == 0;
    }
    if (isEmpty)
      return;
    sizes[dim.imageDim] = table(length);
    if (!isWhole) {
      value = emit.slice(value, dim.imageDim, table(begin), table(end));
      value.setType(typeOfSizes(value, sizes));
    }
    parts.push_back(value);
  };
  addPadding([](const aten::Cover &cover) { return cover.before; });
  addRows(before, border.rows.before, beside.before);
  std::vector<Run> common;
  for (auto [have, need] : llvm::zip_equal(own, whole)) {
    Run both{std::max(have.begin, need.begin), std::min(have.end, need.end)};
    common.push_back(both.begin < both.end ? both : Run{});
  }
  addRows(local, own, common);
  addRows(behind, border.rows.behind, beside.behind);
  addPadding([](const aten::Cover &cover) { return cover.after; });
  sizes[dim.imageDim] =
      table(llvm::map_to_vector(dim.covers, [](const aten::Cover &cover) { return cover.size(); }));
  if (parts.empty())
    return emit.zeros(llvm::to_vector(sizes), aten::elementTypeOf(local));
  Value value = parts.size() == 1 ? parts.front() : emit.cat(parts, dim.imageDim);
  value.setType(typeOfSizes(value, sizes));
  return value;
}
