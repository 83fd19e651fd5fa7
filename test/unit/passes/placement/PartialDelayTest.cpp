// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a partial gradient is reduced: once, before what several ops make from it, and after it was
// added to others. Bytes are compared with the least possible, by hand.
#include "passes/placement/core/PartialDelay.h"
#include "test/unit/passes/placement/HalfPlaced.h"

using namespace shardc;
using namespace shardc::test;

namespace {
const Mesh kTp({{"tp", 4}});
constexpr int64_t kBatch = 2, kWidth = 96;

/// The backward of a norm behind column-parallel linears: the norm's weight and bias, and its
/// input, all have gradients that are linear in the cotangent of its result.
struct Norm : HalfPlaced {
  Shape rows;
  TensorId weight, bias, input; ///< gradients

  explicit Norm(int64_t length = 8) : HalfPlaced(kTp), rows{kBatch, length, kWidth} {}

  /// Bytes of the activations.
  double size() const { return 4.0 * static_cast<double>(rows[0] * rows[1] * rows[2]); }

  TensorId mean(TensorId x) {
    Shape to = shape(x);
    to.back() = 1;
    return op(rule({x}, to).reduce({-1}, Reduction::Sum).linear(0), {x}, to);
  }
  TensorId overRows(TensorId x) {
    Shape to{shape(x).back()};
    return op(rule({x}, to).reduce({0, 1}, Reduction::Sum).linear(0), {x}, to);
  }
  /// `rowsAre` is the layout of the activations, and of the cotangents of them.
  void backward(TensorId grad, const char *rowsAre) {
    TensorId normalized = placed(rows, rowsAre);
    TensorId weighted = mul(grad, placed({kWidth}, "[R]"));
    TensorId ofMean = mul(normalized, mean(mul(weighted, normalized)));
    input = add(add(weighted, ofMean), mean(weighted));
    weight = overRows(mul(grad, normalized));
    bias = overRows(grad);
    if (rowsAre[1] == 'S')
      for (TensorId t : {grad, weighted, ofMean, input})
        wish(t, rowsAre);
    redistribute(weight, "[R]");
    redistribute(bias, "[R]");
  }
  TensorId partial(int64_t features) {
    TensorId dy = gelu(placed({kBatch, rows[1], features}, "[S(2)]"));
    wish(dy, "[S(2)]");
    return inputGradient(dy, placed({features, kWidth}, "[S(0)]"));
  }
};
} // namespace

TEST(PartialDelay, ANormIsDifferentiatedBehindTheReduction) {
  // What is partial leaves the norm through three gradients, of which the largest needs the total.
  Norm m;
  m.backward(m.partial(kWidth), "[R]");
  TensorId next = m.gelu(m.add(m.placed(m.rows, "[R]"), m.input));
  Result r(m);
  EXPECT_EQ(r.kinds, "all_reduce");
  EXPECT_EQ(r.bytes, 2 * 3 / 4.0 * m.size());
  for (TensorId t : {m.weight, m.bias, m.input, next})
    EXPECT_EQ(r.layout(t), "[R]");
}

TEST(PartialDelay, ARedistributionToPartialEndsNothing) {
  // The forward reduced this value, so that the program makes its gradient partial; the matmul
  // behind needs the total all the same.
  Norm m;
  m.backward(m.partial(kWidth), "[R]");
  TensorId back = m.redistribute(m.input, "[P(sum)]");
  m.inputGradient(back, m.placed({kWidth, 4 * kWidth}, "[S(1)]"));
  Result r(m);
  EXPECT_EQ(r.layout(m.weight), "[R]");
  EXPECT_EQ(r.layout(m.input), "[R]");
}

TEST(PartialDelay, OnlyWhatIsSmallerStaysPartial) {
  // Nothing but the weight's gradient is asked for: its sum is reduced, which is far smaller.
  Norm m;
  TensorId grad = m.partial(kWidth);
  TensorId weight = m.overRows(m.mul(grad, m.placed(m.rows, "[R]")));
  m.redistribute(weight, "[R]");
  Result r(m);
  EXPECT_EQ(r.layout(weight), "[P(sum)]");
  EXPECT_EQ(r.bytes, 2 * 3 / 4.0 * kWidth * 4);
}

TEST(PartialDelay, SmallSiblingsWaitForTheSum) {
  // Under sequence parallelism: to gather a small weight and to compute on the rows would cost less
  // than to scatter its own partial sums; but these are scattered with those of the others.
  Norm m(128);
  TensorId sum = m.add(m.add(m.partial(kWidth / 2), m.partial(kWidth / 2)), m.partial(kWidth));
  m.wish(sum, "[S(1)]");
  m.backward(sum, "[S(1)]");
  m.add(m.placed(m.rows, "[S(1)]"), m.input);
  Result r(m);
  EXPECT_EQ(r.layout(sum), "[P(sum)]");
  EXPECT_EQ(r.layout(m.input), "[S(1)]");
  // The sums over the rows are partial, and reduced on their own.
  EXPECT_EQ(r.kinds, "reduce_scatter, all_reduce, all_reduce");
  EXPECT_EQ(r.bytes, 3 / 4.0 * (m.size() + 2 * 2 * kWidth * 4));
}

TEST(PartialDelay, TheWorkIsLinear) {
  for (int layers : {1, 8, 64}) {
    Norm m;
    TensorId residual = m.placed(m.rows, "[R]");
    for (int i = 0; i < layers; ++i) {
      m.backward(m.partial(kWidth), "[R]");
      residual = m.add(residual, m.input);
      m.gelu(residual);
    }
    Propagation propagation = propagate(m.graph);
    EXPECT_LT(propagation.visits, 3 * static_cast<int64_t>(m.graph.ops.size()));
    LayoutTable layouts(m.graph.mesh);
    ChangeCosts changes(m.graph, layouts);
    EXPECT_LE(PartialDelay(m.graph, propagation, changes).numRounds(),
              3u); // as many as for one layer
    EXPECT_EQ(Result(m).bytes, layers * 2 * 3 / 4.0 * m.size());
  }
}
