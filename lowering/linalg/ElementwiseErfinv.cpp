// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inverse of the error function: erfinv(x) = x g(w) with w = -log(1 - x^2), where g is smooth.
// Near 0 g is a polynomial in w, behind that polynomials in sqrt(w), up to the largest x below 1.
// Each interpolates g at the Chebyshev points of its range. The relative error is below 2e-7 in f32
// and 4e-16 in f64.
#include "lowering/linalg/Elementwise.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace shardc {
namespace {

/// g where w is below `end`, as a polynomial in w - middle, or in sqrt(w) - middle.
struct Piece {
  bool isOfRoot;
  double end, middle;
  ArrayRef<double> coefficients; ///< of rising powers
};

constexpr double toEnd = std::numeric_limits<double>::infinity();

constexpr double central32[] = {1.5014094e+00, 2.4664028e-01, -4.177393e-03,  -1.2527264e-03,
                                2.1834939e-04, -4.97242e-06,  -3.4639852e-06, 4.6813136e-07,
                                2.3335968e-08, -8.931926e-09};
constexpr double tail32[] = {2.9512944e+00,  1.0036192e+00,  7.1615884e-03, -5.408181e-03,
                             3.870233e-03,   -2.5762906e-03, 1.3275176e-03, -3.132885e-04,
                             -1.8267464e-04, 1.2925037e-04};
constexpr double central64[] = {
    1.6536545626831027,      0.24015818242558834,    -0.006033670871426851,
    -0.0007407025341546431,  0.00018673420801981186, -1.3882523393957483e-05,
    -1.3654691758785656e-06, 4.23478816822246e-07,   -2.907039127564132e-08,
    -4.1126604371632185e-09, 1.051223377050429e-09,  -5.414303283919504e-11,
    -1.2978805369932565e-11, 2.6305268312595183e-12, -8.07192593899004e-14,
    -4.0020031087558496e-14, 6.521333511502239e-15,  -3.94018812230432e-17,
    -1.2215637192404172e-16, 1.5510787009902526e-17, 6.075050702072414e-19,
    -3.4734793888538036e-19, 1.999259988861535e-20,  3.194015548136271e-21,
    -3.5932028927020693e-22};
constexpr double middle64[] = {
    3.0838856104922208,     1.0052589676941655,      0.005370914553555033,
    -0.0037512085082247342, 0.00249144209795696,     -0.0016882755354488555,
    0.0009532893415794137,  -0.0003550378137852452,  2.4031512865758357e-05,
    6.828711739251955e-05,  -4.732068066544697e-05,  1.2465028224217455e-05,
    2.93257845538535e-06,   -3.985705945648173e-06,  1.4815977874022539e-06,
    -2.761716223816241e-08, -2.4549818963339823e-07, 1.3158663683192966e-07,
    -2.091453334773126e-08, -1.5305397964152548e-08, 7.680200479077053e-09};
constexpr double tail64[] = {
    4.8814781489772106,      1.0102911741198122,      -0.00015843904954813428,
    -0.00020572018512085208, 7.29852553103956e-05,    -1.8853117562336582e-05,
    4.314923892501274e-06,   -9.380364506555979e-07,  2.1124927519459066e-07,
    -5.927038457421629e-08,  2.4266712807812872e-08,  -1.2538360696427035e-08,
    6.4901287796656715e-09,  -2.9918302365185497e-09, 1.1562805696876152e-09,
    -3.4884893788987603e-10, 6.553924986441078e-11,   6.578300365416567e-12,
    -1.2546497437194986e-11, 5.350090660344402e-12,   -9.039244124968652e-13};

/// 1 - 2^-24 has w of 15.9.
const Piece pieces32[] = {{false, 5, 2.5, central32}, {true, toEnd, 3.118, tail32}};
/// 1 - 2^-53 has w of 36.04.
const Piece pieces64[] = {
    {false, 6.25, 3.125, central64}, {true, 16, 3.25, middle64}, {true, toEnd, 5.03125, tail64}};

Value erfinv(Operation *, const ScalarBuilder &s, ArrayRef<Value> args) {
  Value x = args[0], one = s.constant(1);
  Value w = s.neg(s.make<math::LogOp>(s.mul(s.sub(one, x), s.add(one, x))));
  Value root = s.make<math::SqrtOp>(w);
  ArrayRef<Piece> pieces = s.compute().isF64() ? ArrayRef<Piece>(pieces64) : pieces32;
  Value g;
  for (const Piece &piece : llvm::reverse(pieces)) {
    Value t = s.sub(piece.isOfRoot ? root : w, s.constant(piece.middle));
    Value sum = s.constant(piece.coefficients.back());
    for (double coefficient : llvm::reverse(piece.coefficients.drop_back()))
      sum = s.add(s.mul(sum, t), s.constant(coefficient));
    g = g ? s.select(s.compare(ScalarBuilder::Predicate::lt, w, s.constant(piece.end)), sum, g)
          : sum;
  }
  // Beyond -1 and 1 the logarithm is not a number; there itself it is infinite.
  Value isEnd = s.compare(ScalarBuilder::Predicate::eq, s.make<math::AbsFOp>(x), one);
  return s.mul(x, s.select(isEnd, s.highest(), g));
}

} // namespace

void addErfinvRule(ElementwiseTable &table) { table.add<aten::ErfinvOp>(Operands::Result, erfinv); }

} // namespace shardc
