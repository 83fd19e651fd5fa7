// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What results are made of: PiecesOpInterface, op by op.

#include "passes/localize/Parts.h"

#include "dialects/aten/Concatenation.h"
#include "dialects/aten/KnownLookups.h"
#include "passes/localize/PiecesOpInterface.h"

using namespace mlir;
using namespace shardc;

using Dims = SmallVector<int64_t>;

int64_t shardc::startOf(aten::SliceOp op) {
  int64_t size = aten::shapeOf(op.getSelf())[op.getDim()];
  auto start = static_cast<int64_t>(op.getStaticStart());
  return std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
}

size_t shardc::amountsOf(aten::ConstantPadNdOp op, int64_t dim) {
  return static_cast<size_t>(2 * (aten::typeOf(op.getSelf()).getRank() - 1 - dim));
}

namespace {

template <typename Model, typename OpT>
struct PiecesModel : PiecesOpInterface::ExternalModel<Model, OpT> {
  Dims getMovedDims(Operation *op) const { return Model::dims(cast<OpT>(op)); }
  std::optional<Pieces> getPieces(Operation *op, unsigned result, int64_t dim) const {
    return Model::pieces(cast<OpT>(op), result, dim);
  }
};

struct SlicePieces : PiecesModel<SlicePieces, aten::SliceOp> {
  static Dims dims(aten::SliceOp op) { return {static_cast<int64_t>(op.getDim())}; }
  static std::optional<Pieces> pieces(aten::SliceOp op, unsigned, int64_t dim) {
    int64_t count = aten::shapeOf(op.getResult())[dim];
    if (op.getStart() || op.getEnd() || ShapedType::isDynamic(count) ||
        ShapedType::isDynamic(aten::shapeOf(op.getSelf())[dim]))
      return std::nullopt;
    return Pieces{{0, count, startOf(op), static_cast<int64_t>(op.getStep())}};
  }
};

struct SplitPieces : PiecesModel<SplitPieces, aten::SplitWithSizesOp> {
  static Dims dims(aten::SplitWithSizesOp op) { return {static_cast<int64_t>(op.getDim())}; }
  static std::optional<Pieces> pieces(aten::SplitWithSizesOp op, unsigned result, int64_t) {
    if (!op.getSplitSizes().empty())
      return std::nullopt;
    ArrayRef<int64_t> sizes = op.getStaticSplitSizes();
    int64_t start = 0;
    for (int64_t size : sizes.take_front(result))
      start += size;
    return Pieces{{0, sizes[result], start, 1}};
  }
};

struct CatPieces : PiecesModel<CatPieces, aten::CatOp> {
  static Dims dims(aten::CatOp op) { return {static_cast<int64_t>(op.getDim())}; }
  static std::optional<Pieces> pieces(aten::CatOp op, unsigned, int64_t dim) {
    int64_t rank = aten::rankOfCat(op.getTensors());
    Pieces pieces;
    for (auto [number, tensor] : llvm::enumerate(op.getTensors())) {
      if (aten::isSkippedByCat(tensor, rank))
        continue;
      int64_t size = aten::shapeOf(tensor)[dim];
      if (ShapedType::isDynamic(size))
        return std::nullopt;
      pieces.push_back({static_cast<unsigned>(number), size, 0, 1});
    }
    return pieces;
  }
};

struct PadPieces : PiecesModel<PadPieces, aten::ConstantPadNdOp> {
  static int64_t amount(aten::ConstantPadNdOp op, int64_t dim, size_t side) {
    size_t at = amountsOf(op, dim) + side;
    return at < op.getPad().size() ? op.getPad()[at] : 0;
  }
  static Dims dims(aten::ConstantPadNdOp op) {
    Dims padded;
    for (int64_t dim = 0, rank = aten::typeOf(op.getSelf()).getRank(); dim < rank; ++dim)
      if (amount(op, dim, 0) != 0 || amount(op, dim, 1) != 0)
        padded.push_back(dim);
    return padded;
  }
  static std::optional<Pieces> pieces(aten::ConstantPadNdOp op, unsigned, int64_t dim) {
    int64_t size = aten::shapeOf(op.getSelf())[dim];
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    int64_t before = amount(op, dim, 0), after = amount(op, dim, 1);
    // What is cut off may reach into what is added at the other end.
    Pieces whole;
    append(whole, {kNewElements, std::max<int64_t>(before, 0)});
    append(whole, {0, size});
    append(whole, {kNewElements, std::max<int64_t>(after, 0)});
    return select(whole, std::max<int64_t>(-before, 0), 1, size + before + after);
  }
  double getNewValue(Operation *op) const {
    return cast<aten::ConstantPadNdOp>(op).getValue().convertToDouble();
  }
};

struct FlipPieces : PiecesModel<FlipPieces, aten::FlipOp> {
  static Dims dims(aten::FlipOp op) { return Dims(op.getDims()); }
  static std::optional<Pieces> pieces(aten::FlipOp op, unsigned, int64_t dim) {
    int64_t size = aten::shapeOf(op.getSelf())[dim];
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    Pieces pieces;
    append(pieces, {0, size, size - 1, -1});
    return pieces;
  }
};

/// Positions that the program says: few runs of them, or it is a lookup as any other.
struct IndexSelectPieces : PiecesModel<IndexSelectPieces, aten::IndexSelectOp> {
  static constexpr size_t mostPieces = 32;

  static Dims dims(aten::IndexSelectOp op) { return {static_cast<int64_t>(op.getDim())}; }
  static std::optional<Pieces> pieces(aten::IndexSelectOp op, unsigned, int64_t) {
    std::optional<SmallVector<int64_t>> positions = aten::constantPositions(op);
    if (!positions)
      return std::nullopt;
    Pieces pieces;
    for (int64_t position : *positions) {
      if (pieces.size() > mostPieces)
        return std::nullopt;
      append(pieces, {0, 1, position, 1});
    }
    return pieces;
  }
};

} // namespace

void shardc::attachPieces(MLIRContext *context) {
  aten::SliceOp::attachInterface<SlicePieces>(*context);
  aten::SplitWithSizesOp::attachInterface<SplitPieces>(*context);
  aten::CatOp::attachInterface<CatPieces>(*context);
  aten::ConstantPadNdOp::attachInterface<PadPieces>(*context);
  aten::FlipOp::attachInterface<FlipPieces>(*context);
  aten::IndexSelectOp::attachInterface<IndexSelectPieces>(*context);
}
