// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries: what a rank knows about itself. Extents without symbols, and positions in groups, are
// tables by rank; extents with symbols are computed.

#include "lowering/host/Emission.h"
#include "lowering/host/RuntimeAbi.h"

#include "dialects/dist/Dist.h"
#include "runtime/abi/shardrt_program.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

/// Number of ranks that tables must cover: the largest in use + 1.
int64_t rankCount(const Mesh &mesh) {
  int64_t count = 0;
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    count = std::max(count, mesh.rankAtPosition(position) + 1);
  return count;
}

Value lookUpByRank(ConversionPatternRewriter &b, const Emission &emission, Operation *op,
                   ArrayRef<int64_t> table) {
  Location loc = op->getLoc();
  if (llvm::all_equal(table))
    return constantInt(b, loc, table.empty() ? 0 : table.front());
  Type pointer = LLVM::LLVMPointerType::get(op->getContext());
  Value rank = emission.frame(op).field(b, loc, b.getI64Type(), offsetof(shardrt_frame, rank));
  Value at =
      LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), emission.pool.integers(b, loc, table),
                          ArrayRef<LLVM::GEPArg>{rank});
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), at);
}

/// i64 arithmetic.
struct Math {
  OpBuilder &b;
  Location loc;

  Value number(int64_t value) const { return constantInt(b, loc, value); }
  Value add(Value x, Value y) const { return LLVM::AddOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) const { return LLVM::SubOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) const { return LLVM::MulOp::create(b, loc, x, y); }
  Value min(Value x, Value y) const { return LLVM::SMinOp::create(b, loc, x, y); }
  Value max(Value x, Value y) const { return LLVM::SMaxOp::create(b, loc, x, y); }
  /// y > 0
  Value floorDiv(Value x, Value y) const {
    Value rest = mod(x, y);
    return LLVM::SDivOp::create(b, loc, sub(x, rest), y);
  }
  Value ceilDiv(Value x, Value y) const { return floorDiv(add(x, sub(y, number(1))), y); }
  /// Not negative.
  Value mod(Value x, Value y) const {
    Value rest = LLVM::SRemOp::create(b, loc, x, y);
    Value negative = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::slt, rest, number(0));
    return LLVM::SelectOp::create(b, loc, negative, add(rest, y), rest);
  }

  Value expression(AffineExpr expr, ArrayRef<Value> symbols) const {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return number(constant.getValue());
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return symbols[dim.getPosition()];
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value x = expression(binary.getLHS(), symbols), y = expression(binary.getRHS(), symbols);
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return add(x, y);
    case AffineExprKind::Mul:
      return mul(x, y);
    case AffineExprKind::FloorDiv:
      return floorDiv(x, y);
    case AffineExprKind::CeilDiv:
      return ceilDiv(x, y);
    default:
      return mod(x, y);
    }
  }

  /// AxisSplit::extent (dialects/sharding/DimSplit.h) for a coordinate known at run time.
  Value extent(Value n, Value coordinate, const AxisSplit &split) const {
    Value blocks = number(split.blocks);
    Value block = LLVM::SDivOp::create(b, loc, n, blocks);
    Value granule = number(split.granule), count = number(split.count);
    Value units = ceilDiv(block, granule);
    Value chunk = mul(ceilDiv(units, count), granule);
    Value begin = min(mul(coordinate, chunk), block);
    Value end = min(mul(add(coordinate, number(1)), chunk), block);
    return mul(sub(end, begin), blocks);
  }
};

struct LowerExtent : ConvertOpToLLVMPattern<dist::ExtentOp> {
  explicit LowerExtent(const Emission &emission)
      : ConvertOpToLLVMPattern(emission.converter), emission(emission) {}

  LogicalResult matchAndRewrite(dist::ExtentOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    dist::ExtentsAttr extents = op.getExtents();
    auto none = [](StringRef) { return std::optional<int64_t>(); };
    bool symbolic = extents.getSize() && !extents.getSize().getConstant();
    if (!symbolic) {
      SmallVector<int64_t> table;
      if (!extents.getMesh()) {
        table.push_back(extents.evaluate({}, none).value_or(0));
      } else {
        const Mesh &mesh = extents.getMesh().getValue();
        table.assign(rankCount(mesh), 0);
        for (int64_t position = 0; position < mesh.numDevices(); ++position)
          table[mesh.rankAtPosition(position)] =
              extents.evaluate(mesh.coordinateOfPosition(position), none).value_or(0);
      }
      b.replaceOp(op, lookUpByRank(b, emission, op, table));
      return success();
    }
    Math math{b, op.getLoc()};
    SmallVector<Value> symbols;
    Value list = emission.frame(op).field(b, op.getLoc(), LLVM::LLVMPointerType::get(getContext()),
                                          offsetof(shardrt_frame, symbols));
    for (StringAttr name : extents.getSize().getSymbols()) {
      std::optional<unsigned> position = emission.tables.symbol(name);
      if (!position)
        return op.emitOpError("uses the symbol '") << name.getValue() << "', which is not declared";
      symbols.push_back(
          abi::loadField(b, op.getLoc(), b.getI64Type(), list, *position * sizeof(int64_t)));
    }
    Value size = math.expression(extents.getSize().getExpr(), symbols);
    for (const AxisSplit &split : extents.getSplit().axes) {
      if (!split.sizes.empty())
        return op.emitOpError("splits a symbolic size by explicit extents");
      const Mesh &mesh = extents.getMesh().getValue();
      SmallVector<int64_t> coordinates(rankCount(mesh), 0);
      for (int64_t position = 0; position < mesh.numDevices(); ++position)
        coordinates[mesh.rankAtPosition(position)] =
            mesh.coordinateOfPosition(position)[split.axis];
      size = math.extent(size, lookUpByRank(b, emission, op, coordinates), split);
    }
    b.replaceOp(op, size);
    return success();
  }

  Emission emission;
};

struct LowerAxisIndex : ConvertOpToLLVMPattern<dist::AxisIndexOp> {
  explicit LowerAxisIndex(const Emission &emission)
      : ConvertOpToLLVMPattern(emission.converter), emission(emission) {}

  LogicalResult matchAndRewrite(dist::AxisIndexOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    std::optional<std::vector<std::vector<int64_t>>> lists = op.getGroup().getRankLists();
    if (!lists)
      return op.emitOpError(
          "needs the ranks of its group; give them with --groups when the graph is imported");
    SmallVector<int64_t> table;
    for (const std::vector<int64_t> &list : *lists)
      for (auto [position, rank] : llvm::enumerate(list)) {
        if (static_cast<int64_t>(table.size()) <= rank)
          table.resize(rank + 1, 0);
        table[rank] = position;
      }
    b.replaceOp(op, lookUpByRank(b, emission, op, table));
    return success();
  }

  Emission emission;
};

} // namespace

void populateExtentPatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerExtent, LowerAxisIndex>(emission);
}

} // namespace shardc::host
