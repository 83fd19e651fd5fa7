// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries: memory, kernel launches and matrix products.

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Exec.h"
#include "lowering/host/Emission.h"
#include "lowering/host/RuntimeAbi.h"

#include "runtime/abi/shardrt_program.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

Type pointerType(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

Value offsetPointer(OpBuilder &b, Location loc, Type element, Value base, Value offset) {
  return LLVM::GEPOp::create(b, loc, pointerType(b.getContext()), element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

template <typename Op> struct Pattern : ConvertOpToLLVMPattern<Op> {
  explicit Pattern(const Emission &emission)
      : ConvertOpToLLVMPattern<Op>(emission.converter), emission(emission) {}

  Emission emission;
};

struct LowerArgument : Pattern<exec::ArgumentOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(exec::ArgumentOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    size_t field = 0;
    switch (op.getKind()) {
    case exec::ArgumentKind::Input:
      field = offsetof(shardrt_frame, inputs);
      break;
    case exec::ArgumentKind::Parameter:
      field = offsetof(shardrt_frame, parameters);
      break;
    case exec::ArgumentKind::Output:
      field = offsetof(shardrt_frame, outputs);
      break;
    }
    Type pointer = pointerType(getContext());
    Value list = emission.frame(op).field(b, op.getLoc(), pointer, field);
    b.replaceOp(op, abi::loadField(b, op.getLoc(), pointer, list, op.getIndex() * sizeof(void *)));
    return success();
  }
};

struct LowerAlloc : Pattern<exec::AllocOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(exec::AllocOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value offset;
    if (op.getOffset()) {
      offset = constantInt(b, loc, *op.getOffset());
    } else if (op.getSlot()) {
      Value offsets = emission.frame(op).field(b, loc, pointerType(getContext()),
                                               offsetof(shardrt_frame, offsets));
      offset = abi::loadField(b, loc, b.getI64Type(), offsets, *op.getSlot() * sizeof(int64_t));
    } else {
      return b.notifyMatchFailure(op, "has no place in the arena");
    }
    Value arena =
        emission.frame(op).field(b, loc, pointerType(getContext()), offsetof(shardrt_frame, arena));
    b.replaceOp(op, offsetPointer(b, loc, b.getI8Type(), arena, offset));
    return success();
  }
};

struct LowerReinterpretCast : Pattern<memref::ReinterpretCastOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::ReinterpretCastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value pointer = adaptor.getSource();
    int64_t known = op.getStaticOffsets().front();
    if (known == 0) {
      b.replaceOp(op, pointer);
      return success();
    }
    Value offset = ShapedType::isDynamic(known) ? adaptor.getOffsets().front()
                                                : constantInt(b, op.getLoc(), known);
    Type element = getTypeConverter()->convertType(op.getType().getElementType());
    b.replaceOp(op, offsetPointer(b, op.getLoc(), element, pointer, offset));
    return success();
  }
};

struct LowerGlobal : Pattern<memref::GlobalOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::GlobalOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(op.getInitialValueAttr());
    if (!elements)
      return b.notifyMatchFailure(op, "has no value");
    Type element = elements.getElementType();
    int64_t count = elements.getNumElements();
    auto type = LLVM::LLVMArrayType::get(element, count);
    Attribute flat = elements.reshape(RankedTensorType::get({count}, element));
    b.replaceOpWithNewOp<LLVM::GlobalOp>(op, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                         op.getSymName(), count ? flat : Attribute(),
                                         emission.alignment);
    return success();
  }
};

struct LowerGetGlobal : Pattern<memref::GetGlobalOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::GetGlobalOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<LLVM::AddressOfOp>(op, pointerType(getContext()), op.getName());
    return success();
  }
};

Value valueOf(OpBuilder &b, Location loc, OpFoldResult number) {
  if (auto value = dyn_cast<Value>(number))
    return value;
  return constantInt(b, loc, *getConstantIntValue(number));
}

OpFoldResult largest(OpBuilder &b, Location loc, OpFoldResult x, OpFoldResult y) {
  std::optional<int64_t> first = getConstantIntValue(x), second = getConstantIntValue(y);
  if (first && second)
    return b.getI64IntegerAttr(std::max(*first, *second));
  return LLVM::SMaxOp::create(b, loc, valueOf(b, loc, x), valueOf(b, loc, y)).getResult();
}

