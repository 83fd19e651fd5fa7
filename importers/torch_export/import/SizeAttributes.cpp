// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/SizeAttributes.h"

#include "importers/torch_export/import/NeighborhoodSizes.h"
#include "importers/torch_export/program/Guards.h"

#include "dialects/dist/Dist.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

using Kind = SymExpr::Kind;

dist::SizeAttr makeSize(MLIRContext *context, const SymExpr &expr) {
  AffineExprKind kind;
  switch (expr.kind) {
  case Kind::Integer:
    return dist::SizeAttr::get(context, expr.value);
  case Kind::Symbol:
    return dist::SizeAttr::get(context, StringRef(expr.symbol));
  case Kind::Add:
    kind = AffineExprKind::Add;
    break;
  case Kind::Mul:
  case Kind::Pow:
    kind = AffineExprKind::Mul;
    break;
  case Kind::FloorDiv:
    kind = AffineExprKind::FloorDiv;
    break;
  case Kind::CeilDiv:
    kind = AffineExprKind::CeilDiv;
    break;
  case Kind::Mod:
    kind = AffineExprKind::Mod;
    break;
  case Kind::Max:
  case Kind::Min:
    return {};
  }
  dist::SizeAttr value = makeSize(context, expr.operands.front());
  if (expr.kind == Kind::Pow) {
    dist::SizeAttr base = value;
    value = dist::SizeAttr::get(context, int64_t(1));
    for (int64_t i = 0; base && i < expr.operands[1].value; ++i)
      value = dist::SizeAttr::combine(kind, value, base);
    return base ? value : base;
  }
  for (const SymExpr &operand : llvm::drop_begin(expr.operands)) {
    dist::SizeAttr next = makeSize(context, operand);
    if (!value || !next)
      return {};
    value = dist::SizeAttr::combine(kind, value, next);
  }
  return value;
}

dist::SizeAttr makeSize(MLIRContext *context, const SymInt &size) {
  if (size.constant())
    return dist::SizeAttr::get(context, size.value);
  std::string ignored;
  std::optional<SymExpr> expr = parseSymExpr(size.expr, ignored);
  return expr ? makeSize(context, *expr) : dist::SizeAttr();
}

/// In the form of dialects/dist/Constraints.h.
Attribute makeExpression(Builder &builder, const SymExpr &expr) {
  auto join = [&](StringRef name, Attribute left, Attribute right) -> Attribute {
    return builder.getArrayAttr({builder.getStringAttr(name), left, right});
  };
  auto fold = [&](StringRef name) {
    Attribute value = makeExpression(builder, expr.operands.front());
    for (const SymExpr &operand : llvm::drop_begin(expr.operands))
      value = join(name, value, makeExpression(builder, operand));
    return value;
  };
  switch (expr.kind) {
  case Kind::Integer:
    return builder.getI64IntegerAttr(expr.value);
  case Kind::Symbol:
    return builder.getStringAttr(StringRef(expr.symbol));
  case Kind::Add:
    return fold("add");
  case Kind::Mul:
    return fold("mul");
  case Kind::Max:
    return fold("max");
  case Kind::Min:
    return fold("min");
  case Kind::FloorDiv:
    return fold("floordiv");
  case Kind::CeilDiv:
    return fold("ceildiv");
  case Kind::Mod:
    return fold("mod");
  case Kind::Pow:
    break;
  }
  Attribute base = makeExpression(builder, expr.operands.front());
  Attribute value = builder.getI64IntegerAttr(1);
  for (int64_t i = 0; i < expr.operands[1].value; ++i)
    value = join("mul", value, base);
  return value;
}

