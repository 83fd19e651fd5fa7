// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/BorderPlan.h"

#include "passes/localize/MadeParts.h"
#include "passes/localize/Rearrangements.h"
#include "passes/localize/WindowedImages.h"

using namespace mlir;
using namespace shardc;

namespace {

using Table = SmallVector<int64_t>;

/// The sizes of a tensor's dims on every rank, of which unknown ones count as 1.
class Extents {
public:
  Extents(const Mesh &mesh, RankedTensorType global, const Layout *layout) {
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      Table &sizes = all.emplace_back();
      for (auto [dim, size] : llvm::enumerate(global.getShape())) {
        DimSplit split = layout ? layout->splitOfDim(static_cast<int64_t>(dim)) : DimSplit();
        int64_t extent = ShapedType::isDynamic(size) ? 1 : 0;
        if (extent == 0)
          for (const Run &run : split.runs(size, mesh.coordinateOfPosition(position)))
            extent += run.size();
        sizes.push_back(extent);
      }
    }
  }

  void set(size_t position, int64_t dim, int64_t extent) { all[position][dim] = extent; }

  /// The product of the sizes of all dims but one.
  std::vector<double> beside(int64_t dim) const {
    std::vector<double> products;
    for (const Table &sizes : all) {
      double product = 1;
      for (auto [i, size] : llvm::enumerate(sizes))
        if (static_cast<int64_t>(i) != dim)
          product *= static_cast<double>(size);
      products.push_back(product);
    }
    return products;
  }

private:
  SmallVector<Table> all;
};

class BorderPlanner {
public:
  BorderPlanner(Localizer &localizer, ArrayRef<HaloDim> halos)
      : localizer(localizer), mesh(localizer.getMesh().getValue()),
        image(mesh, localizer.globalOperandType(0), localizer.operandLayout(0)),
        result(mesh, localizer.globalResultType(0), localizer.resultLayout(0)),
        all(static_cast<size_t>(mesh.numDevices()), BorderSums{true, true}),
        none(static_cast<size_t>(mesh.numDevices())) {
    // Where other windows fetch elements of the image, these come in the same exchange.
    bool isAlone = halosBeside(localizer, halos.front()).empty();
    for (const HaloDim &halo : halos)
      dims.push_back(dimOf(halo, isAlone));
  }

  /// The ways that move least; nothing where that is to fetch along all dims.
  std::optional<SmallVector<BorderDim>> plan() {
    if (llvm::none_of(dims, [](const BorderDim &dim) { return dim.maySum; }))
      return std::nullopt;
    best = evaluate();
    tryFrom(0, /*hasSides=*/false);
    return chosen;
  }

private:
  BorderDim dimOf(const HaloDim &halo, bool isAlone) {
    BorderDim dim{&halo};
    auto axes = [](const SplitDim &side) {
      return llvm::map_to_vector(side.split.axes, [](const AxisSplit &a) { return a.axis; });
    };
    if (halo.isSymbolic())
      return dim;
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      Run elements = pieceOf(mesh, halo.image, position);
      dim.ranks.push_back({elements, pieceOf(mesh, halo.positions, position),
                           halo.covers[position].elements,
                           aten::positionsOver(halo.window, elements, halo.positions.size)});
    }
    // What pieces of other tensors make goes straight to where it is needed.
    dim.maySum = isAlone && axes(halo.image) == axes(halo.positions) &&
                 !isMovedOperand(localizer, halo.imageDim);
    Mesh byPosition(mesh.axes); // without device ids, ranks are positions
    dim.needs = borderNeeds(dim.ranks, byPosition.groups(heldDim(mesh, halo.image).axes));
    return dim;
  }

  /// All ways from dim `next` on. Of two dims one has sums that are made apart, since every dim
  /// that has makes three ops of one.
  void tryFrom(size_t next, bool hasSides) {
    if (next == dims.size()) {
      double numbers = evaluate();
      if (numbers < best) {
        best = numbers;
        chosen = dims;
      }
      return;
    }
    BorderDim &dim = dims[next];
    tryFrom(next + 1, hasSides);
    if (!dim.maySum)
      return;
    if (!hasSides) {
      dim.way = Way::Sides;
      for (const std::vector<BorderSums> &sums :
           {all, cheapestSums(dim.needs, image.beside(dim.halo->imageDim),
                              result.beside(dim.halo->positionsDim))}) {
        dim.sums = sums;
        tryFrom(next + 1, /*hasSides=*/true);
      }
    }
    if (dims.size() > 1) {
      dim.way = Way::Whole;
      tryFrom(next + 1, hasSides);
    }
    dim.way = Way::Fetch;
  }

  /// Numbers that the busiest rank gets or gives, over all exchanges.
  double evaluate() {
    Extents elements = image, positions = result;
    double numbers = 0;
    auto exchange = [&](auto &&add) {
      BorderTraffic traffic(none.size());
      add(traffic);
      numbers += traffic.most();
    };
    BorderDim *sides = nullptr;
    bool hasWhole = false;
    for (BorderDim &dim : dims) {
      if (dim.way == Way::Sides)
        sides = &dim;
      hasWhole |= dim.way == Way::Whole;
      if (dim.way == Way::Fetch && !dim.halo->isSymbolic()) {
        exchange([&](BorderTraffic &traffic) {
          traffic.addElements(dim.needs, none, elements.beside(dim.halo->imageDim));
        });
        for (auto [position, cover] : llvm::enumerate(dim.halo->covers))
          elements.set(position, dim.halo->imageDim, cover.size());
      }
      for (auto [position, rank] : llvm::enumerate(dim.ranks))
        if (dim.way == Way::Whole)
          positions.set(position, dim.halo->positionsDim, rank.touched.size());
    }
    auto fetchSides = [&](BorderTraffic &traffic) {
      traffic.addElements(sides->needs, sides->sums, elements.beside(sides->halo->imageDim));
    };
    auto sumSides = [&](BorderTraffic &traffic) {
      traffic.addSums(sides->needs, sides->sums, positions.beside(sides->halo->positionsDim));
    };
    if (sides && !hasWhole) {
      // Neither needs what the other brings, so that they are one exchange.
      exchange([&](BorderTraffic &traffic) {
        fetchSides(traffic);
        sumSides(traffic);
      });
      return numbers;
    }
    if (sides) {
      exchange(fetchSides);
      for (auto [position, rank] : llvm::enumerate(sides->ranks))
        positions.set(position, sides->halo->positionsDim,
                      rank.before().size() + rank.positions.size() + rank.behind().size());
    }
    for (BorderDim &dim : dims) {
      if (dim.way != Way::Whole)
        continue;
      exchange([&](BorderTraffic &traffic) {
        traffic.addSums(dim.needs, all, positions.beside(dim.halo->positionsDim));
      });
      for (auto [position, rank] : llvm::enumerate(dim.ranks))
        positions.set(position, dim.halo->positionsDim, rank.positions.size());
    }
    if (sides)
      exchange(sumSides);
    return numbers;
  }

  Localizer &localizer;
  const Mesh &mesh;
  Extents image, result;
  std::vector<BorderSums> all, none;
  SmallVector<BorderDim> dims;
  double best = 0;
  std::optional<SmallVector<BorderDim>> chosen;
};

} // namespace

std::optional<SmallVector<BorderDim>> shardc::planBorders(Localizer &localizer,
                                                          ArrayRef<HaloDim> halos) {
  return BorderPlanner(localizer, halos).plan();
}