/// Sizes and strides of a memref that its type leaves open, as converted values.
struct Shape {
  SmallVector<int64_t> sizes, strides;
  SmallVector<Value> dynamicSizes, dynamicStrides;

  static FailureOr<Shape> of(Value memref, ConversionPatternRewriter &b) {
    Shape shape;
    auto type = cast<MemRefType>(memref.getType());
    int64_t offset;
    if (failed(type.getStridesAndOffset(shape.strides, offset)))
      return failure();
    shape.sizes = llvm::to_vector(type.getShape());
    Operation *definition = memref.getDefiningOp();
    auto take = [&](ValueRange values, SmallVector<Value> &to) {
      for (Value value : values)
        to.push_back(b.getRemappedValue(value));
    };
    if (auto view = dyn_cast_or_null<memref::ReinterpretCastOp>(definition)) {
      take(view.getSizes(), shape.dynamicSizes);
      take(view.getStrides(), shape.dynamicStrides);
    } else if (auto alloc = dyn_cast_or_null<exec::AllocOp>(definition)) {
      take(alloc.getSizes(), shape.dynamicSizes);
      shape.fillDenseStrides(b, memref.getLoc());
    } else if (type.hasStaticShape()) {
      // Of a type without elements, MLIR calls strides dynamic that are products of its sizes.
      shape.fillDenseStrides(b, memref.getLoc());
    }
    if (shape.dynamicSizes.size() != static_cast<size_t>(type.getNumDynamicDims()) ||
        static_cast<int64_t>(shape.dynamicStrides.size()) !=
            llvm::count_if(shape.strides, ShapedType::isDynamic))
      return failure();
    return shape;
  }

  OpFoldResult size(OpBuilder &b, unsigned dim) const { return pick(b, sizes, dynamicSizes, dim); }
  OpFoldResult stride(OpBuilder &b, unsigned dim) const {
    return pick(b, strides, dynamicStrides, dim);
  }

private:
  static OpFoldResult pick(OpBuilder &b, ArrayRef<int64_t> known, ArrayRef<Value> dynamic,
                           unsigned dim) {
    if (!ShapedType::isDynamic(known[dim]))
      return b.getI64IntegerAttr(known[dim]);
    return dynamic[llvm::count_if(known.take_front(dim), ShapedType::isDynamic)];
  }
  void fillDenseStrides(OpBuilder &b, Location loc) {
    SmallVector<Value> values(sizes.size());
    Value stride = constantInt(b, loc, 1);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      values[dim] = stride;
      stride = LLVM::MulOp::create(b, loc, stride, valueOf(b, loc, size(b, dim)));
    }
    for (auto [known, value] : llvm::zip_equal(strides, values))
      if (ShapedType::isDynamic(known))
        dynamicStrides.push_back(value);
  }
};

struct LowerLaunch : Pattern<exec::LaunchOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(exec::LaunchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    emission.mark(b, op);
    Value location = emission.pool.string(b, loc, describePlace(loc));
    SmallVector<target::LaunchArgument> arguments;
    for (auto [original, value] : llvm::zip_equal(op.getArgs(), adaptor.getArgs())) {
      target::LaunchArgument &argument = arguments.emplace_back();
      argument.value = value;
      if (!isa<MemRefType>(original.getType()))
        continue;
      FailureOr<Shape> shape = Shape::of(original, b);
      if (failed(shape))
        return b.notifyMatchFailure(op, "has an operand of unknown shape");
      argument.sizes = std::move(shape->dynamicSizes);
      argument.strides = std::move(shape->dynamicStrides);
    }
    if (failed(emission.launches->emit({op, frameOf(op), location, arguments}, b)))
      return failure();
    b.eraseOp(op);
    return success();
  }
};

struct LowerCommit : Pattern<exec::CommitOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(exec::CommitOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    emission.returnIfFailed(b, op, abi::callCommit(b, op.getLoc(), emission.frame(op)));
    b.eraseOp(op);
    return success();
  }
};

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

struct LowerGemm : Pattern<exec::GemmOp> {
  using Pattern::Pattern;

