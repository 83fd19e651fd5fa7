// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives and their waits, on dense buffers.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/InPlace.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::memory {
namespace {

/// Lists of numbers of which some are only known at run time.
struct NumberLists {
  SmallVector<Attribute> extents, gather, scatter;
  SmallVector<Value> dynamic;
};

struct CollectiveLowering {
  HostProgram &program;
  dist::CollectiveOpInterface op;
  IndexMath math;

  CollectiveLowering(HostProgram &program, dist::CollectiveOpInterface op)
      : program(program), op(op), math(program.math(op.getLoc())) {}

  DenseI64ArrayAttr list(ArrayRef<Size> sizes, NumberLists &lists) {
    SmallVector<int64_t> values;
    for (Size size : sizes) {
      values.push_back(staticSize(size));
      if (!getConstantIntValue(size))
        lists.dynamic.push_back(cast<Value>(size));
    }
    return program.builder.getDenseI64ArrayAttr(values);
  }

  Sizes mixed(ArrayRef<int64_t> fixed, ValueRange dynamic) {
    Sizes sizes;
    for (int64_t size : fixed) {
      if (!ShapedType::isDynamic(size)) {
        sizes.push_back(math.constant(size));
        continue;
      }
      sizes.push_back(Size(program.scalars.lookup(dynamic.front())));
      dynamic = dynamic.drop_front();
    }
    return sizes;
  }

  /// Sum of a list, or the chunked dim's full extent.
  Size fullExtent(const Sizes &table, Value full, Size otherwise) {
    if (!table.empty()) {
      Size total = math.constant(0);
      for (Size size : table)
        total = math.add(total, size);
      return total;
    }
    return full ? Size(program.scalars.lookup(full)) : otherwise;
  }

  /// This rank's position in its group.
  Value position() {
    OpBuilder detached(op.getContext());
    OwningOpRef<dist::AxisIndexOp> index =
        dist::AxisIndexOp::create(detached, op.getLoc(), op.getGroup());
    Value value = program.indices.clone(program.builder, *index, {});
    program.indices.noteNonNegative(value);
    return value;
  }

  /// What this rank gets of a dim of `full` elements that is cut: the static extent, its entry of a
  /// table, or the rule of chunks (L3) at its position.
  Size resultExtent(int64_t known, const Sizes &table, Size full) {
    if (!ShapedType::isDynamic(known))
      return math.constant(known);
    Value at = position();
    if (table.empty()) {
      Size chunk = math.ceilDiv(full, op.getGroup().getGroupSize());
      Size rest = math.sub(full, math.mul(at, chunk));
      return math.max(math.constant(0), math.min(chunk, rest));
    }
    Value extent = math.value(table.front());
    for (size_t i = 1; i < table.size(); ++i) {
      Value here = arith::CmpIOp::create(program.builder, op.getLoc(), arith::CmpIPredicate::eq, at,
                                         math.constantValue(static_cast<int64_t>(i)));
      extent =
          arith::SelectOp::create(program.builder, op.getLoc(), here, math.value(table[i]), extent);
    }
    program.indices.noteNonNegative(extent);
    return extent;
  }

  LogicalResult run() {
    NumberLists lists;
    SmallVector<StridedView> inputs;
    SmallVector<Sizes> results;
    SmallVector<int64_t> gatherDims, scatterDims;
    CollectiveKind kind = op.getCollectiveKind();
    SmallVector<dist::TensorSizes> given = dist::getTensorSizes(op);
    for (unsigned i = 0; i < op.getTensors().size(); ++i) {
      Value tensor = op.getTensors()[i];
      StridedView input = program.dense(op.getLoc(), program.view(tensor));
      inputs.push_back(input);
      int64_t gather = op.getConcatDim(i), scatter = op.getSplitDim(i);
      Sizes gatherTable = mixed(op.getConcatExtents(i), given[i].concatExtents);
      Sizes scatterTable = mixed(op.getSplitExtents(i), given[i].splitExtents);
      RankedTensorType type = op.getResultTensorType(i);
      Sizes full = input.sizes, result = input.sizes;
      if (gather >= 0 && gather == scatter) {
        // Within one dim, the runtime wants what this rank has, and counts for each pair of ranks.
        result[gather] = fullExtent(gatherTable, Value(), input.sizes[gather]);
      } else if (gather >= 0) {
        Size whole = ShapedType::isDynamic(type.getDimSize(gather))
                         ? input.sizes[gather]
                         : math.constant(type.getDimSize(gather));
        full[gather] = fullExtent(gatherTable, given[i].full, whole);
        result[gather] = full[gather];
      }
      if (scatter >= 0 && scatter != gather)
        result[scatter] =
            resultExtent(type.getDimSize(scatter), scatterTable, input.sizes[scatter]);
      if (kind == CollectiveKind::Permute && gather >= 0 &&
          ShapedType::isDynamic(type.getDimSize(gather)))
        return op.emitOpError("gives a rank an extent that depends on who sends: run "
                              "dist-specialize before lowering");
      for (auto [size, known] : llvm::zip_equal(result, type.getShape()))
        if (!ShapedType::isDynamic(known))
          size = math.constant(known);
      results.push_back(result);
      gatherDims.push_back(gather);
      scatterDims.push_back(scatter);
      lists.extents.push_back(list(full, lists));
      lists.gather.push_back(list(gatherTable, lists));
      lists.scatter.push_back(list(scatterTable, lists));
    }
    SmallVector<Value> from, to;
    for (const StridedView &input : inputs)
      from.push_back(toMemref(math, input));
    bool inPlace = worksIn(inputs);
    for (auto [i, sizes] : llvm::enumerate(results)) {
      StridedView output =
          inPlace ? inputs[i] : destination(op->getResult(i), op.getResultTensorType(i), sizes);
      to.push_back(inPlace ? from[i] : toMemref(math, output));
      program.views[op->getResult(i)] = output;
    }
    return create(lists, from, to, gatherDims, scatterDims);
  }

