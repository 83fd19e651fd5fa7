// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing at computed positions: values and indices as views over one domain. Sorting.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/LookupSizes.h"
#include "dialects/aten/Sorting.h"
#include "dialects/aten/Writing.h"
#include "dialects/exec/Exec.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::memory {
namespace {

struct Scatter {
  HostProgram &program;
  Operation *op;
  IndexMath math;

  Scatter(HostProgram &program, Operation *op)
      : program(program), op(op), math(program.math(op->getLoc())) {}

  // What is written, on a domain of loops.
  Sizes domain;
  StridedView values;               ///< of the domain's sizes
  SmallVector<StridedView> indices; ///< likewise
  SmallVector<int64_t> indexedDims; ///< of the result, one for each index
  SmallVector<int64_t> loopOfDim;   ///< of each dim of the result, -1 where it is indexed
  bool countsFromEnd = false, skips = false;
  StringRef combine = "add";

  /// As exec.scatter calls it, which has integers without a sign.
  static StringRef nameOf(StringRef reduce, Type element) {
    bool isUnsigned = element.isUnsignedInteger();
    return llvm::StringSwitch<StringRef>(reduce)
        .Case("prod", "multiply")
        .Case("amax", isUnsigned ? "umax" : "max")
        .Case("amin", isUnsigned ? "umin" : "min")
        .Default("assign");
  }

  void describe(aten::ScatterOp scatter) {
    combine = nameOf(scatter.getReduce(), aten::elementTypeOf(scatter.getSelf()));
    skips = scatter.getSkips();
    describeAlongDim(scatter);
  }

  void describe(aten::ScatterAddOp scatter) { describeAlongDim(scatter); }

  void describe(aten::IndexWriteOp write) {
    combine = "assign";
    skips = write.getSkips();
    describeIndexed(write);
  }

  void describe(aten::IndexPutOp put) { describeIndexed(put); }

  template <typename Op> void describeAlongDim(Op scatter) {
    StridedView index = program.view(scatter.getIndex());
    domain = index.sizes;
    values = program.view(scatter.getSrc());
    values.sizes = domain; // the others are not used
    indices = {index};
    indexedDims = {static_cast<int64_t>(scatter.getDim())};
    for (int64_t dim = 0, rank = domain.size(); dim < rank; ++dim)
      loopOfDim.push_back(dim == indexedDims.front() ? -1 : dim);
  }

  template <typename Op> void describeIndexed(Op put) {
    ArrayRef<int64_t> at = put.getIndicesAt();
    indexedDims.assign(at.begin(), at.end());
    countsFromEnd = true;
    Sizes common;
    for (Value index : put.getIndices()) {
      Sizes own = program.sizesOf(index);
      while (common.size() < own.size())
        common.insert(common.begin(), math.constant(1));
      for (size_t i = 0; i < own.size(); ++i)
        if (!isConstant(own[i], 1))
          common[common.size() - own.size() + i] = own[i];
    }
    bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
    if (!adjacent)
      domain = common;
    size_t first = adjacent ? at.front() : 0;
    for (auto [i, size] : llvm::enumerate(program.sizesOf(put.getSelf()))) {
      auto dim = static_cast<int64_t>(i);
      if (adjacent && dim == at.front())
        domain.append(common);
      loopOfDim.push_back(llvm::is_contained(at, dim) ? -1 : static_cast<int64_t>(domain.size()));
      if (loopOfDim.back() >= 0)
        domain.push_back(size);
    }
    values = broadcast(math, program.view(put.getValues()), domain);
    for (Value index : put.getIndices()) {
      StridedView view = program.view(index);
      // Dims of the domain behind those of the indices do not count.
      for (size_t i = first + common.size(); i < domain.size(); ++i)
        view = insertDim(math, view, view.rank());
      indices.push_back(broadcast(math, view, domain));
    }
  }

  LogicalResult run() {
    llvm::TypeSwitch<Operation *>(op).Case<aten::ScatterAddOp, aten::IndexPutOp, aten::ScatterOp, aten::IndexWriteOp>(
        [&](auto scatter) { describe(scatter); });
    Value self = op->getOperand(0), result = op->getResult(0);
    StridedView source = program.view(self);
    StridedView target = program.destination(result, source.sizes, /*mustBeDense=*/false);
    program.views[result] = target;
    if (hasNoElements(target.sizes))
      return success();
    if (hasNoElements(domain)) {
      program.copy(op->getLoc(), source, target);
      return success();
    }
    SmallVector<Value> positions;
    for (const StridedView &index : indices)
      positions.push_back(toMemref(math, index));
    OpBuilder &b = program.builder;
    exec::ScatterOp::create(b, op->getLoc(), toMemref(math, source), toMemref(math, values),
                               positions, toMemref(math, target), loopOfDim, countsFromEnd, skips,
                           b.getStringAttr(combine), b.getStringAttr(message()),
                               b.getStringAttr(op->getName().stripDialect()));
    return success();
  }

  /// "index out of range in aten.scatter_add (dim 0 of the table, of size 7)"
  std::string message() {
    auto whole = op->getAttrOfType<DenseI64ArrayAttr>(aten::kLookupSizesAttr);
    std::string text = ("index out of range in " + op->getName().getStringRef() + " (").str();
    for (auto [i, dim] : llvm::enumerate(indexedDims)) {
      int64_t size = whole && i < whole.size() && !ShapedType::isDynamic(whole[i])
                         ? whole[i]
                         : aten::shapeOf(op->getResult(0))[dim];
      text += (i ? ", dim " : "dim ") + std::to_string(dim) + " of the table";
      if (!ShapedType::isDynamic(size))
        text += ", of size " + std::to_string(size);
    }
    return text + ")";
  }
};

} // namespace

/// Values and positions, each in memory of its own.
static LogicalResult lowerSort(HostProgram &program, aten::SortOp op) {
  IndexMath math = program.math(op.getLoc());
  StridedView source = program.view(op.getSelf());
  Sizes sizes = source.sizes;
  if (std::optional<uint64_t> count = op.getCount())
    sizes[op.getDim()] = math.constant(static_cast<int64_t>(*count));
  StridedView results[2];
  for (auto [result, target] : llvm::zip_equal(op.getResults(), results)) {
    target = program.destination(result, sizes, /*mustBeDense=*/false);
    program.views[result] = target;
  }
  if (hasNoElements(sizes))
    return success();
  OpBuilder &b = program.builder;
  exec::SortOp::create(b, op.getLoc(), toMemref(math, source), toMemref(math, results[0]),
                       toMemref(math, results[1]), op.getDim(), op.getDescending(),
                       aten::elementTypeOf(op.getSelf()).isUnsignedInteger(),
                       b.getStringAttr(op.getCount() ? "topk" : "sort"));
  return success();
}

LogicalResult lowerScatter(HostProgram &program, Operation *op) {
  if (auto sort = dyn_cast<aten::SortOp>(op))
    return lowerSort(program, sort);
  return Scatter(program, op).run();
}

} // namespace shardc::memory
