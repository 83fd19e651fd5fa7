// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms and softmax. Statistics are computed again from the input, in f32 for shorter floats.

#include "dialects/interfaces/ModelLocation.h"
#include "passes/gradient/differentiate/Models.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

Expr wide(Expr x) { return x ? cast(x, Emitter::accumulator(x.elementType())) : x; }

/// (x - mean) / sqrt(variance + eps) over `dims`, and 1 / sqrt(...).
struct Standardized {
  Expr value, scale;

  Standardized(Expr x, ArrayRef<int64_t> dims, double eps) {
    Expr centered = x - mean(x, dims);
    scale = rsqrt(mean(square(centered), dims) + eps);
    value = centered * scale;
  }
  /// The cotangent of x.
  Expr backward(Expr grad, ArrayRef<int64_t> dims) const {
    return scale * (grad - mean(grad, dims) - value * mean(grad * value, dims));
  }
};

struct LayerNormGradient : GradientModel<LayerNormGradient, aten::LayerNormOp> {
  static LogicalResult run(Derivation &d, aten::LayerNormOp op) {
    Expr grad = wide(d.grad()), input = wide(d.of(op.getInput()));
    if (!grad)
      return success();
    auto normalized = static_cast<int64_t>(op.getNormalizedShape().size());
    SmallVector<int64_t> dims = dimRange(input.rank() - normalized, input.rank());
    Standardized x(input, dims, op.getEps().convertToDouble());
    if (d.needs(0)) {
      Expr weight = wide(d.of(op.getWeight()));
      d.add(0, x.backward(weight ? grad * weight : grad, dims));
    }
    unsigned next = 1;
    if (op.getWeight()) {
      if (d.needs(next))
        d.add(next, grad * x.value);
      ++next;
    }
    if (op.getBias() && d.needs(next))
      d.add(next, grad);
    return success();
  }
};

struct RmsNormGradient : GradientModel<RmsNormGradient, aten::RmsNormOp> {
  static LogicalResult run(Derivation &d, aten::RmsNormOp op) {
    Expr grad = wide(d.grad()), input = wide(d.of(op.getInput()));
    if (!grad)
      return success();
    auto normalized = static_cast<int64_t>(op.getNormalizedShape().size());
    SmallVector<int64_t> dims = dimRange(input.rank() - normalized, input.rank());
    Expr scale = rsqrt(mean(square(input), dims) + epsOf(op)), x = input * scale;
    if (d.needs(0)) {
      Expr weight = wide(d.of(op.getWeight()));
      Expr weighted = weight ? grad * weight : grad;
      d.add(0, scale * (weighted - x * mean(weighted * x, dims)));
    }
    if (op.getWeight() && d.needs(1))
      d.add(1, grad * x);
    return success();
  }

  /// Unless it is given, the smallest step above 1 of the input's element type.
  static double epsOf(aten::RmsNormOp op) {
    if (std::optional<APFloat> eps = op.getEps())
      return eps->convertToDouble();
    auto type = cast<FloatType>(aten::elementTypeOf(op.getInput()));
    return std::ldexp(1.0, 1 - static_cast<int>(type.getFPMantissaWidth()));
  }
};

/// As [batch, groups, channels of a group, positions ...]: standardised over all but the first two.
struct GroupNormGradient : GradientModel<GroupNormGradient, aten::GroupNormOp> {
  static LogicalResult run(Derivation &d, aten::GroupNormOp op) {
    Expr grad = wide(d.grad()), input = wide(d.of(op.getInput()));
    if (!grad)
      return success();
    int64_t channels = aten::shapeOf(op.getInput())[1],
            groups = static_cast<int64_t>(op.getNumGroups());
    if (ShapedType::isDynamic(channels) || groups == 0 || channels % groups != 0) {
      d.refuse() << "needs a known number of channels that divides into the groups";
      return failure();
    }
    SmallVector<OpFoldResult> whole = d.sizes(op.getInput()), grouped = whole;
    grouped[1] = d.builder.getIndexAttr(groups);
    grouped.insert(grouped.begin() + 2, d.builder.getIndexAttr(channels / groups));
    SmallVector<int64_t> dims = dimRange(2, input.rank() + 1);
    Standardized x(view(input, grouped), dims, op.getEps().convertToDouble());
    if (d.needs(0)) {
      Expr weighted = grad;
      if (Expr weight = wide(d.of(op.getWeight())))
        weighted = grad * alongChannels(d, weight, input.rank());
      d.add(0, view(x.backward(view(weighted, grouped), dims), whole));
    }
    SmallVector<int64_t> others = dimRange(2, input.rank());
    others.insert(others.begin(), 0);
    unsigned next = 1;
    if (op.getWeight()) {
      if (d.needs(next))
        d.add(next, sum(grad * view(x.value, whole), others, /*keepdim=*/false));
      ++next;
    }
    if (op.getBias() && d.needs(next))
      d.add(next, sum(grad, others, /*keepdim=*/false));
    return success();
  }

