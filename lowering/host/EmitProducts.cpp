// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: the calls of the runtime's, one or, where rows name their matrices, one for each
// run of rows that name the same.

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/GroupedOps.h"
#include "lowering/host/EmitPattern.h"
#include "lowering/host/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

OpFoldResult largest(OpBuilder &b, Location loc, OpFoldResult x, OpFoldResult y) {
  std::optional<int64_t> first = getConstantIntValue(x), second = getConstantIntValue(y);
  if (first && second)
    return b.getI64IntegerAttr(std::max(*first, *second));
  return LLVM::SMaxOp::create(b, loc, valueOf(b, loc, x), valueOf(b, loc, y)).getResult();
}

/// The fields of a shardrt_gemm behind its pointers. What is known now is constant data, the same
/// for all products that are alike; the run copies it and stores the rest.
class GemmFields {
public:
  /// In the order of the struct.
  void add(size_t offset, OpFoldResult value, TypedAttr whereUnknown) {
    auto known = dyn_cast<Attribute>(value);
    fields.push_back(known ? cast<TypedAttr>(known) : whereUnknown);
    if (!known)
      unknown.push_back({offset, cast<Value>(value)});
  }
  void write(OpBuilder &b, Location loc, GlobalPool &pool, Value gemm) const {
    constexpr size_t begin = offsetof(shardrt_gemm, m);
    static_assert(offsetof(shardrt_gemm, reserved) + 1 == sizeof(shardrt_gemm), "has no gaps");
    Value source = pool.record(b, loc, "gemm_", fields);
    Value at = LLVM::GEPOp::create(b, loc, gemm.getType(), b.getI8Type(), gemm,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(begin)});
    LLVM::MemcpyInlineOp::create(b, loc, at, source,
                                 b.getI64IntegerAttr(sizeof(shardrt_gemm) - begin),
                                 /*isVolatile=*/false);
    for (auto [offset, value] : unknown)
      abi::storeField(b, loc, value, gemm, offset);
  }

private:
  SmallVector<TypedAttr> fields;
  SmallVector<std::pair<size_t, Value>> unknown;
};

/// A matrix, the last two dims of a buffer, as BLAS takes it.
struct Matrix {
  OpFoldResult leading; ///< elements from row to row as it is stored
  bool transposed;

  /// The stride of a dim of one element says nothing, and BLAS wants a leading dimension of at
  /// least 1 even of nothing.
  static Matrix of(OpBuilder &b, Location loc, const BufferShape &shape) {
    size_t row = shape.sizes.size() - 2, column = row + 1;
    auto contiguous = [&](size_t outer, size_t inner) {
      int64_t extent = shape.sizes[inner], step = shape.strides[outer];
      auto isOne = [](int64_t size) { return !ShapedType::isDynamic(size) && size <= 1; };
      if (shape.strides[inner] != 1 && !isOne(extent))
        return false;
      return isOne(shape.sizes[outer]) || ShapedType::isDynamic(step) ||
             ShapedType::isDynamic(extent) || step >= extent;
    };
    bool transposed = !contiguous(row, column) && contiguous(column, row);
    size_t outer = transposed ? column : row, inner = transposed ? row : column;
    OpFoldResult least = largest(b, loc, shape.size(b, inner), b.getI64IntegerAttr(1));
    return {largest(b, loc, shape.stride(b, outer), least), transposed};
  }
  /// Elements from one to the next of the rows, or of the columns.
  OpFoldResult step(OpBuilder &b, bool ofColumns) const {
    return ofColumns == transposed ? leading : OpFoldResult(b.getI64IntegerAttr(1));
  }
};

/// The numbers of a shardrt_gemm that do not follow from how its matrices lie.
struct GemmNumbers {
  OpFoldResult m, n, k, batch, strideA, strideB, strideC;
  double alpha = 1, beta = 0;
};

int32_t typeOf(Type element) { return isa<FloatType>(element) ? exec::runtimeType(element) : 0; }

