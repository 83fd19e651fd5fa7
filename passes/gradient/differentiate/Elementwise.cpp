// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise ops: what Derivatives.def says.

#include "passes/gradient/differentiate/Models.h"

#include "dialects/aten/Random.h"

#include "llvm/ADT/StringMap.h"

#include <numbers>

using namespace mlir;
using namespace shardc;

namespace {

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// Formulas of more than a line.

Expr siluDerivative(Expr grad, Expr self) {
  Expr s = sigmoid(self);
  return grad * (s * (self * (1 - s) + 1));
}

Expr mishDerivative(Expr grad, Expr self) {
  Expr t = tanh(log1p(exp(self))), s = sigmoid(self);
  return grad * (t + self * s * (1 - square(t)));
}

Expr geluDerivative(Expr grad, Expr self, bool byTanh) {
  constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  if (!byTanh) {
    // self * Phi(self), and the density of the normal distribution.
    Expr phi = exp(square(self) * -0.5) * (kSqrt2OverPi / 2);
    Expr Phi = (erf(self * (1 / std::numbers::sqrt2)) + 1) * 0.5;
    return grad * (Phi + self * phi);
  }
  constexpr double kCubic = 0.044715;
  Expr x2 = square(self);
  Expr t = tanh((self * (x2 * kCubic + 1)) * kSqrt2OverPi);
  Expr inner = (x2 * (3 * kCubic) + 1) * kSqrt2OverPi;
  return grad * ((t + 1) * 0.5 + self * 0.5 * (1 - square(t)) * inner);
}

/// Of a constant exponent: the power is a product then.
std::optional<double> constantOf(Expr x) {
  auto constant = x.value.getDefiningOp<aten::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  if (elements.getElementType().isInteger(64))
    return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
  return std::nullopt;
}

Expr powerDerivative(Expr grad, Expr self, Expr exponent) {
  if (std::optional<double> number = constantOf(exponent)) {
    if (*number == 0)
      return {};
    if (*number == 1)
      return grad;
    Expr power = *number == 2 ? self : pow(self, *number - 1);
    return grad * (power * *number);
  }
  // 0^-1 times 0 would not be a number.
  return where(eq(exponent, 0), 0, grad * (exponent * pow(self, exponent - 1)));
}

/// Equal elements share the cotangent; where one is not a number, both get it.
Expr ofLarger(Expr grad, Expr mine, Expr other) {
  return where(lt(mine, other), 0, where(eq(mine, other), grad * 0.5, grad));
}
Expr ofSmaller(Expr grad, Expr mine, Expr other) {
  return where(gt(mine, other), 0, where(eq(mine, other), grad * 0.5, grad));
}

/// x / (a^2 + b^2), which is 0 where both are 0, as in PyTorch.
Expr overSquares(Expr x, Expr a, Expr b) {
  Expr squares = square(a) + square(b);
  return where(eq(squares, 0), 0, x / squares);
}

Expr isWithin(Expr self, Expr min, Expr max) {
  if (!min)
    return le(self, max);
  if (!max)
    return ge(self, min);
  return logicalAnd(ge(self, min), le(self, max));
}

Expr lowerTriangle(Expr x, int64_t diagonal) {
  return x.with(aten::TrilOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, diagonal));
}
Expr upperTriangle(Expr x, int64_t diagonal) {
  return x.with(aten::TriuOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, diagonal));
}

Expr dropout(Expr x, Expr mask, double p) {
  return x.with(aten::DropoutOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, mask.value,
                                        APFloat(p)));
}

/// What the formulas name.
struct Terms {
  Derivation &d;
  Expr grad, result;
  Expr self = {}, other = {}, exponent = {}, condition = {}, mask = {}, value = {}, min = {},
       max = {}, src = {}, tensor1 = {}, tensor2 = {}, weight = {}, end = {};