  /// The output that a result is, or null.
  Value wantedOutput(Value result) {
    auto wish = program.wishes.find(result);
    if (wish == program.wishes.end() || wish->second.output < 0)
      return {};
    return program.outputs[wish->second.output];
  }

  /// Whether the results are to be where the operands are: each in a buffer of the program, or in
  /// the output that it is wanted in.
  bool worksIn(ArrayRef<StridedView> inputs) {
    return dist::worksInPlace(op) && llvm::all_of(llvm::enumerate(inputs), [&](auto input) {
             if (Value output = wantedOutput(op->getResult(input.index())))
               return input.value().base == output;
             return input.value().base.template getDefiningOp<exec::AllocOp>() != nullptr;
           });
  }

  StridedView destination(Value result, RankedTensorType type, const Sizes &sizes) {
    if (Value output = wantedOutput(result))
      return denseView(math, output, sizes);
    return program.allocate(op.getLoc(), type.getElementType(), sizes);
  }

  LogicalResult create(const NumberLists &lists, ArrayRef<Value> inputs, ArrayRef<Value> outputs,
                       ArrayRef<int64_t> gatherDims, ArrayRef<int64_t> scatterDims) {
    OpBuilder &b = program.builder;
    dist::ReductionAttr reduction;
    if (std::optional<Reduction> value = op.getReductionOrNone())
      reduction = dist::ReductionAttr::get(b.getContext(), *value);
    int64_t root = 0;
    if (auto broadcast = dyn_cast<dist::BroadcastOp>(op.getOperation()))
      root = broadcast.getRoot();
    ArrayRef<int64_t> pairs;
    if (auto permute = dyn_cast<dist::PermuteOp>(op.getOperation()))
      pairs = permute.getPairs();
    SmallVector<Type> elements;
    for (Value tensor : op.getTensors())
      elements.push_back(aten::elementTypeOf(tensor));
    auto make = [&]<typename Op>(Op *, auto... result) {
      auto made = Op::create(b, op.getLoc(), result...,
                             exec::CollectiveKindAttr::get(b.getContext(), op.getCollectiveKind()),
                             reduction, op.getGroup(), inputs, outputs, lists.dynamic,
                             b.getTypeArrayAttr(elements), b.getDenseI64ArrayAttr(gatherDims),
                             b.getDenseI64ArrayAttr(scatterDims), b.getArrayAttr(lists.extents),
                             b.getArrayAttr(lists.gather), b.getArrayAttr(lists.scatter),
                             b.getI64IntegerAttr(root), b.getDenseI64ArrayAttr(pairs));
      if (Attribute ordinal = op->getAttr(dist::kOrdinalAttr))
        made->setAttr(dist::kOrdinalAttr, ordinal);
      return made;
    };
    if (!op.isAsync()) {
      make(static_cast<exec::CollectiveOp *>(nullptr));
      return success();
    }
    auto start = make(static_cast<exec::StartOp *>(nullptr), exec::TokenType::get(b.getContext()));
    for (Value future : op->getResults())
      program.tokens[future] = start.getToken();
    return success();
  }
};

} // namespace

LogicalResult lowerCollective(HostProgram &program, Operation *op) {
  if (auto wait = dyn_cast<dist::WaitOp>(op)) {
    llvm::SetVector<Value> tokens;
    for (auto [future, result] : llvm::zip_equal(wait.getFutures(), wait.getResults())) {
      Value token = program.tokens.lookup(future);
      if (!token)
        return op->emitOpError("waits for a future that no collective here starts");
      tokens.insert(token);
      program.views[result] = program.view(future);
    }
    for (Value token : tokens)
      if (program.waited.insert(token).second)
        exec::WaitOp::create(program.builder, op->getLoc(), token);
    return success();
  }
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if (!collective)
    return op->emitOpError("cannot be lowered: it belongs to an earlier stage");
  return CollectiveLowering(program, collective).run();
}

} // namespace shardc::memory