/// A shardrt_gemm without its pointers on the stack.
Value describe(const Emission &emission, OpBuilder &b, Operation *op, int32_t type,
               const Matrix &lhs, const Matrix &rhs, const Matrix &out,
               const GemmNumbers &numbers) {
  Location loc = op->getLoc();
  Value gemm = emission.parts.argument(b, op, sizeof(shardrt_gemm));
  GemmFields fields;
  TypedAttr zero = b.getI64IntegerAttr(0);
  auto number = [&](size_t field, OpFoldResult value) { fields.add(field, value, zero); };
  number(offsetof(shardrt_gemm, m), numbers.m);
  number(offsetof(shardrt_gemm, n), numbers.n);
  number(offsetof(shardrt_gemm, k), numbers.k);
  number(offsetof(shardrt_gemm, lda), lhs.leading);
  number(offsetof(shardrt_gemm, ldb), rhs.leading);
  number(offsetof(shardrt_gemm, ldc), out.leading);
  number(offsetof(shardrt_gemm, batch), numbers.batch);
  number(offsetof(shardrt_gemm, stride_a), numbers.strideA);
  number(offsetof(shardrt_gemm, stride_b), numbers.strideB);
  number(offsetof(shardrt_gemm, stride_c), numbers.strideC);
  auto constant = [&](size_t field, TypedAttr value) { fields.add(field, value, value); };
  constant(offsetof(shardrt_gemm, alpha), b.getF64FloatAttr(numbers.alpha));
  constant(offsetof(shardrt_gemm, beta), b.getF64FloatAttr(numbers.beta));
  constant(offsetof(shardrt_gemm, type), b.getI32IntegerAttr(type));
  constant(offsetof(shardrt_gemm, transpose_a), b.getI8IntegerAttr(lhs.transposed));
  constant(offsetof(shardrt_gemm, transpose_b), b.getI8IntegerAttr(rhs.transposed));
  constant(offsetof(shardrt_gemm, bias_along_m), b.getI8IntegerAttr(0));
  constant(offsetof(shardrt_gemm, reserved), b.getI8IntegerAttr(0));
  fields.write(b, loc, emission.pool, gemm);
  return gemm;
}

struct LowerGemm : EmitPattern<exec::GemmOp> {
  using EmitPattern::EmitPattern;

  LogicalResult matchAndRewrite(exec::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    FailureOr<BufferShape> a = BufferShape::of(op.getA(), b), other = BufferShape::of(op.getB(), b),
                           c = BufferShape::of(op.getC(), b);
    if (failed(a) || failed(other) || failed(c))
      return b.notifyMatchFailure(op, "has an operand of unknown shape");
    int32_t type = typeOf(op.getC().getType().getElementType());
    if (type == 0)
      return b.notifyMatchFailure(op, "is of a type that the runtime does not multiply");
    size_t rank = c->sizes.size();
    Matrix lhs = Matrix::of(b, loc, *a), rhs = Matrix::of(b, loc, *other),
           out = Matrix::of(b, loc, *c);
    if (out.transposed)
      return b.notifyMatchFailure(op, "has a transposed result");
    emission.mark(b, op);
    bool batched = rank == 3;
    auto batchStride = [&](const BufferShape &shape) {
      return batched ? shape.stride(b, 0) : OpFoldResult(b.getI64IntegerAttr(0));
    };
    Value gemm = describe(emission, b, op, type, lhs, rhs, out,
                          {c->size(b, rank - 2), c->size(b, rank - 1), a->size(b, rank - 1),
                           batched ? c->size(b, 0) : b.getI64IntegerAttr(1), batchStride(*a),
                           batchStride(*other), batchStride(*c), op.getAlpha().convertToDouble(),
                           op.getBeta().convertToDouble()});
    auto set = [&](size_t field, Value value) { abi::storeField(b, loc, value, gemm, field); };
    set(offsetof(shardrt_gemm, a), adaptor.getA());
    set(offsetof(shardrt_gemm, b), adaptor.getB());
    set(offsetof(shardrt_gemm, c), adaptor.getC());
    Value bias = adaptor.getBias();
    set(offsetof(shardrt_gemm, bias),
        bias ? bias : LLVM::ZeroOp::create(b, loc, pointerType(getContext())));
    emission.returnIfFailed(b, op, abi::callGemm(b, loc, emission.frame(op), gemm));
    b.eraseOp(op);
    return success();
  }
};

/// A function that all grouped products of a program call: for each run of rows with one index it
/// completes a shardrt_gemm and calls the runtime's product.
///
///   int32_t multiply(service, runtime, gemm, index, step of index, rows, groups,
///                    bytes from row to row of a, b and c, bytes from group to group of b and c,
///                    whether outer products are summed)
///
/// `gemm` has the addresses of what comes first, and numbers of one product, of which the number of
/// rows is not used.
class RunsFunction {
public:
  static constexpr StringLiteral name = "shardc_multiply_runs";

  static LLVM::LLVMFuncOp get(OpBuilder &builder, Operation *user) {
    auto module = user->getParentOfType<ModuleOp>();
    if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
      return known;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    return RunsFunction(builder, module.getLoc()).build();
  }

private:
  RunsFunction(OpBuilder &b, Location loc)
      : b(b), loc(loc), pointer(pointerType(b.getContext())), i64(b.getI64Type()) {}