  explicit Terms(Derivation &d) : d(d), grad(d.grad()), result(d.result()) {
    const std::pair<StringRef, Expr Terms::*> names[] = {{"self", &Terms::self},
                                                         {"other", &Terms::other},
                                                         {"exponent", &Terms::exponent},
                                                         {"condition", &Terms::condition},
                                                         {"mask", &Terms::mask},
                                                         {"value", &Terms::value},
                                                         {"min", &Terms::min},
                                                         {"max", &Terms::max},
                                                         {"tensor1", &Terms::tensor1},
                                                         {"tensor2", &Terms::tensor2},
                                                         {"weight", &Terms::weight},
                                                         {"end", &Terms::end},
                                                         {"src", &Terms::src}};
    for (auto [name, term] : names)
      if (std::optional<unsigned> number = find(d.op, name))
        this->*term = d.of(d.op->getOperand(*number));
  }

  /// The number of the operand of that name; none where the op has none.
  static std::optional<unsigned> find(Operation *op, StringRef name) {
    unsigned number = 0;
    ArrayRef<int32_t> segments;
    if (auto attr = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes"))
      segments = attr;
    for (const aten::SchemaArgument &argument :
         cast<aten::SchemaOpInterface>(op).getSchemaArguments()) {
      if (!argument.isOperand())
        continue;
      bool present = segments.empty() || segments.front() > 0;
      segments = segments.drop_front(std::min<size_t>(1, segments.size()));
      if (argument.name == name)
        return present ? std::optional(number) : std::nullopt;
      number += present;
    }
    return std::nullopt;
  }

  static double number(const APFloat &attribute) { return attribute.convertToDouble(); }
};

#define DERIVATIVE(name, operand, formula)                                                         \
  struct name##_##operand : Terms {                                                                \
    aten::name##Op op;                                                                             \
    explicit name##_##operand(Derivation &d) : Terms(d), op(cast<aten::name##Op>(d.op)) {}         \
    Expr derive() { return formula; }                                                              \
  };
#define CONSTANT(op)
#include "passes/gradient/differentiate/Derivatives.def"

struct Derivative {
  StringRef operand;
  Expr (*derive)(Derivation &);
};

/// By name of the op.
const llvm::StringMap<SmallVector<Derivative, 2>> &derivatives() {
  static const auto table = [] {
    llvm::StringMap<SmallVector<Derivative, 2>> all;
#define DERIVATIVE(op, operand, formula)                                                           \
  all[aten::op##Op::getOperationName()].push_back(                                                 \
      {#operand, [](Derivation &d) { return op##_##operand(d).derive(); }});
#define CONSTANT(op) all[aten::op##Op::getOperationName()] = {};
#include "passes/gradient/differentiate/Derivatives.def"
    return all;
  }();
  return table;
}

/// Where the attributes of an op say that its derivative is zero, or that there is none.
template <typename OpT> bool isConstant(OpT) { return false; }
template <> bool isConstant(aten::DivOp op) { return op.getRoundingMode().has_value(); }
template <typename OpT> bool isDetached(OpT) { return false; }
template <> bool isDetached(aten::AliasOp op) { return op.getDetached(); }

template <typename OpT> struct ElementwiseGradient : GradientModel<ElementwiseGradient<OpT>, OpT> {
  bool hasZeroDerivative(Operation *op, unsigned operand) const {
    return isConstant(cast<OpT>(op)) ||
           llvm::none_of(derivatives().find(OpT::getOperationName())->second,
                         [&](const Derivative &derivative) {
                           return Terms::find(op, derivative.operand) == operand;
                         });
  }
  bool stopsGradient(Operation *op) const { return isDetached(cast<OpT>(op)); }

  static LogicalResult run(Derivation &d, OpT op) {
    if (!d.grad())
      return success();
    for (const Derivative &derivative : derivatives().lookup(OpT::getOperationName())) {
      std::optional<unsigned> operand = Terms::find(op, derivative.operand);
      if (!operand || !d.needs(*operand))
        continue;
      if (Expr cotangent = derivative.derive(d))
        d.add(*operand, cotangent);
    }
    return success();
  }
};

template <typename OpT> void attachOnce(MLIRContext *context) {
  OperationName name(OpT::getOperationName(), context);
  if (!name.hasInterface<DifferentiableOpInterface>())
    OpT::template attachInterface<ElementwiseGradient<OpT>>(*context);
}

} // namespace

void shardc::attachElementwiseGradients(MLIRContext *context) {
#define DERIVATIVE(op, operand, formula) attachOnce<aten::op##Op>(context);
#define CONSTANT(op) attachOnce<aten::op##Op>(context);
#include "passes/gradient/differentiate/Derivatives.def"
}
