// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/BorderPlan.h"

#include <numeric>

using namespace mlir;
using namespace shardc;

void BorderDim::findNeeds(const Mesh &mesh, ArrayRef<unsigned> axes) {
  Mesh byPosition(mesh.axes); // without device ids, ranks are positions
  needs = borderNeeds(ranks, byPosition.groups(axes));
}

LocalExtents::LocalExtents(const Mesh &mesh, RankedTensorType global, const Layout *layout) {
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    SmallVector<int64_t> &sizes = all.emplace_back();
    for (auto [dim, size] : llvm::enumerate(global.getShape())) {
      int64_t extent = 1;
      if (!ShapedType::isDynamic(size))
        extent = layout ? layout->splitOfDim(static_cast<int64_t>(dim))
                              .extent(size, mesh.coordinateOfPosition(position))
                        : size;
      sizes.push_back(extent);
    }
  }
}

double LocalExtents::most() const {
  double most = 0;
  for (const SmallVector<int64_t> &sizes : all)
    most = std::max(most, std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<>()));
  return most;
}

std::vector<double> LocalExtents::beside(int64_t dim) const {
  std::vector<double> products;
  for (const SmallVector<int64_t> &sizes : all) {
    double product = 1;
    for (auto [i, size] : llvm::enumerate(sizes))
      if (static_cast<int64_t>(i) != dim)
        product *= static_cast<double>(size);
    products.push_back(product);
  }
  return products;
}

namespace {

class BorderPlanner {
public:
  BorderPlanner(const Mesh &mesh, MutableArrayRef<BorderDim> dims, const LocalExtents &read,
                const LocalExtents &made, double worth)
      : dims(dims), read(read), made(made), worth(worth),
        all(static_cast<size_t>(mesh.numDevices()), BorderSums{true, true}),
        none(static_cast<size_t>(mesh.numDevices())) {}

  double run() {
    for (BorderDim &dim : dims)
      dim.way = dim.ways.front();
    if (llvm::all_of(dims, [](const BorderDim &dim) { return dim.ways.size() == 1; }))
      return 0;
    double first = evaluate();
    best = first * worth;
    chosen.assign(dims.begin(), dims.end());
    tryFrom(0, /*hasSides=*/false);
    llvm::copy(chosen, dims.begin());
    return first - evaluate();
  }

private:
  void tryFrom(size_t next, bool hasSides) {
    if (next == dims.size()) {
      double numbers = evaluate();
      if (numbers < best) {
        best = numbers;
        chosen.assign(dims.begin(), dims.end());
      }
      return;
    }
    BorderDim &dim = dims[next];
    for (BorderWay way : dim.ways) {
      dim.way = way;
      if (way != BorderWay::Sides) {
        tryFrom(next + 1, hasSides);
        continue;
      }
      if (hasSides)
        continue;
      for (const std::vector<BorderSums> &sums :
           {all, cheapestSums(dim.needs, read.beside(dim.read), made.beside(dim.made))}) {
        dim.sums = sums;
        tryFrom(next + 1, /*hasSides=*/true);
      }
    }
  }

  /// Numbers that the busiest rank gets or gives, over all exchanges.
  double evaluate() {
    LocalExtents elements = read, results = made;
    double numbers = 0;
    auto exchange = [&](auto &&add) {
      BorderTraffic traffic(none.size());
      add(traffic);
      numbers += traffic.most();
    };
    BorderDim *sides = nullptr;
    bool hasWhole = false;
    for (BorderDim &dim : dims) {
      if (dim.way == BorderWay::Sides)
        sides = &dim;
      hasWhole |= dim.way == BorderWay::Whole;
      if (dim.way == BorderWay::Fetch) {
        exchange([&](BorderTraffic &traffic) {
          traffic.addElements(dim.needs, none, elements.beside(dim.read));
        });
        for (auto [position, size] : llvm::enumerate(dim.fetched))
          elements.set(position, dim.read, size);
      }
      if (dim.way == BorderWay::Whole)
        for (auto [position, rank] : llvm::enumerate(dim.ranks))
          results.set(position, dim.made, rank.touched.size());
    }
    auto fetchSides = [&](BorderTraffic &traffic) {
      traffic.addElements(sides->needs, sides->sums, elements.beside(sides->read));
    };
    auto sumSides = [&](BorderTraffic &traffic) {
      traffic.addSums(sides->needs, sides->sums, results.beside(sides->made));
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
        results.set(position, sides->made,
                    rank.before().size() + rank.positions.size() + rank.behind().size());
    }
    for (BorderDim &dim : dims) {
      if (dim.way != BorderWay::Whole)
        continue;
      exchange([&](BorderTraffic &traffic) {
        traffic.addSums(dim.needs, all, results.beside(dim.made));
      });
      for (auto [position, rank] : llvm::enumerate(dim.ranks))
        results.set(position, dim.made, rank.positions.size());
    }
    if (sides)
      exchange(sumSides);
    return numbers;
  }

  MutableArrayRef<BorderDim> dims;
  const LocalExtents &read, &made;
  double worth;
  std::vector<BorderSums> all, none;
  double best = 0;
  SmallVector<BorderDim> chosen;
};

} // namespace

double shardc::chooseBorderWays(const Mesh &mesh, MutableArrayRef<BorderDim> dims,
                                const LocalExtents &read, const LocalExtents &made, double worth) {
  return BorderPlanner(mesh, dims, read, made, worth).run();
}
