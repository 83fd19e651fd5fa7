// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/RowExchange.h"

using namespace mlir;
using namespace shardc;

RowExchange::Counts RowExchange::count(Value sent, int64_t most) {
  return read(gather(sent), most);
}

RowExchange::Counts RowExchange::read(Value all, int64_t most) {
  Emitter emit = localizer.emitter(builder);
  LocalIndices indices = localizer.indices(builder);
  Value member = indices.groupIndex(axes), next = indices.add(member, indices.constant(1));
  // This rank's row and column, in one list: the host waits once.
  auto line = [&](int64_t dim) {
    Value part = emit.slice(all, dim, getAsOpFoldResult(member), getAsOpFoldResult(next));
    SmallVector<int64_t> shape(aten::shapeOf(all));
    shape[dim] = 1;
    part.setType(RankedTensorType::get(shape, aten::elementTypeOf(all)));
    return emit.view(part, {builder.getIndexAttr(ranks)});
  };
  auto read = dist::ReadSizesOp::create(
      builder, emit.getLoc(), SmallVector<Type>(2 * ranks, builder.getIndexType()),
      emit.cat({line(0), line(1)}, 0), builder.getI64IntegerAttr(most));
  ValueRange sizes = read.getSizes();
  return {llvm::to_vector_of<Value>(sizes.take_front(ranks)),
          llvm::to_vector_of<Value>(sizes.drop_front(ranks))};
}

Value RowExchange::gather(Value row) {
  Emitter emit = localizer.emitter(builder);
  Layout onePerRank(localizer.getMesh().getValue());
  // The order in which the axes are nested, outermost first.
  onePerRank.order.clear();
  for (unsigned axis : axes) {
    onePerRank.placements[axis] = Placement::shard(0);
    onePerRank.order.push_back(axis);
  }
  for (unsigned axis = 0; axis < onePerRank.placements.size(); ++axis)
    if (!llvm::is_contained(axes, axis))
      onePerRank.order.push_back(axis);
  auto type = RankedTensorType::get({ranks, aten::shapeOf(row).front()}, aten::elementTypeOf(row));
  return localizer.allGather(builder, emit.unsqueeze(row, 0), onePerRank, type, 0, axes);
}

Value RowExchange::send(Value rows, ArrayRef<Value> sent, ArrayRef<Value> arriving, int64_t room) {
  SmallVector<Value> operands(sent);
  llvm::append_range(operands, arriving);
  const Mesh &mesh = localizer.getMesh().getValue();
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(builder.getStringAttr(mesh.axes[axis].name));
  auto group = dist::AxesAttr::get(builder.getContext(), localizer.getMesh(), names);
  DenseI64ArrayAttr first = builder.getDenseI64ArrayAttr({0});
  SmallVector<int64_t> dynamic(ranks, ShapedType::kDynamic);
  ArrayAttr open = builder.getArrayAttr(builder.getDenseI64ArrayAttr(dynamic));
  SmallVector<int64_t> shape(aten::shapeOf(rows));
  shape.front() = room;
  Type type = RankedTensorType::get(shape, aten::elementTypeOf(rows));
  return dist::AllToAllOp::create(builder, localizer.getOp()->getLoc(), TypeRange{type},
                                  ValueRange{rows}, operands, group, first, first, open, open)
      .getResult(0);
}
