// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/FoldOfProducts.h"

#include "passes/localize/MovePieces.h"

#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/sharding/HaloCost.h"

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
    unsigned operand;  ///< which the chain goes through
    int64_t resultDim; ///< of its positions
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
      chain.links.push_back({op, 0, chain.dim});
      chain.dim = permute.getDims()[chain.dim];
    } else if (auto product = dyn_cast<aten::TensordotOp>(op)) {
      auto [operand, of] = operandDimOf(product, chain.dim);
      chain.links.push_back({op, operand, chain.dim});
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

Run pieceOf(ArrayRef<Run> runs) { return runs.empty() ? Run{} : runs.front(); }

/// Elements beside dim `dim`, of a rank where sizes are known.
double elementsBeside(RankedTensorType local, int64_t dim) {
  double product = 1;
  for (auto [i, size] : llvm::enumerate(local.getShape()))
    if (static_cast<int64_t>(i) != dim && !ShapedType::isDynamic(size))
      product *= static_cast<double>(size);
  return product;
}

class FetchedFold {
public:
  FetchedFold(Localizer &localizer, OpBuilder &builder, aten::FoldOp op, const HaloDim &halo,
              const Chain &chain)
      : localizer(localizer), builder(builder), emit(localizer.emitter(builder)), op(op),
        halo(halo), chain(chain), mesh(localizer.getMesh().getValue()),
        held(heldDim(mesh, halo.positions)) {
    HeldDim image = heldDim(mesh, halo.image);
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      own.push_back(pieceOf(image.runs[position]));
      needed.push_back(aten::positionsOver(halo.window, own.back(), halo.positions.size));
      covers.push_back(aten::coverOf(halo.window, needed.back(), halo.image.size));
    }
  }

  /// Whether each rank's rows are among those that its windows cover, and what it fetches is less.
  bool pays() const {
    int64_t fetched = 0, sent = 0;
    for (auto [position, rows] : llvm::enumerate(own)) {
      Run cover = covers[position].elements;
      if (rows.size() > 0 && (rows.begin < cover.begin || rows.end > cover.end))
        return false;
      Run have = pieceOf(held.runs[position]);
      fetched = std::max(fetched, lackedOf(needed[position], have));
      sent = std::max(sent, lackedOf(halo.covers[position].elements, rows));
    }
    auto source = cast<RankedTensorType>(localizer.localOf(chain.source).getType());
    return static_cast<double>(fetched) * elementsBeside(source, chain.dim) <
           static_cast<double>(sent) * elementsBeside(localizer.localResultType(0), halo.imageDim);
  }

  Value run(ArrayRef<HaloDim> dims) {
    Value value = fetch();
    for (const Chain::Link &link : llvm::reverse(chain.links))
      value = again(link, value);
    // Of all that these windows cover, this rank's rows.
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    sizes[halo.imageDim] = table([](const aten::Cover &cover, Run) { return cover.size(); });
    aten::Windows windows = withoutPadding(op.getWindows(), dims);
    value = aten::buildFold(builder, op.getLoc(), value, ArrayRef(sizes).take_back(windows.size()),
                            windows);
    auto begin = [](const aten::Cover &cover, Run rows) {
      return rows.size() == 0 ? 0 : cover.before + rows.begin - cover.elements.begin;
    };
    value = emit.slice(value, halo.imageDim, table(begin),
                       table([&](const aten::Cover &cover, Run rows) {
                         return begin(cover, rows) + rows.size();
                       }));
    value.setType(localizer.localResultType(0));
    return value;
  }

private:
  template <typename F> OpFoldResult table(F &&number) {
    SmallVector<int64_t> numbers;
    for (auto [cover, rows] : llvm::zip_equal(covers, own))
      numbers.push_back(number(cover, rows));
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }

  Value fetch() {
    PieceSource source{localizer.localOf(chain.source),
                       localizer.localSizesOf(builder, chain.source), held};
    PieceTarget target{{{0, halo.positions.size}},
                       held,
                       source.sizes,
                       cast<RankedTensorType>(source.local.getType())};
    SmallVector<int64_t> extents, shape(target.type.getShape());
    for (auto [runs, run] : llvm::zip_equal(target.dim.runs, needed)) {
      runs.clear();
      if (run.size() > 0)
        runs.push_back(run);
      extents.push_back(run.size());
    }
    target.sizes[chain.dim] = getAsOpFoldResult(localizer.indices(builder).table(extents));
    shape[chain.dim] = llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic;
    target.type = target.type.clone(shape);
    return movePieces(localizer, builder, chain.dim, source, target).front();
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
  const HaloDim &halo;
  const Chain &chain;
  const Mesh &mesh;
  HeldDim held; ///< positions
  // For every position of the mesh: rows of the image, positions that make them, what those cover.
  SmallVector<Run> own, needed;
  SmallVector<aten::Cover> covers;
};

} // namespace

LocalValues shardc::foldOfFetched(Localizer &localizer, OpBuilder &builder, aten::FoldOp op,
                                  ArrayRef<HaloDim> dims) {
  // Of several dims the corners would have to be fetched as well.
  if (dims.size() != 1 || ShapedType::isDynamic(dims.front().image.size) ||
      ShapedType::isDynamic(dims.front().positions.size))
    return failure();
  const HaloDim &halo = dims.front();
  auto spatial = static_cast<int64_t>(op.getWindows().size());
  int64_t positionsDim =
      aten::typeOf(op.getSelf()).getRank() - spatial + static_cast<int64_t>(halo.spatial);
  std::optional<Chain> chain = chainTo(op.getSelf(), positionsDim);
  if (!chain)
    return failure();
  const Layout &layout = dist::getLayout(chain->source.getType()).getValue();
  if (!(layout.splitOfDim(chain->dim) == halo.positions.split) || !layout.partialAxes().empty())
    return failure();
  FetchedFold fold(localizer, builder, op, halo, *chain);
  return fold.pays() ? single(fold.run(dims)) : LocalValues(failure());
}
