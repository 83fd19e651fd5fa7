// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbolic sizes and the symbols they are made of.

#include "dialects/dist/Dist.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

//===------------------------------------------------------------------------------------------===//
// Size: canonical form and values
//===------------------------------------------------------------------------------------------===//

/// `expr` with symbol i renamed to the position of symbols[i] in `names` (sorted).
static AffineExpr renameSymbols(AffineExpr expr, ArrayRef<StringAttr> symbols,
                                ArrayRef<StringAttr> names) {
  SmallVector<AffineExpr> replacements;
  for (StringAttr symbol : symbols) {
    const StringAttr *position = llvm::find(names, symbol);
    replacements.push_back(position == names.end()
                               ? getAffineConstantExpr(0, expr.getContext())
                               : getAffineSymbolExpr(position - names.begin(), expr.getContext()));
  }
  return expr.replaceSymbols(replacements);
}

static void sortByName(SmallVectorImpl<StringAttr> &names) {
  llvm::sort(names, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  names.erase(llvm::unique(names), names.end());
}

std::pair<SmallVector<StringAttr>, AffineExpr>
shardc::dist::canonicalizeSize(ArrayRef<StringAttr> symbols, AffineExpr expr) {
  expr = simplifyAffineExpr(expr, /*numDims=*/0, symbols.size());
  SmallVector<StringAttr> used;
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (expr.isFunctionOfSymbol(i))
      used.push_back(symbol);
  sortByName(used);
  // Renaming may reorder terms: simplify in the final numbering, so that equal sizes are identical.
  expr = simplifyAffineExpr(renameSymbols(expr, symbols, used), /*numDims=*/0, used.size());
  return {used, expr};
}

/// What is a multiple of the divisor is divided by itself: (2 n + 3) ceildiv 2 is n + 2. So sizes
/// that are equal for all values of their symbols, as those of a window and of its adjoint are, are
/// one expression more often.
static AffineExpr quotient(AffineExprKind op, AffineExpr dividend, int64_t divisor) {
  AffineExpr whole = getAffineConstantExpr(0, dividend.getContext()), rest = whole;
  SmallVector<AffineExpr> terms{dividend};
  while (!terms.empty()) {
    AffineExpr term = terms.pop_back_val();
    if (term.getKind() == AffineExprKind::Add) {
      auto sum = cast<AffineBinaryOpExpr>(term);
      terms.append({sum.getLHS(), sum.getRHS()});
    } else if (auto number = dyn_cast<AffineConstantExpr>(term)) {
      int64_t floor = llvm::divideFloorSigned(number.getValue(), divisor);
      whole = whole + floor;
      rest = rest + (number.getValue() - floor * divisor);
    } else if (term.isMultipleOf(divisor)) {
      whole = whole + term.floorDiv(divisor);
    } else {
      rest = rest + term;
    }
  }
  return whole +
         getAffineBinaryOpExpr(op, rest, getAffineConstantExpr(divisor, dividend.getContext()));
}

SizeAttr SizeAttr::combine(AffineExprKind op, SizeAttr lhs, SizeAttr rhs) {
  SmallVector<StringAttr> names(lhs.getSymbols());
  names.append(rhs.getSymbols().begin(), rhs.getSymbols().end());
  sortByName(names);
  AffineExpr left = renameSymbols(lhs.getExpr(), lhs.getSymbols(), names);
  std::optional<int64_t> divisor = rhs.getConstant();
  bool isQuotient = op == AffineExprKind::FloorDiv || op == AffineExprKind::CeilDiv;
  if (isQuotient && divisor && *divisor > 0)
    return get(lhs.getContext(), names, quotient(op, left, *divisor));
  return get(
      lhs.getContext(), names,
      getAffineBinaryOpExpr(op, left, renameSymbols(rhs.getExpr(), rhs.getSymbols(), names)));
}

/// A symbol must read back as one: a bare identifier that is not a word of the expression's
/// grammar.
static LogicalResult verifySymbolName(function_ref<InFlightDiagnostic()> emitError,
                                      StringAttr name) {
  StringRef text = name.getValue();
  bool identifier = !text.empty() && (llvm::isAlpha(text.front()) || text.front() == '_') &&
                    llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!identifier || llvm::is_contained({"floordiv", "ceildiv", "mod", "over", "table"}, text))
    return emitError() << name << " is not a name for a symbol";
  return success();
}

