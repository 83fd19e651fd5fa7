// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/nodes/SplitCollective.h"

#include "dialects/aten/Emitter.h"
#include "passes/collectives/analysis/Transfers.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

/// A tensor around one dim: what is before it, its extent, and what is behind it, each as one
/// number.
struct Around {
  Around(ArrayRef<int64_t> shape, int64_t dim) : extent(shape[dim]) {
    for (int64_t size : shape.take_front(dim))
      before *= size;
    for (int64_t size : shape.drop_front(dim + 1))
      behind *= size;
  }
  int64_t before = 1, extent, behind = 1;
};

class NodeSplitter {
public:
  NodeSplitter(CollectiveOpInterface op, const NodeGroups &groups)
      : op(op), groups(groups), builder(op), emit(builder, op.getLoc()) {
    nameGroups();
  }

  void run() {
    SmallVector<Value> results;
    if (isa<AllReduceOp>(op.getOperation()))
      results = allReduce(*op.getReductionOrNone());
    else if (isa<ReduceScatterOp>(op.getOperation()))
      results = reduceScatter(*op.getReductionOrNone());
    else
      results = allGather();
    op->replaceAllUsesWith(results);
  }

private:
  /// Mesh axes where the two are axes of the group, else lists of ranks.
  void nameGroups() {
    within = GroupsAttr::get(op->getContext(), groups.ranksOnNode, groups.within);
    between = GroupsAttr::get(op->getContext(), groups.nodes, groups.between);
    auto axes = dyn_cast<AxesAttr>(op.getGroup());
    if (!axes)
      return;
    bool byNode = groups.order == NodeGroups::Order::ByNode;
    for (size_t outer = 1; outer < axes.getAxes().size(); ++outer) {
      auto first = cast<GroupAttrInterface>(Attribute(
          AxesAttr::get(op->getContext(), axes.getMesh(), axes.getAxes().take_front(outer))));
      auto second = cast<GroupAttrInterface>(Attribute(
          AxesAttr::get(op->getContext(), axes.getMesh(), axes.getAxes().drop_front(outer))));
      auto &nodes = byNode ? first : second, &ranks = byNode ? second : first;
      if (nodes.getCanonicalGroup() != between || ranks.getCanonicalGroup() != within)
        continue;
      between = nodes;
      within = ranks;
      return;
    }
  }

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  Value view(Value value, ArrayRef<int64_t> shape) {
    if (typeOf(value).getShape() == shape)
      return value;
    return emit.view(value, getAsIndexOpFoldResult(op->getContext(), shape));
  }
  Value viewLike(Value value, Value like) { return view(value, typeOf(like).getShape()); }

  // One collective for all tensors; `dims` by tensor.

  SmallVector<Value> scatter(Reduction reduction, GroupAttrInterface group, ValueRange tensors,
                             ArrayRef<int64_t> dims) {
    auto type = ReductionAttr::get(op->getContext(), reduction);
    return ReduceScatterOp::create(builder, op.getLoc(), scaled(tensors, dims, group, false), type,
                                   tensors, ValueRange(), group, builder.getDenseI64ArrayAttr(dims),
                                   ArrayAttr())
        .getResults();
  }
  SmallVector<Value> gather(GroupAttrInterface group, ValueRange tensors, ArrayRef<int64_t> dims) {
    return AllGatherOp::create(builder, op.getLoc(), scaled(tensors, dims, group, true), tensors,
                               ValueRange(), group, builder.getDenseI64ArrayAttr(dims), ArrayAttr())
        .getResults();
  }
  static SmallVector<Type> scaled(ValueRange tensors, ArrayRef<int64_t> dims,
                                  GroupAttrInterface group, bool up) {
    SmallVector<Type> types;
    for (auto [tensor, dim] : llvm::zip_equal(tensors, dims)) {
      SmallVector<int64_t> shape(typeOf(tensor).getShape());
      int64_t size = group.getGroupSize();
      shape[dim] = up ? shape[dim] * size : shape[dim] / size;
      types.push_back(typeOf(tensor).clone(shape));
    }
    return types;
  }

  /// Along the outermost dim, or that of a flat view where it cannot be divided.
  SmallVector<Value> allReduce(Reduction reduction) {
    SmallVector<Value> tensors;
    for (Value tensor : op.getTensors()) {
      bool divides = typeOf(tensor).getDimSize(0) % groups.ranksOnNode == 0;
      tensors.push_back(divides ? tensor : view(tensor, typeOf(tensor).getNumElements()));
    }
    SmallVector<int64_t> outermost(tensors.size(), 0);
    SmallVector<Value> parts = scatter(reduction, within, tensors, outermost);
    auto reduced =
        AllReduceOp::create(builder, op.getLoc(), TypeRange(ValueRange(parts)),
                            ReductionAttr::get(op->getContext(), reduction), parts, between);
    SmallVector<Value> results = gather(within, reduced.getResults(), outermost);
    for (auto [result, tensor] : llvm::zip_equal(results, op.getTensors()))
      result = viewLike(result, tensor);
    return results;
  }

  /// Position node * ranksOnNode + place: what a place gets is spread over the dim, in as many
  /// blocks as there are nodes. They are columns of the matrix (nodes x the rest of the dim).
  SmallVector<Value> reduceScatter(Reduction reduction) {
    SmallVector<Value> tensors, parts;
    SmallVector<int64_t> dims, inner;
    for (unsigned i = 0; i != op->getNumResults(); ++i) {
      Value tensor = op.getTensors()[i];
      dims.push_back(op.getSplitDim(i));
      inner.push_back(isByNode() ? 1 : dims.back());
      Around around(typeOf(tensor).getShape(), dims.back());
      tensors.push_back(isByNode() ? view(tensor, {around.before * groups.nodes,
                                                   around.extent / groups.nodes * around.behind})
                                   : tensor);
    }
    parts = scatter(reduction, within, tensors, inner);
    for (auto [part, tensor, dim] : llvm::zip_equal(parts, op.getTensors(), dims)) {
      SmallVector<int64_t> shape(typeOf(tensor).getShape());
      shape[dim] /= groups.ranksOnNode;
      part = view(part, shape);
    }
    return scatter(reduction, between, parts, dims);
  }

  /// The same backwards.
  SmallVector<Value> allGather() {
    SmallVector<int64_t> dims, inner;
    for (unsigned i = 0; i != op->getNumResults(); ++i) {
      dims.push_back(op.getConcatDim(i));
      inner.push_back(isByNode() ? 1 : dims.back());
    }
    SmallVector<Value> parts = gather(between, op.getTensors(), dims);
    if (isByNode())
      for (auto [part, dim] : llvm::zip_equal(parts, dims)) {
        Around around(typeOf(part).getShape(), dim);
        part = view(part,
                    {around.before * groups.nodes, around.extent / groups.nodes * around.behind});
      }
    SmallVector<Value> results = gather(within, parts, inner);
    for (unsigned i = 0; i != results.size(); ++i)
      results[i] = view(results[i], op.getResultTensorType(i).getShape());
    return results;
  }

  bool isByNode() const { return groups.order == NodeGroups::Order::ByNode; }

  CollectiveOpInterface op;
  const NodeGroups &groups;
  OpBuilder builder;
  Emitter emit;
  GroupAttrInterface within, between;
};

} // namespace

void shardc::splitCollective(CollectiveOpInterface op, const NodeGroups &groups) {
  NodeSplitter(op, groups).run();
}