  LLVM::LLVMFuncOp build() {
    SmallVector<Type> types(4, pointer);
    types.append(8, i64);
    types.push_back(b.getI1Type());
    auto type = LLVM::LLVMFunctionType::get(b.getI32Type(), types);
    function = LLVM::LLVMFuncOp::create(b, loc, name, type, LLVM::Linkage::Internal);
    Block *entry = function.addEntryBlock(b);
    Block *clear = block(), *prepared = block(), *head = block({i64}), *scan = block({i64}),
          *more = block(), *run = block(), *outside = block(), *multiply = block({i64}),
          *done = block(), *failed = block({b.getI32Type()});
    b.setInsertionPointToEnd(entry);
    Value rows = arg(5), groups = arg(6), sums = arg(12);
    Value zero = constantInt(b, loc, 0), one = constantInt(b, loc, 1);
    Value first[3], wholeK = load(i64, offsetof(shardrt_gemm, k));
    for (auto [at, field] : llvm::zip(first, kMatrices))
      at = load(pointer, field);
    branchIf(sums, clear, {}, prepared, {});

    // No index may name a matrix of sums: all are zero first, by products of nothing.
    b.setInsertionPointToEnd(clear);
    store(zero, offsetof(shardrt_gemm, k));
    store(groups, offsetof(shardrt_gemm, batch));
    Value cleared = call();
    store(one, offsetof(shardrt_gemm, batch));
    store(LLVM::ConstantOp::create(b, loc, b.getF64FloatAttr(1)), offsetof(shardrt_gemm, beta));
    branchIf(isNot(cleared), failed, {cleared}, prepared, {});

    b.setInsertionPointToEnd(prepared);
    LLVM::BrOp::create(b, loc, ValueRange{zero}, head);

    b.setInsertionPointToEnd(head);
    Value begin = head->getArgument(0);
    Value next = LLVM::AddOp::create(b, loc, begin, one);
    branchIf(less(begin, rows), scan, {next}, done, {});

    // The end of the run.
    b.setInsertionPointToEnd(scan);
    Value end = scan->getArgument(0), group = indexAt(begin);
    branchIf(less(end, rows), more, {}, run, {});
    b.setInsertionPointToEnd(more);
    Value isSame = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, indexAt(end), group);
    branchIf(isSame, scan, {LLVM::AddOp::create(b, loc, end, one)}, run, {});

    b.setInsertionPointToEnd(run);
    Value isInside = less(group, groups); // unsigned: nor is it negative
    branchIf(isInside, multiply, {wholeK}, outside, {});
    // Zero, by a product of nothing; sums pass such rows over.
    b.setInsertionPointToEnd(outside);
    branchIf(sums, head, {end}, multiply, {zero});

    b.setInsertionPointToEnd(multiply);
    Value count = LLVM::SubOp::create(b, loc, end, begin);
    Value matrix = LLVM::SelectOp::create(b, loc, isInside, group, zero);
    Value steps[3] = {mul(begin, arg(7)), add(mul(begin, arg(8)), mul(matrix, arg(10))),
                      add(mul(begin, arg(9)), mul(matrix, arg(11)))};
    for (auto [at, step, field] : llvm::zip(first, steps, kMatrices))
      store(LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), at, ArrayRef<LLVM::GEPArg>{step}),
            field);
    Value m = load(i64, offsetof(shardrt_gemm, m));
    store(LLVM::SelectOp::create(b, loc, sums, m, count), offsetof(shardrt_gemm, m));
    store(LLVM::SelectOp::create(b, loc, sums, count, multiply->getArgument(0)),
          offsetof(shardrt_gemm, k));
    Value status = call();
    branchIf(isNot(status), failed, {status}, head, {end});

    b.setInsertionPointToEnd(done);
    LLVM::ReturnOp::create(b, loc, constantInt(b, loc, 0, 32));
    b.setInsertionPointToEnd(failed);
    LLVM::ReturnOp::create(b, loc, failed->getArgument(0));
    return function;
  }

  static constexpr size_t kMatrices[] = {offsetof(shardrt_gemm, a), offsetof(shardrt_gemm, b),
                                         offsetof(shardrt_gemm, c)};

  Value arg(unsigned number) { return function.getArgument(number); }
  Block *block(ArrayRef<Type> types = {}) {
    OpBuilder::InsertionGuard guard(b);
    return b.createBlock(&function.getBody(), function.getBody().end(), types,
                         SmallVector<Location>(types.size(), loc));
  }
  Value load(Type type, size_t field) { return abi::loadField(b, loc, type, arg(2), field); }
  void store(Value value, size_t field) { abi::storeField(b, loc, value, arg(2), field); }
  Value add(Value x, Value y) { return LLVM::AddOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return LLVM::MulOp::create(b, loc, x, y); }
  Value less(Value x, Value y) {
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, x, y);
  }
  Value isNot(Value status) {
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, status,
                                constantInt(b, loc, 0, 32));
  }
  Value indexAt(Value row) {
    Value at =
        LLVM::GEPOp::create(b, loc, pointer, i64, arg(3), ArrayRef<LLVM::GEPArg>{mul(row, arg(4))});
    return LLVM::LoadOp::create(b, loc, i64, at);
  }
  Value call() {
    auto type = LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer, pointer});
    return LLVM::CallOp::create(b, loc, type, ValueRange{arg(0), arg(1), arg(2)}).getResult();
  }
  void branchIf(Value condition, Block *yes, ValueRange with, Block *no, ValueRange otherwise) {
    LLVM::CondBrOp::create(b, loc, condition, yes, with, no, otherwise);
  }

  OpBuilder &b;
  Location loc;
  Type pointer, i64;
  LLVM::LLVMFuncOp function;
};

