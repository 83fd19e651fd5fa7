// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/FoldOfProducts.h"

#include "passes/localize/BorderPlan.h"
#include "passes/localize/MadeParts.h"

#include "dialects/aten/ConvolutionAsProduct.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Ops from a tensor to what is folded, each of which computes a position from the same position
/// of its operand.
struct Chain {
  Value source; ///< placed
  int64_t dim;  ///< of its positions
  struct Link {
    Operation *op;
    unsigned operand; ///< which the chain goes through
    bool operator==(const Link &) const = default;
  };
  SmallVector<Link> links; ///< the last op first
};

/// The dim of an operand that dim `dim` of a product is.
std::pair<unsigned, int64_t> operandDimOf(aten::TensordotOp op, int64_t dim) {
  for (auto [number, operand, summed] :
       {std::tuple(0U, op.getSelf(), op.getDimsSelf()), {1U, op.getOther(), op.getDimsOther()}}) {
    int64_t rank = aten::typeOf(operand).getRank();
    for (int64_t of = 0; of < rank; ++of)
      if (!llvm::is_contained(summed, of) && dim-- == 0)
        return {number, of};
  }
  llvm_unreachable("a dim of the result is one of an operand");
}

std::optional<Chain> chainTo(Value folded, int64_t dim) {
  Chain chain{folded, dim, {}};
  bool hasProduct = false;
  while (Operation *op = chain.source.getDefiningOp()) {
    if (!op->hasOneUse())
      break;
    if (auto permute = dyn_cast<aten::PermuteOp>(op)) {
      chain.links.push_back({op, 0});
      chain.dim = permute.getDims()[chain.dim];
    } else if (auto product = dyn_cast<aten::TensordotOp>(op)) {
      auto [operand, of] = operandDimOf(product, chain.dim);
      chain.links.push_back({op, operand});
      chain.dim = of;
      hasProduct = true;
    } else {
      break;
    }
    const Chain::Link &link = chain.links.back();
    chain.source = link.op->getOperand(link.operand);
    if (hasProduct)
      return chain;
  }
  return std::nullopt;
}

/// Along one dim: positions that make a rank's rows of the image, and what those cover.
struct FoldDim {
  const HaloDim *halo;
  int64_t sourceDim; ///< of the positions, in what is fetched
  SmallVector<Run> rows, needed;
  SmallVector<aten::Cover> covers;

  FoldDim(const Mesh &mesh, const HaloDim &halo, int64_t sourceDim)
      : halo(&halo), sourceDim(sourceDim) {
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      rows.push_back(pieceOf(mesh, halo.image, position));
      needed.push_back(aten::positionsOver(halo.window, rows.back(), halo.positions.size));
      covers.push_back(aten::coverOf(halo.window, needed.back(), halo.image.size));
    }
  }

  /// Whether each rank's rows are among those that its windows cover.
  bool mayFetch() const {
    return llvm::all_of(llvm::zip_equal(rows, covers), [](auto pair) {
      const auto &[own, cover] = pair;
      return own.size() == 0 ||
             (own.begin >= cover.elements.begin && own.end <= cover.elements.end);
    });
  }

  /// Positions are what is read, and rows of the image what is made.
  BorderDim border(const Mesh &mesh) const {
    BorderDim border{halo, sourceDim, halo->imageDim};
    for (auto [position, own] : llvm::enumerate(rows)) {
      Run have = pieceOf(mesh, halo->positions, static_cast<int64_t>(position));
      border.ranks.push_back({have, own, needed[position], halo->covers[position].elements});
      border.fetched.push_back(needed[position].size());
    }
    border.findNeeds(mesh, heldDim(mesh, halo->image).axes);
    border.ways = {BorderWay::Whole};
    if (mayFetch())
      border.ways.push_back(BorderWay::Fetch);
    return border;
  }
};

class FetchedFold {
public:
  FetchedFold(Localizer &localizer, OpBuilder &builder, aten::FoldOp op, const Chain &chain)
      : localizer(localizer), builder(builder), emit(localizer.emitter(builder)), op(op),
        chain(chain), mesh(localizer.getMesh().getValue()) {}