  /// Leading dimension of a matrix, and whether it is stored transposed. The stride of a dim of one
  /// element says nothing, and BLAS wants a leading dimension of at least 1 even of nothing.
  static std::pair<OpFoldResult, bool> leading(OpBuilder &b, Location loc, const Shape &shape) {
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

  LogicalResult matchAndRewrite(exec::GemmOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    FailureOr<Shape> a = Shape::of(op.getA(), b), other = Shape::of(op.getB(), b),
                     c = Shape::of(op.getC(), b);
    if (failed(a) || failed(other) || failed(c))
      return b.notifyMatchFailure(op, "has an operand of unknown shape");
    Type element = op.getC().getType().getElementType();
    int32_t type = isa<FloatType>(element) ? exec::runtimeType(element) : 0;
    if (type == 0)
      return b.notifyMatchFailure(op, "is of a type that the runtime does not multiply");
    size_t rank = c->sizes.size();
    auto [lda, transposeA] = leading(b, loc, *a);
    auto [ldb, transposeB] = leading(b, loc, *other);
    auto [ldc, transposeC] = leading(b, loc, *c);
    if (transposeC)
      return b.notifyMatchFailure(op, "has a transposed result");
    emission.mark(b, op);
    Value gemm = emission.parts.argument(b, op, sizeof(shardrt_gemm));
    auto set = [&](size_t field, Value value) { abi::storeField(b, loc, value, gemm, field); };
    set(offsetof(shardrt_gemm, a), adaptor.getA());
    set(offsetof(shardrt_gemm, b), adaptor.getB());
    set(offsetof(shardrt_gemm, c), adaptor.getC());
    Value bias = adaptor.getBias();
    set(offsetof(shardrt_gemm, bias),
        bias ? bias : LLVM::ZeroOp::create(b, loc, pointerType(getContext())));
    GemmFields fields;
    TypedAttr zero = b.getI64IntegerAttr(0);
    auto number = [&](size_t field, OpFoldResult value) { fields.add(field, value, zero); };
    bool batched = rank == 3;
    auto batchStride = [&](const Shape &shape) {
      return batched ? shape.stride(b, 0) : OpFoldResult(zero);
    };
    number(offsetof(shardrt_gemm, m), c->size(b, rank - 2));
    number(offsetof(shardrt_gemm, n), c->size(b, rank - 1));
    number(offsetof(shardrt_gemm, k), a->size(b, rank - 1));
    number(offsetof(shardrt_gemm, lda), lda);
    number(offsetof(shardrt_gemm, ldb), ldb);
    number(offsetof(shardrt_gemm, ldc), ldc);
    number(offsetof(shardrt_gemm, batch), batched ? c->size(b, 0) : b.getI64IntegerAttr(1));
    number(offsetof(shardrt_gemm, stride_a), batchStride(*a));
    number(offsetof(shardrt_gemm, stride_b), batchStride(*other));
    number(offsetof(shardrt_gemm, stride_c), batchStride(*c));
    auto constant = [&](size_t field, TypedAttr value) { fields.add(field, value, value); };
    constant(offsetof(shardrt_gemm, alpha), b.getF64FloatAttr(op.getAlpha().convertToDouble()));
    constant(offsetof(shardrt_gemm, beta), b.getF64FloatAttr(op.getBeta().convertToDouble()));
    constant(offsetof(shardrt_gemm, type), b.getI32IntegerAttr(type));
    constant(offsetof(shardrt_gemm, transpose_a), b.getI8IntegerAttr(transposeA));
    constant(offsetof(shardrt_gemm, transpose_b), b.getI8IntegerAttr(transposeB));
    constant(offsetof(shardrt_gemm, bias_along_m), b.getI8IntegerAttr(0));
    constant(offsetof(shardrt_gemm, reserved), b.getI8IntegerAttr(0));
    fields.write(b, loc, emission.pool, gemm);
    emission.returnIfFailed(b, op, abi::callGemm(b, loc, emission.frame(op), gemm));
    b.eraseOp(op);
    return success();
  }
};

} // namespace

void populateHostPatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerArgument, LowerAlloc, LowerReinterpretCast, LowerGlobal, LowerGetGlobal,
               LowerLaunch, LowerGemm, LowerCommit>(emission);
}

} // namespace shardc::host