struct LowerGroupedGemm : EmitPattern<exec::GroupedGemmOp> {
  using EmitPattern::EmitPattern;

  LogicalResult matchAndRewrite(exec::GroupedGemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    FailureOr<BufferShape> a = BufferShape::of(op.getA(), b), other = BufferShape::of(op.getB(), b),
                           c = BufferShape::of(op.getC(), b),
                           index = BufferShape::of(op.getIndex(), b);
    if (failed(a) || failed(other) || failed(c) || failed(index))
      return b.notifyMatchFailure(op, "has an operand of unknown shape");
    Type element = op.getC().getType().getElementType();
    int32_t type = typeOf(element);
    if (type == 0)
      return b.notifyMatchFailure(op, "is of a type that the runtime does not multiply");
    bool sums = op.sumsOuterProducts();
    Matrix lhs = Matrix::of(b, loc, *a), rhs = Matrix::of(b, loc, *other),
           out = Matrix::of(b, loc, *c);
    if (out.transposed)
      return b.notifyMatchFailure(op, "has a transposed result");
    emission.mark(b, op);
    const BufferShape &matrices = sums ? *c : *other;
    OpFoldResult zero = b.getI64IntegerAttr(0), group = matrices.stride(b, 0);
    Value gemm = describe(emission, b, op, type, lhs, rhs, out,
                          {sums ? c->size(b, 1) : zero, c->size(b, sums ? 2 : 1),
                           sums ? zero : a->size(b, 1), b.getI64IntegerAttr(1), zero, zero,
                           sums ? group : zero});
    auto set = [&](size_t field, Value value) { abi::storeField(b, loc, value, gemm, field); };
    set(offsetof(shardrt_gemm, a), adaptor.getA());
    set(offsetof(shardrt_gemm, b), adaptor.getB());
    set(offsetof(shardrt_gemm, c), adaptor.getC());
    set(offsetof(shardrt_gemm, bias), LLVM::ZeroOp::create(b, loc, pointerType(getContext())));
    Value bytes = constantInt(b, loc, element.getIntOrFloatBitWidth() / 8);
    auto inBytes = [&](OpFoldResult elements) -> Value {
      return LLVM::MulOp::create(b, loc, valueOf(b, loc, elements), bytes);
    };
    auto number = [&](OpFoldResult value) { return valueOf(b, loc, value); };
    FunctionFrame frame = emission.frame(op);
    Type pointer = pointerType(getContext());
    // Rows are those of A and C, or the columns of A and the rows of B.
    SmallVector<Value> arguments = {frame.service(b, loc, offsetof(shardrt_services, gemm)),
                                    frame.field(b, loc, pointer, offsetof(shardrt_frame, runtime)),
                                    gemm,
                                    adaptor.getIndex(),
                                    number(index->stride(b, 0)),
                                    number(index->size(b, 0)),
                                    number(matrices.size(b, 0)),
                                    inBytes(lhs.step(b, /*ofColumns=*/sums)),
                                    inBytes(sums ? rhs.step(b, false) : zero),
                                    inBytes(sums ? zero : out.step(b, false)),
                                    inBytes(sums ? zero : group),
                                    inBytes(sums ? group : zero),
                                    LLVM::ConstantOp::create(b, loc, b.getBoolAttr(sums))};
    LLVM::LLVMFuncOp function = RunsFunction::get(b, op);
    emission.returnIfFailed(b, op, LLVM::CallOp::create(b, loc, function, arguments).getResult());
    b.eraseOp(op);
    return success();
  }
};

} // namespace

void populateProductPatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerGemm, LowerGroupedGemm>(emission);
}

} // namespace shardc::host
