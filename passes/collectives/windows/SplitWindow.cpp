// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/windows/SplitWindow.h"

#include "passes/collectives/analysis/EraseDead.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Emitter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace shardc;

/// The same slice of another value, which has another length along `dim`.
static Value sliceOf(OpBuilder &builder, aten::SliceOp slice, Value value, int64_t dim) {
  IRMapping mapping;
  mapping.map(slice.getSelf(), value);
  Value result = builder.clone(*slice, mapping)->getResult(0);
  SmallVector<int64_t> shape(aten::shapeOf(slice.getResult()));
  shape[dim] = aten::shapeOf(value)[dim];
  result.setType(cast<RankedTensorType>(slice.getType()).clone(shape));
  return result;
}

namespace {

class WindowSplitter {
public:
  WindowSplitter(const WindowSite &site, RankValues &ranks)
      : site(site), ranks(ranks), builder(site.op), emit(builder, site.op->getLoc()) {}

  SmallVector<Operation *> run(unsigned pieces, function_ref<void(Operation *)> erased) {
    size_t numDevices = site.positions.size();
    SmallVector<Value> parts;
    SmallVector<Operation *> interior;
    auto add = [&](const DeviceTable &begin, const DeviceTable &end) -> Operation * {
      if (begin == end)
        return nullptr;
      Operation *part = positions(begin, end);
      parts.push_back(part->getResult(0));
      return part;
    };
    add(DeviceTable(numDevices, 0), site.interiorBegin);
    DeviceTable begin = site.interiorBegin;
    for (unsigned piece = 1; piece <= pieces; ++piece) {
      DeviceTable end;
      for (size_t device = 0; device != numDevices; ++device) {
        int64_t first = site.interiorBegin[device];
        end.push_back(first + (site.interiorEnd[device] - first) * piece / pieces);
      }
      if (Operation *part = add(begin, end))
        interior.push_back(part);
      begin = std::move(end);
    }
    add(site.interiorEnd, site.positions);
    Value whole = parts.size() == 1 ? parts.front() : emit.cat(parts, site.resultDim);
    if (whole.getType() != site.op->getResult(0).getType())
      whole.setType(cast<RankedTensorType>(site.op->getResult(0).getType()));
    site.op->getResult(0).replaceAllUsesWith(whole);
    eraseDead(site.op, ranks, erased);
    return interior;
  }

private:
  static RankedTensorType withLength(Value value, int64_t dim, const DeviceTable &lengths) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = llvm::all_equal(lengths) ? lengths.front() : ShapedType::kDynamic;
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// The op for positions [begin, end).
  Operation *positions(const DeviceTable &begin, const DeviceTable &end) {
    IRMapping mapping;
    mapping.map(site.op->getOperand(0), imageOf(begin, end));
    Operation *part = builder.clone(*site.op, mapping);
    DeviceTable count;
    for (auto [first, last] : llvm::zip_equal(begin, end))
      count.push_back(last - first);
    Value result = part->getResult(0);
    result.setType(withLength(result, site.resultDim, count));
    return part;
  }

  /// What these positions cover. Where there are none, elements that have no room for one.
  Value imageOf(const DeviceTable &begin, const DeviceTable &end) {
    int64_t stride = site.window.stride, extent = site.window.extent();
    DeviceTable first, last, filled, total;
    for (auto [from, to] : llvm::zip_equal(begin, end)) {
      bool isEmpty = from == to;
      first.push_back(isEmpty ? 0 : from * stride);
      last.push_back(isEmpty ? 0 : (to - 1) * stride + extent);
      filled.push_back(isEmpty ? std::max<int64_t>(extent - stride, 0) : 0);
      total.push_back(last.back() - first.back() + filled.back());
    }
    SmallVector<Value> parts;
    DeviceTable at(begin.size(), 0);
    for (const ImageRows &rows : site.rows) {
      DeviceTable cutBegin, cutEnd;
      for (auto [device, length] : llvm::enumerate(rows.lengths)) {
        auto inside = [&](int64_t row) { return std::clamp<int64_t>(row - at[device], 0, length); };
        cutBegin.push_back(inside(first[device]));
        cutEnd.push_back(inside(last[device]));
        at[device] += length;
      }
      if (cutBegin != cutEnd)
        parts.push_back(cut(rows, cutBegin, cutEnd));
    }
    if (llvm::any_of(filled, [](int64_t length) { return length != 0; }))
      parts.push_back(fill(filled, parts.front()));
    Value image = parts.size() == 1 ? parts.front() : emit.cat(parts, site.imageDim);
    image.setType(withLength(image, site.imageDim, total));
    return image;
  }

  Value cut(const ImageRows &rows, const DeviceTable &begin, const DeviceTable &end) {
    Value value = rows.value;
    DeviceTable lengths;
    for (auto [first, last] : llvm::zip_equal(begin, end))
      lengths.push_back(last - first);
    if (lengths != rows.lengths) {
      value = emit.slice(value, site.imageDim, ranks.build(builder, emit.getLoc(), begin),
                         ranks.build(builder, emit.getLoc(), end));
      value.setType(withLength(value, site.imageDim, lengths));
    }
    for (aten::SliceOp slice : llvm::reverse(site.around))
      value = sliceOf(builder, slice, value, site.imageDim);
    return value;
  }

  /// Zeros beside `rows`.
  Value fill(const DeviceTable &lengths, Value rows) {
    aten::BuiltSizes sizes(builder, emit.getLoc());
    SmallVector<OpFoldResult> all;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(rows.getType()).getRank(); ++dim)
      all.push_back(dim == site.imageDim ? ranks.build(builder, emit.getLoc(), lengths)
                                         : sizes.get(sizes.of(rows, dim)));
    return emit.zeros(all, aten::elementTypeOf(rows));
  }

  const WindowSite &site;
  RankValues &ranks;
  OpBuilder builder;
  Emitter emit;
};

} // namespace

SmallVector<Operation *> shardc::splitWindow(const WindowSite &site, unsigned pieces,
                                             RankValues &ranks,
                                             function_ref<void(Operation *)> erased) {
  return WindowSplitter(site, ranks).run(pieces, erased);
}

void shardc::sliceBeforeJoining(aten::CatOp image, RankValues &ranks,
                                function_ref<void(Operation *)> erased) {
  auto dim = static_cast<int64_t>(image.getDim());
  for (Operation *user : image->getUsers()) {
    auto slice = dyn_cast<aten::SliceOp>(user);
    if (!slice || static_cast<int64_t>(slice.getDim()) == dim)
      return;
  }
  auto erase = [&](Operation *op) {
    erased(op);
    ranks.forget(op);
    op->erase();
  };
  for (Operation *user : llvm::make_early_inc_range(image->getUsers())) {
    auto slice = cast<aten::SliceOp>(user);
    OpBuilder builder(slice);
    SmallVector<Value> parts;
    for (Value part : image.getTensors())
      parts.push_back(sliceOf(builder, slice, part, dim));
    Value joined = Emitter(builder, image.getLoc()).cat(parts, dim);
    joined.setType(slice.getType());
    slice.getResult().replaceAllUsesWith(joined);
    erase(slice);
  }
  erase(image);
}