  static Expr alongChannels(Derivation &d, Expr vector, int64_t rank) {
    SmallVector<OpFoldResult> sizes(rank, d.builder.getIndexAttr(1));
    sizes[1] = d.size(vector.value, 0);
    return view(vector, sizes);
  }
};

/// Mean and variance are operands: parameters in inference, statistics of the batch in training.
struct BatchNormGradient : GradientModel<BatchNormGradient, aten::BatchNormOp> {
  static LogicalResult run(Derivation &d, aten::BatchNormOp op) {
    Expr grad = wide(d.grad()), input = wide(d.of(op.getInput()));
    if (!grad)
      return success();
    auto along = [&](Expr vector) {
      return GroupNormGradient::alongChannels(d, vector, input.rank());
    };
    Expr weight = wide(d.of(op.getWeight())), mean = wide(d.of(op.getRunningMean()));
    Expr scale = rsqrt(wide(d.of(op.getRunningVar())) + op.getEps().convertToDouble());
    if (d.needs(0))
      d.add(0, (weight ? grad * along(weight) : grad) * along(scale));
    // All others are vectors of the channels, from two sums: in training, statistics are among
    // them.
    SmallVector<int64_t> others = dimRange(2, input.rank());
    others.insert(others.begin(), 0);
    Expr ofGrad, ofProduct;
    auto sumOfGrad = [&] {
      return ofGrad ? ofGrad : ofGrad = sum(grad, others, /*keepdim=*/false);
    };
    auto sumOfProduct = [&] {
      return ofProduct ? ofProduct
                       : ofProduct = sum(grad * (input - along(mean)), others, /*keepdim=*/false);
    };
    auto weighted = [&](Expr x) { return weight ? x * weight : x; };
    unsigned next = 1;
    auto give = [&](Value operand, llvm::function_ref<Expr()> cotangent) {
      if (unsigned number = operand ? next++ : 0; number && d.needs(number))
        d.add(number, cotangent());
    };
    give(op.getWeight(), [&] { return sumOfProduct() * scale; });
    give(op.getBias(), [&] { return sumOfGrad(); });
    give(op.getRunningMean(), [&] { return -(weighted(sumOfGrad()) * scale); });
    give(op.getRunningVar(),
         [&] { return weighted(sumOfProduct()) * (scale * scale * scale * -0.5); });
    return success();
  }
};

/// What a gather's derivative put into one position of each row along `dim`, where that is all of
/// the cotangent; else null.
Expr onlyPosition(Expr grad, Value read, int64_t dim) {
  auto where = grad.value.getDefiningOp<aten::WhereOp>();
  auto equal = where ? where.getCondition().getDefiningOp<aten::EqOp>() : aten::EqOp();
  auto other = where ? where.getOther().getDefiningOp<aten::ConstantOp>() : aten::ConstantOp();
  if (!equal || !other || !isBackward(where.getLoc()) ||
      !matchPattern(other.getResult(), m_AnyZeroFloat()) ||
      aten::shapeOf(where.getSelf())[dim] != 1)
    return {};
  for (Operation *user : read.getUsers())
    if (auto gather = dyn_cast<aten::GatherOp>(user); gather && gather.getSelf() == read &&
                                                      gather.getIndex() == equal.getOther() &&
                                                      static_cast<int64_t>(gather.getDim()) == dim)
      return grad.with(where.getSelf()); // the forward read there: the position exists
  return {};
}

template <typename OpT> struct SoftmaxGradient : GradientModel<SoftmaxGradient<OpT>, OpT> {
  static LogicalResult run(Derivation &d, OpT op) {
    Expr grad = d.grad(), result = d.result();
    if (!grad)
      return success();
    SmallVector<int64_t> dims;
    if (grad.rank() > 0)
      dims.push_back(op.getDim());
    if (std::is_same_v<OpT, aten::LogSoftmaxOp>) {
      // A loss reads its labels: nothing of the vocabulary, which may be sharded, is summed.
      Expr total = dims.empty() ? Expr() : onlyPosition(grad, op.getResult(), dims.front());
      d.add(0, grad - exp(result) * (total ? total : sum(grad, dims, /*keepdim=*/true)));
    } else {
      d.add(0, result * (grad - sum(grad * result, dims, /*keepdim=*/true)));
    }
    return success();
  }
};

} // namespace

void shardc::attachNormalizationGradients(MLIRContext *context) {
  aten::LayerNormOp::attachInterface<LayerNormGradient>(*context);
  aten::RmsNormOp::attachInterface<RmsNormGradient>(*context);
  aten::GroupNormOp::attachInterface<GroupNormGradient>(*context);
  aten::BatchNormOp::attachInterface<BatchNormGradient>(*context);
  aten::SoftmaxOp::attachInterface<SoftmaxGradient<aten::SoftmaxOp>>(*context);
  aten::LogSoftmaxOp::attachInterface<SoftmaxGradient<aten::LogSoftmaxOp>>(*context);
}