  /// `fetched` are among `dims`; along the others, what is made for elements of others is sent.
  Value run(ArrayRef<HaloDim> dims, ArrayRef<FoldDim> fetched) {
    PieceSource source{
        localizer.localOf(chain.source), localizer.localSizesOf(builder, chain.source), {}};
    for (const FoldDim &dim : fetched)
      fetch(dim, source);
    Value value = source.local;
    for (const Chain::Link &link : llvm::reverse(chain.links))
      value = again(link, value);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    SmallVector<OpFoldResult> own = sizes;
    SmallVector<HaloDim> summed;
    for (const HaloDim &halo : dims) {
      const auto *dim = llvm::find_if(fetched, [&](const FoldDim &f) { return f.halo == &halo; });
      if (dim == fetched.end()) {
        summed.push_back(halo);
        sizes[halo.imageDim] = getAsOpFoldResult(coverOnRank(localizer, builder, halo).size);
        continue;
      }
      sizes[halo.imageDim] =
          table(llvm::map_to_vector(dim->covers, [](const aten::Cover &c) { return c.size(); }));
    }
    aten::Windows windows = withoutPadding(op.getWindows(), dims);
    value = aten::buildFold(builder, op.getLoc(), value, ArrayRef(sizes).take_back(windows.size()),
                            windows);
    // Of all that these windows cover, this rank's rows.
    for (const FoldDim &dim : fetched) {
      SmallVector<int64_t> begin, end;
      for (auto [cover, rows] : llvm::zip_equal(dim.covers, dim.rows)) {
        begin.push_back(rows.size() == 0 ? 0 : cover.before + rows.begin - cover.elements.begin);
        end.push_back(begin.back() + rows.size());
      }
      int64_t along = dim.halo->imageDim;
      value = emit.slice(value, along, table(begin), table(end));
      sizes[along] = own[along];
      value.setType(typeOfSizes(value, sizes));
    }
    if (!summed.empty())
      value = haloSum(localizer, builder, summed, value, sizes);
    value.setType(localizer.localResultType(0));
    return value;
  }

private:
  OpFoldResult table(ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }

  /// All positions that make this rank's rows, in place of those that it has.
  void fetch(const FoldDim &dim, PieceSource &source) {
    source.dim = heldDim(mesh, dim.halo->positions);
    PieceTarget target{{{0, dim.halo->positions.size}}, source.dim, source.sizes, {}};
    SmallVector<int64_t> extents;
    for (auto [runs, run] : llvm::zip_equal(target.dim.runs, dim.needed)) {
      runs.clear();
      if (run.size() > 0)
        runs.push_back(run);
      extents.push_back(run.size());
    }
    target.sizes[dim.sourceDim] = table(extents);
    target.type = typeOfSizes(source.local, target.sizes);
    source.local = movePieces(localizer, builder, dim.sourceDim, source, target).front();
    source.sizes = target.sizes;
  }

  /// The op of the chain, of more positions.
  Value again(const Chain::Link &link, Value value) {
    if (auto permute = dyn_cast<aten::PermuteOp>(link.op))
      return aten::PermuteOp::create(builder, permute.getLoc(), value, permute.getDims());
    auto product = cast<aten::TensordotOp>(link.op);
    Value self = link.operand == 0 ? value : localizer.localOf(product.getSelf());
    Value other = link.operand == 1 ? value : localizer.localOf(product.getOther());
    return aten::TensordotOp::create(builder, product.getLoc(), self, other, product.getDimsSelf(),
                                     product.getDimsOther());
  }

  Localizer &localizer;
  OpBuilder &builder;
  Emitter emit;
  aten::FoldOp op;
  const Chain &chain;
  const Mesh &mesh;
};

} // namespace

LocalValues shardc::foldOfFetched(Localizer &localizer, OpBuilder &builder, aten::FoldOp op,
                                  ArrayRef<HaloDim> dims) {
  const Mesh &mesh = localizer.getMesh().getValue();
  std::optional<Chain> chain;
  SmallVector<FoldDim> all;
  for (const HaloDim &halo : dims) {
    std::optional<Chain> along = chainTo(op.getSelf(), halo.positionsDim);
    if (halo.isSymbolic() || !along || (chain && along->links != chain->links))
      return failure();
    const Layout &layout = dist::getLayout(along->source.getType()).getValue();
    if (!(layout.splitOfDim(along->dim) == halo.positions.split) || !layout.partialAxes().empty())
      return failure();
    all.emplace_back(mesh, halo, along->dim);
    chain = std::move(along);
  }
  if (!chain)
    return failure();
  SmallVector<BorderDim> ways;
  for (const FoldDim &dim : all)
    ways.push_back(dim.border(mesh));
  const Layout &source = dist::getLayout(chain->source.getType()).getValue();
  chooseBorderWays(mesh, ways, LocalExtents(mesh, aten::typeOf(chain->source), &source),
                   LocalExtents(mesh, localizer.globalResultType(0), localizer.resultLayout(0)));
  SmallVector<FoldDim> fetched;
  for (auto [dim, border] : llvm::zip_equal(all, ways))
    if (border.way == BorderWay::Fetch)
      fetched.push_back(dim);
  if (fetched.empty())
    return failure();
  return single(FetchedFold(localizer, builder, op, *chain).run(dims, fetched));
}