/// Size expressions of the program's inputs, by name.
std::optional<SymExpr> sizeOfInput(const ExportedProgram &program, std::string_view name,
                                   int64_t dim) {
  for (const Argument &input : program.graph.inputs) {
    auto *tensor = std::get_if<TensorArg>(&input);
    if (!tensor || std::string_view(tensor->name) != name)
      continue;
    auto found = program.graph.tensors.find(tensor->name);
    if (found == program.graph.tensors.end() || dim < 0 ||
        dim >= static_cast<int64_t>(found->second.sizes.size()))
      return std::nullopt;
    const SymInt &size = found->second.sizes[dim];
    if (size.constant()) {
      SymExpr constant;
      constant.value = size.value;
      return constant;
    }
    std::string ignored;
    return parseSymExpr(size.expr, ignored);
  }
  return std::nullopt;
}

} // namespace

ArrayAttr makeConstraints(Location file, const ExportedProgram &program) {
  Builder builder(file.getContext());
  SmallVector<Attribute> constraints;
  for (std::string_view text : program.guards) {
    std::string error;
    auto sizeOf = [&](std::string_view name, int64_t dim) {
      return sizeOfInput(program, name, dim);
    };
    std::optional<Guard> guard = parseGuard(text, sizeOf, error);
    if (!guard)
      emitRemark(file) << "the export relies on '" << StringRef(text)
                       << "', which runs will not check: " << error;
    else if (!guard->isTrivial())
      constraints.push_back(builder.getArrayAttr({builder.getStringAttr(StringRef(guard->relation)),
                                                  makeExpression(builder, guard->left),
                                                  makeExpression(builder, guard->right)}));
  }
  forEachNeighborhoodSize(program, [&](const SymExpr &size, int64_t least) {
    Attribute constraint =
        builder.getArrayAttr({builder.getStringAttr(">="), makeExpression(builder, size),
                              builder.getI64IntegerAttr(least)});
    if (!llvm::is_contained(constraints, constraint))
      constraints.push_back(constraint);
  });
  return constraints.empty() ? ArrayAttr() : builder.getArrayAttr(constraints);
}

ArrayAttr makeSizes(MLIRContext *context, const TensorMeta &meta) {
  if (llvm::all_of(meta.sizes, [](const SymInt &size) { return size.constant(); }))
    return {};
  SmallVector<Attribute> sizes;
  for (const SymInt &size : meta.pairSizes()) {
    dist::SizeAttr attribute = makeSize(context, size);
    if (!attribute)
      return {};
    sizes.push_back(attribute);
  }
  return ArrayAttr::get(context, sizes);
}

FailureOr<ArrayAttr> makeSymbols(MLIRContext *context, const ExportedProgram &program) {
  llvm::SetVector<StringAttr> used;
  auto collect = [&](ArrayRef<Argument> values) {
    for (const Argument &value : values) {
      auto *tensor = std::get_if<TensorArg>(&value);
      auto found = tensor ? program.graph.tensors.find(tensor->name) : program.graph.tensors.end();
      if (found == program.graph.tensors.end())
        continue;
      if (ArrayAttr sizes = makeSizes(context, found->second))
        for (auto size : sizes.getAsRange<dist::SizeAttr>())
          used.insert(size.getSymbols().begin(), size.getSymbols().end());
    }
  };
  collect(program.graph.inputs);
  collect(program.graph.outputs);
  if (used.empty())
    return ArrayAttr();
  SmallVector<Attribute> symbols;
  for (StringAttr name : used) {
    int64_t min = 0, max = ShapedType::kDynamic;
    for (const SymbolRange &range : program.ranges) {
      if (StringRef(range.symbol) != name.getValue())
        continue;
      min = std::max<int64_t>(range.min.value_or(0), 0);
      max = range.max.value_or(ShapedType::kDynamic);
    }
    auto emitError = [&] { return mlir::emitError(UnknownLoc::get(context)); };
    auto symbol = dist::SymbolAttr::getChecked(emitError, context, name, min, max);
    if (!symbol)
      return failure();
    symbols.push_back(symbol);
  }
  return ArrayAttr::get(context, symbols);
}

} // namespace shardc::torch_export