LogicalResult SizeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> symbols, AffineExpr expr) {
  for (StringAttr symbol : symbols)
    if (failed(verifySymbolName(emitError, symbol)))
      return failure();
  std::optional<int64_t> constant;
  if (auto constantExpr = dyn_cast<AffineConstantExpr>(expr))
    constant = constantExpr.getValue();
  if (constant && *constant < 0)
    return emitError() << "a size must not be negative, got " << *constant;
  return success();
}

std::optional<int64_t> SizeAttr::getConstant() const {
  if (auto constant = dyn_cast<AffineConstantExpr>(getExpr()))
    return constant.getValue();
  return std::nullopt;
}

static std::optional<int64_t> evaluateExpr(AffineExpr expr,
                                           ArrayRef<std::optional<int64_t>> values) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return values[symbol.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> lhs = evaluateExpr(binary.getLHS(), values);
  std::optional<int64_t> rhs = evaluateExpr(binary.getRHS(), values);
  if (!lhs || !rhs)
    return std::nullopt;
  int64_t result;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*lhs, *rhs, result) ? std::nullopt : std::optional(result);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*lhs, *rhs, result) ? std::nullopt : std::optional(result);
  default:
    break;
  }
  if (*rhs < 1)
    return std::nullopt;
  switch (expr.getKind()) {
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(*lhs, *rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(*lhs, *rhs);
  case AffineExprKind::Mod:
    return llvm::mod(*lhs, *rhs);
  default:
    return std::nullopt;
  }
}

std::optional<int64_t>
SizeAttr::evaluate(function_ref<std::optional<int64_t>(StringRef)> valueOf) const {
  SmallVector<std::optional<int64_t>> values;
  for (StringAttr symbol : getSymbols())
    values.push_back(valueOf(symbol.getValue()));
  return evaluateExpr(getExpr(), values);
}

//===------------------------------------------------------------------------------------------===//
// Size: text form
//===------------------------------------------------------------------------------------------===//

namespace {
/// sum := product (('+' | '-') product)*
/// product := atom (('*' | 'floordiv' | 'ceildiv' | 'mod') atom)*
/// atom := integer | symbol | '(' sum ')'
class SizeParser {
public:
  explicit SizeParser(AsmParser &parser) : parser(parser) {}

  ParseResult parseSum(AffineExpr &result, unsigned depth = 0);
  ArrayRef<StringAttr> getSymbols() const { return symbols; }

private:
  ParseResult parseProduct(AffineExpr &result, unsigned depth);
  ParseResult parseAtom(AffineExpr &result, unsigned depth);

  AsmParser &parser;
  SmallVector<StringAttr> symbols;
};
} // namespace

ParseResult SizeParser::parseSum(AffineExpr &result, unsigned depth) {
  if (parseProduct(result, depth))
    return failure();
  while (true) {
    bool minus = false;
    if (failed(parser.parseOptionalPlus()) && !(minus = succeeded(parser.parseOptionalMinus())))
      return success();
    AffineExpr term;
    if (parseProduct(term, depth))
      return failure();
    result = minus ? result - term : result + term;
  }
}

ParseResult SizeParser::parseProduct(AffineExpr &result, unsigned depth) {
  if (parseAtom(result, depth))
    return failure();
  while (true) {
    StringRef keyword;
    AffineExprKind kind = AffineExprKind::Mul;
    if (failed(parser.parseOptionalStar())) {
      if (failed(parser.parseOptionalKeyword(&keyword, {"floordiv", "ceildiv", "mod"})))
        return success();
      kind = keyword == "floordiv"  ? AffineExprKind::FloorDiv
             : keyword == "ceildiv" ? AffineExprKind::CeilDiv
                                    : AffineExprKind::Mod;
    }
    SMLoc loc = parser.getCurrentLocation();
    AffineExpr factor;
    if (parseAtom(factor, depth))
      return failure();
    auto divisor = dyn_cast<AffineConstantExpr>(factor);
    if (kind != AffineExprKind::Mul && divisor && divisor.getValue() < 1)
      return parser.emitError(loc, "a divisor must be at least 1, got ") << divisor.getValue();
    result = getAffineBinaryOpExpr(kind, result, factor);
  }
}

ParseResult SizeParser::parseAtom(AffineExpr &result, unsigned depth) {
  // Deeper than any real expression, shallow enough for every stack.
  constexpr unsigned maxDepth = 64;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalLParen())) {
    if (depth == maxDepth)
      return parser.emitError(loc, "the expression is nested too deeply");
    return failure(parseSum(result, depth + 1) || parser.parseRParen());
  }
  int64_t constant;
  OptionalParseResult integer = parser.parseOptionalInteger(constant);
  if (integer.has_value()) {
    result = getAffineConstantExpr(constant, parser.getContext());
    return *integer;
  }
  StringRef name;
  if (parser.parseOptionalKeyword(&name))
    return parser.emitError(loc, "expected a size: an integer, a symbol or '('");
  auto symbol = StringAttr::get(parser.getContext(), name);
  StringAttr *position = llvm::find(symbols, symbol);
  unsigned index = position - symbols.begin();
  if (position == symbols.end())
    symbols.push_back(symbol);
  result = getAffineSymbolExpr(index, parser.getContext());
  return success();
}

