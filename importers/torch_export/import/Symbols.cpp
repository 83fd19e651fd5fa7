// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Symbols.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

using Kind = SymExpr::Kind;

// Reads `expr` as factor * symbol + summand with a positive factor.
bool matchAffine(const SymExpr &expr, StringRef &symbol, int64_t &factor, int64_t &summand) {
  switch (expr.kind) {
  case Kind::Symbol:
    symbol = expr.symbol;
    return true;
  case Kind::Mul:
  case Kind::Add: {
    if (expr.operands.size() != 2)
      return false;
    bool first = expr.operands[0].kind == Kind::Integer;
    const SymExpr &constant = expr.operands[first ? 0 : 1];
    if (constant.kind != Kind::Integer ||
        !matchAffine(expr.operands[first ? 1 : 0], symbol, factor, summand))
      return false;
    if (expr.kind == Kind::Add)
      return !__builtin_add_overflow(summand, constant.value, &summand);
    return constant.value > 0 && !__builtin_mul_overflow(factor, constant.value, &factor) &&
           !__builtin_mul_overflow(summand, constant.value, &summand);
  }
  default:
    return false;
  }
}

Value buildConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value buildBinary(OpBuilder &builder, Location loc, Kind kind, Value lhs, Value rhs) {
  switch (kind) {
  case Kind::Add:
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  case Kind::Mul:
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  case Kind::Max:
    return arith::MaxSIOp::create(builder, loc, lhs, rhs);
  case Kind::Min:
    return arith::MinSIOp::create(builder, loc, lhs, rhs);
  case Kind::FloorDiv:
    return arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
  case Kind::CeilDiv:
    return arith::CeilDivSIOp::create(builder, loc, lhs, rhs);
  case Kind::Mod: {
    // The remainder has the sign of the divisor, as in Python.
    Value quotient = arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
    Value whole = arith::MulIOp::create(builder, loc, quotient, rhs);
    return arith::SubIOp::create(builder, loc, lhs, whole);
  }
  case Kind::Integer:
  case Kind::Symbol:
  case Kind::Pow:
    break;
  }
  return {};
}

} // namespace

void Symbols::bind(Value argument, unsigned dim, const SymInt &size) {
  std::string ignored;
  std::optional<SymExpr> expr;
  Source source{argument, dim};
  StringRef symbol;
  if (size.constant() || !(expr = parseSymExpr(size.expr, ignored)) ||
      !matchAffine(*expr, symbol, source.factor, source.summand))
    return;
  auto [place, added] = sources.try_emplace(symbol, source);
  // A dim that is the symbol itself is the simplest source.
  if (!added && source.factor == 1 && source.summand == 0 &&
      (place->second.factor != 1 || place->second.summand != 0))
    place->second = source;
}

bool Symbols::canGet(const SymInt &size) const {
  if (size.constant() || expressions.lookup(size.expr))
    return true;
  std::string ignored;
  std::optional<SymExpr> expr = parseSymExpr(size.expr, ignored);
  auto areKnown = [&](auto &self, const SymExpr &part) -> bool {
    return (part.kind != Kind::Symbol || symbols.contains(part.symbol) ||
            sources.contains(part.symbol)) &&
           llvm::all_of(part.operands, [&](const SymExpr &operand) { return self(self, operand); });
  };
  return expr && areKnown(areKnown, *expr);
}

FailureOr<OpFoldResult> Symbols::get(const SymInt &size, Location loc) {
  if (size.constant())
    return OpFoldResult(Builder(loc.getContext()).getIndexAttr(size.value));
  if (Value known = expressions.lookup(size.expr))
    return OpFoldResult(known);
  std::string error;
  std::optional<SymExpr> expr = parseSymExpr(size.expr, error);
  if (!expr)
    return emitError(loc) << "a size is no integer expression of sizes of inputs: " << error;
  OpBuilder builder(loc.getContext());
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(entry);
  Value value = build(builder, *expr, loc);
  if (!value)
    return failure();
  if (builder.getInsertionPoint() != entry->begin())
    last = &*std::prev(builder.getInsertionPoint());
  expressions[size.expr] = value;
  return OpFoldResult(value);
}

Value Symbols::buildSymbol(OpBuilder &builder, StringRef name, Location loc) {
  if (Value known = symbols.lookup(name))
    return known;
  auto found = sources.find(name);
  if (found == sources.end()) {
    emitError(loc) << "the size '" << name
                   << "' depends on the values of tensors: no input has it as a dim";
    return {};
  }
  const Source &source = found->second;
  Location place = source.argument.getLoc();
  Value value = aten::SymSizeOp::create(builder, place, builder.getIndexType(), source.argument,
                                        uint64_t(source.dim));
  if (source.summand != 0)
    value =
        arith::SubIOp::create(builder, place, value, buildConstant(builder, place, source.summand));
  if (source.factor != 1)
    value = arith::FloorDivSIOp::create(builder, place, value,
                                        buildConstant(builder, place, source.factor));
  symbols[name] = value;
  return value;
}

Value Symbols::build(OpBuilder &builder, const SymExpr &expr, Location errorLoc) {
  // What is computed at the start belongs to no node.
  Location loc = entry->getParentOp()->getLoc();
  if (expr.kind == Kind::Integer)
    return buildConstant(builder, loc, expr.value);
  if (expr.kind == Kind::Symbol)
    return buildSymbol(builder, expr.symbol, errorLoc);
  Value value = build(builder, expr.operands[0], errorLoc);
  if (!value)
    return {};
  if (expr.kind == Kind::Pow) {
    if (expr.operands[1].value == 0)
      return buildConstant(builder, loc, 1);
    Value base = value;
    for (int64_t i = 1; i < expr.operands[1].value; ++i)
      value = arith::MulIOp::create(builder, loc, value, base);
    return value;
  }
  for (const SymExpr &operand : llvm::drop_begin(expr.operands)) {
    Value next = build(builder, operand, errorLoc);
    if (!next)
      return {};
    value = buildBinary(builder, loc, expr.kind, value, next);
  }
  return value;
}

} // namespace shardc::torch_export