SizeAttr SizeAttr::parseExpression(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SizeParser sizes(parser);
  AffineExpr expr;
  if (sizes.parseSum(expr))
    return {};
  SizeAttr size = get(parser.getContext(), sizes.getSymbols(), expr);
  if (failed(verify([&] { return parser.emitError(loc); }, size.getSymbols(), size.getExpr())))
    return {};
  return size;
}

/// How tightly the operator of an expression binds: sums 0, products 1, atoms 2.
static unsigned precedenceOf(AffineExpr expr) {
  if (!isa<AffineBinaryOpExpr>(expr))
    return 2;
  return expr.getKind() == AffineExprKind::Add ? 0 : 1;
}

static StringRef operatorOf(AffineExprKind kind) {
  switch (kind) {
  case AffineExprKind::Add:
    return " + ";
  case AffineExprKind::Mul:
    return " * ";
  case AffineExprKind::FloorDiv:
    return " floordiv ";
  case AffineExprKind::CeilDiv:
    return " ceildiv ";
  default:
    return " mod ";
  }
}

/// A negative constant, or a product with one.
static bool isNegative(AffineExpr expr) {
  if (expr.getKind() == AffineExprKind::Mul)
    expr = cast<AffineBinaryOpExpr>(expr).getRHS();
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant && constant.getValue() < 0;
}

static void printExpr(AsmPrinter &printer, ArrayRef<StringAttr> symbols, AffineExpr expr,
                      unsigned minPrecedence) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    printer << constant.getValue();
    return;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    printer << symbols[symbol.getPosition()].getValue();
    return;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AffineExpr lhs = binary.getLHS(), rhs = binary.getRHS();
  unsigned precedence = precedenceOf(expr), lhsPrecedence = precedence;
  StringRef symbol = operatorOf(expr.getKind());
  if (expr.getKind() == AffineExprKind::Add) {
    if (isNegative(lhs) && !isNegative(rhs))
      std::swap(lhs, rhs);
    if (isNegative(rhs)) {
      symbol = " - ";
      rhs = -rhs;
    }
  } else if (lhs.getKind() != AffineExprKind::Mul) {
    lhsPrecedence = 2; // `(a mod 8) * b`: nobody should have to know which binds first
  }
  if (precedence < minPrecedence)
    printer << "(";
  printExpr(printer, symbols, lhs, lhsPrecedence);
  printer << symbol;
  printExpr(printer, symbols, rhs, precedence + 1);
  if (precedence < minPrecedence)
    printer << ")";
}

void SizeAttr::printExpression(AsmPrinter &printer) const {
  printExpr(printer, getSymbols(), getExpr(), /*minPrecedence=*/0);
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  SizeAttr size = parseExpression(parser);
  if (!size || parser.parseGreater())
    return {};
  return size;
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printExpression(printer);
  printer << ">";
}

//===------------------------------------------------------------------------------------------===//
// Symbol
//===------------------------------------------------------------------------------------------===//

Attribute SymbolAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  int64_t min, max = ShapedType::kDynamic;
  if (parser.parseLess() || parser.parseKeyword(&name) || parser.parseKeyword("in") ||
      parser.parseLSquare() || parser.parseInteger(min) || parser.parseComma())
    return {};
  if (failed(parser.parseOptionalQuestion()) && parser.parseInteger(max))
    return {};
  if (parser.parseRSquare() || parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return getChecked(emitError, parser.getContext(), StringAttr::get(parser.getContext(), name), min,
                    max);
}

void SymbolAttr::print(AsmPrinter &printer) const {
  printer << "<" << getName().getValue() << " in [" << getMin() << ", ";
  if (ShapedType::isDynamic(getMax()))
    printer << "?";
  else
    printer << getMax();
  printer << "]>";
}

LogicalResult SymbolAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name,
                                 int64_t min, int64_t max) {
  if (failed(verifySymbolName(emitError, name)))
    return failure();
  if (min < 0 || (!ShapedType::isDynamic(max) && max < min))
    return emitError() << "symbol " << name << ": [" << min << ", " << max
                       << "] is not a range of sizes";
  return success();
}
