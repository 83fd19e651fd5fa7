// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes of results as programs: what ReifyRankedShapedTypeOpInterface builds for an op of which no
// size is known is evaluated, and must be what inference says of the op with sizes (which is
// compared with PyTorch's in inference-pytorch.test); bounds and windows are counted out, too.

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

namespace {

/// One op, the last but one of the function `f` of a module.
class Program {
public:
  Program(MLIRContext &context, const std::string &arguments, const std::string &op) {
    std::string text = "func.func @f(" + arguments + ") {\n  " + op + "\n  return\n}";
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      ADD_FAILURE() << text;
  }
  explicit operator bool() const { return static_cast<bool>(module); }
  func::FuncOp function() { return *module->getOps<func::FuncOp>().begin(); }
  Operation *op() { return &*function().getBody().front().begin(); }

private:
  OwningOpRef<ModuleOp> module;
};

/// Types with sizes that are not known: tensor<4x1x5xf32> is tensor<?x1x?xf32>. A size of 1 stays:
/// a dim that is repeated along another is one that is known to have it.
std::string withoutSizes(const std::string &text) {
  std::string result;
  bool inType = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 7, "tensor<") == 0)
      inType = true;
    inType &= text[i] != '>';
    size_t end = i;
    while (inType && end < text.size() && isdigit(text[end]))
      ++end;
    bool isSize = end > i && text[end] == 'x' && (text[i - 1] == '<' || text[i - 1] == 'x') &&
                  text.substr(i, end - i) != "1";
    result += isSize ? "?" : std::string(1, text[i]);
    i = isSize ? end - 1 : i;
  }
  return result;
}

/// Values of index computations, where tensors have the types of `sized` and indices these values.
struct Evaluator {
  func::FuncOp sized;
  std::vector<int64_t> indices; ///< one for each argument

  int64_t value(Value index) {
    if (auto argument = dyn_cast<BlockArgument>(index))
      return indices[argument.getArgNumber()];
    if (std::optional<int64_t> constant = getConstantIntValue(index))
      return *constant;
    Operation *op = index.getDefiningOp();
    if (auto size = dyn_cast<aten::SymSizeOp>(op)) {
      unsigned number = cast<BlockArgument>(size.getSelf()).getArgNumber();
      return aten::shapeOf(sized.getArgument(number))[size.getDim()];
    }
    auto operand = [&](unsigned i) { return value(op->getOperand(i)); };
    if (isa<arith::AddIOp>(op))
      return operand(0) + operand(1);
    if (isa<arith::SubIOp>(op))
      return operand(0) - operand(1);
    if (isa<arith::MulIOp>(op))
      return operand(0) * operand(1);
    if (isa<arith::MinSIOp>(op))
      return std::min(operand(0), operand(1));
    if (isa<arith::MaxSIOp>(op))
      return std::max(operand(0), operand(1));
    if (isa<arith::CeilDivSIOp>(op))
      return llvm::divideCeilSigned(operand(0), operand(1));
    if (auto compare = dyn_cast<arith::CmpIOp>(op);
        compare && compare.getPredicate() == arith::CmpIPredicate::slt)
      return operand(0) < operand(1);
    if (isa<arith::SelectOp>(op))
      return operand(0) ? operand(1) : operand(2);
    ADD_FAILURE() << op->getName().getStringRef().str() << " is not expected here";
    return -1;
  }
};

class ResultSizes : public testing::Test {
protected:
  ResultSizes() {
    context.loadDialect<aten::AtenDialect, arith::ArithDialect, func::FuncDialect>();
  }

  using Shapes = std::vector<std::vector<int64_t>>;

  static Shapes inferred(Operation *op) {
    SmallVector<Type> types;
    EXPECT_TRUE(succeeded(cast<InferTypeOpInterface>(op).inferReturnTypes(
        op->getContext(), op->getLoc(), op->getOperands(), op->getDiscardableAttrDictionary(),
        op->getPropertiesStorage(), op->getRegions(), types)));
    Shapes shapes;
    for (Type type : types)
      shapes.push_back(cast<RankedTensorType>(type).getShape().vec());
    return shapes;
  }

  /// Those of `op` where no type has a size, in a run with the sizes of `arguments`.
  Shapes reified(const std::string &arguments, const std::string &op,
                 std::vector<int64_t> indices = {}) {
    Program sized(context, arguments, op), open(context, withoutSizes(arguments), withoutSizes(op));
    Shapes shapes;
    if (!sized || !open)
      return shapes;
    OpBuilder builder(open.op());
    ReifiedRankedShapedTypeDims dims;
    EXPECT_TRUE(succeeded(
        cast<ReifyRankedShapedTypeOpInterface>(open.op()).reifyResultShapes(builder, dims)))
        << op;
    Evaluator evaluator{sized.function(), std::move(indices)};
    for (ArrayRef<OpFoldResult> shape : dims) {
      std::vector<int64_t> &sizes = shapes.emplace_back();
      for (OpFoldResult size : shape) {
        if (!size) {
          sizes.push_back(ShapedType::kDynamic);
          continue;
        }
        auto constant = dyn_cast<Attribute>(size);
        sizes.push_back(constant ? cast<IntegerAttr>(constant).getInt()
                                 : evaluator.value(cast<Value>(size)));
      }
    }
    return shapes;
  }

  void compare(const std::string &arguments, const std::string &op) {
    Program sized(context, arguments, op);
    ASSERT_TRUE(sized);
    EXPECT_EQ(reified(arguments, op), inferred(sized.op())) << op;
  }

  int64_t onlySize(const std::string &arguments, const std::string &op,
                   std::vector<int64_t> indices = {}) {
    Shapes shapes = reified(arguments, op, std::move(indices));
    return shapes.size() == 1 && shapes[0].size() == 1 ? shapes[0][0] : -1;
  }

  MLIRContext context;
};

std::string tensor(int64_t size) { return "tensor<" + std::to_string(size) + "xf32>"; }

TEST_F(ResultSizes, FollowFromThoseOfOperands) {
  std::pair<const char *, const char *> cases[] = {
      {"%x: tensor<5x1xf32>, %y: tensor<4x1x7xf32>",
       "aten.add %x, %y {alpha = 1.0} : (tensor<5x1xf32>, tensor<4x1x7xf32>) -> tensor<4x5x7xf32>"},
      {"%x: tensor<4x5x6xf32>", "aten.sum %x dim [0, 2] : (tensor<4x5x6xf32>) -> tensor<5xf32>"},
      {"%x: tensor<4x5x6xf32>",
       "aten.amax %x dim [1] keepdim : (tensor<4x5x6xf32>) -> tensor<4x1x6xf32>"},
      {"%x: tensor<4x5xf32>", "aten.argmax %x dim 0 : (tensor<4x5xf32>) -> tensor<5xi64>"},
      {"%x: tensor<4x5x6xf32>",
       "aten.permute %x [2, 0, 1] : (tensor<4x5x6xf32>) -> tensor<6x4x5xf32>"},
      {"%x: tensor<4x5x6xf32>",
       "aten.transpose %x [0, 2] : (tensor<4x5x6xf32>) -> tensor<6x5x4xf32>"},
      {"%x: tensor<4x5xf32>", "aten.unsqueeze %x dim 1 : (tensor<4x5xf32>) -> tensor<4x1x5xf32>"},
      {"%x: tensor<4x1x5xf32>", "aten.squeeze %x dim [1] : (tensor<4x1x5xf32>) -> tensor<4x5xf32>"},
      {"%x: tensor<4x5xf32>", "aten.flip %x [1] : (tensor<4x5xf32>) -> tensor<4x5xf32>"},
      {"%x: tensor<4x5x6xf32>",
       "aten.select %x dim 1 at -1 : (tensor<4x5x6xf32>) -> tensor<4x6xf32>"},
      {"%x: tensor<4x5xf32>", "aten.constant_pad_nd %x [1, 2, -1, 0] {value = 0.0} : "
                              "(tensor<4x5xf32>) -> tensor<3x8xf32>"},
      {"%x: tensor<4x5xf32>, %y: tensor<4x3xf32>",
       "aten.cat %x, %y, %x dim 1 : (tensor<4x5xf32>, tensor<4x3xf32>, tensor<4x5xf32>) -> "
       "tensor<4x13xf32>"},
      {"%x: tensor<4x5xf32>", "aten.stack %x, %x dim 1 : (tensor<4x5xf32>, tensor<4x5xf32>) -> "
                              "tensor<4x2x5xf32>"},
      {"%w: tensor<9x5xf32>, %i: tensor<2x3xi64>",
       "aten.embedding %w at %i : (tensor<9x5xf32>, tensor<2x3xi64>) -> tensor<2x3x5xf32>"},
      {"%x: tensor<4x5xf32>, %i: tensor<2x3xi64>",
       "aten.gather %x dim 1 at %i : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>"},
      {"%x: tensor<4x5xf32>, %i: tensor<3xi64>",
       "aten.index_select %x dim 0 at %i : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>"},
      {"%x: tensor<4x5x6xf32>, %i: tensor<2x1xi64>, %j: tensor<3xi64>",
       "aten.index %x[:, %i, %j] : (tensor<4x5x6xf32>, tensor<2x1xi64>, tensor<3xi64>) -> "
       "tensor<4x2x3xf32>"},
      {"%x: tensor<4x5x6xf32>, %i: tensor<2x1xi64>, %j: tensor<3xi64>",
       "aten.index %x[%i, :, %j] : (tensor<4x5x6xf32>, tensor<2x1xi64>, tensor<3xi64>) -> "
       "tensor<2x3x5xf32>"},
      {"%x: tensor<2x4x5xf32>, %w: tensor<7x5xf32>",
       "aten.linear %x, %w : (tensor<2x4x5xf32>, tensor<7x5xf32>) -> tensor<2x4x7xf32>"},
      {"%x: tensor<5xf32>, %y: tensor<3x5x6xf32>",
       "aten.matmul %x, %y : (tensor<5xf32>, tensor<3x5x6xf32>) -> tensor<3x6xf32>"},
      {"%x: tensor<4x5xf32>, %y: tensor<3x5x6xf32>",
       "aten.matmul %x, %y : (tensor<4x5xf32>, tensor<3x5x6xf32>) -> tensor<3x4x6xf32>"},
      {"%x: tensor<2x4x5xf32>, %y: tensor<2x5x6xf32>",
       "aten.bmm %x, %y : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>"},
      {"%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x3xf32>",
       "aten.scaled_dot_product_attention %q, %k, %v : (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, "
       "tensor<2x4x6x3xf32>) -> tensor<2x4x5x3xf32>"},
      {"%x: tensor<2x3x7x8xf32>",
       "aten.adaptive_avg_pool %x to [2, 3] : (tensor<2x3x7x8xf32>) -> tensor<2x3x2x3xf32>"},
      {"%x: tensor<2x3x7x8xf32>",
       "aten.windows %x kernel [3, 2] stride [2] padding [1] dilation [1] : "
       "(tensor<2x3x7x8xf32>) -> tensor<2x3x3x2x4x5xf32>"},
  };
  for (auto [arguments, op] : cases)
    compare(arguments, op);
}

TEST_F(ResultSizes, AreThoseThatAnOpIsGiven) {
  EXPECT_EQ(reified("%x: tensor<6x4xf32>, %n: index",
                    "aten.view %x [3, %n] : (tensor<6x4xf32>) -> tensor<?x?xf32>", {0, 8}),
            (Shapes{{3, 8}}));
  EXPECT_EQ(reified("%x: tensor<1x4xf32>, %n: index",
                    "aten.expand %x [%n, 4] : (tensor<1x4xf32>) -> tensor<?x?xf32>", {0, 8}),
            (Shapes{{8, 4}}));
  EXPECT_EQ(reified("%x: tensor<1x2x3x4xf32>, %n: index",
                    "aten.fold %x to [%n] stride [2] padding [0] dilation [1] : "
                    "(tensor<1x2x3x4xf32>) -> tensor<?x?x?xf32>",
                    {0, 9}),
            (Shapes{{1, 2, 9}}));
  EXPECT_EQ(reified("%x: tensor<6xf32>, %n: index, %m: index",
                    "%a:2 = aten.split_with_sizes %x [%n, %m] dim 0 : (tensor<6xf32>) -> "
                    "(tensor<?xf32>, tensor<?xf32>)",
                    {0, 4, 2}),
            (Shapes{{4}, {2}}));
}

TEST_F(ResultSizes, CountWhatASliceTakes) {
  for (int64_t size : {0, 1, 5})
    for (int64_t start = -7; start <= 7; start += 2)
      for (int64_t end = -7; end <= 7; ++end)
        for (int64_t step : {1, 2, 3}) {
          int64_t count = 0, from = start < 0 ? start + size : start;
          for (int64_t i = std::max<int64_t>(from, 0); i < (end < 0 ? end + size : end); i += step)
            count += i < size;
          std::string arguments = "%x: " + tensor(size) + ", %a: index, %b: index";
          std::string type = "(" + tensor(size) + ") -> tensor<?xf32>";
          std::string op = "aten.slice %x dim 0 [%a : %b : " + std::to_string(step) + "] : ";
          EXPECT_EQ(onlySize(arguments, op + type, {0, start, end}), count)
              << size << " [" << start << " : " << end << " : " << step << "]";
        }
}

TEST_F(ResultSizes, CountTheElementsOfARange) {
  for (int64_t start : {-3, 0, 4})
    for (int64_t end = -6; end <= 6; ++end)
      for (int64_t step : {-3, -1, 1, 2}) {
        int64_t count = 0;
        for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
          ++count;
        EXPECT_EQ(
            onlySize("%a: index, %b: index",
                     "aten.arange [%a : %b : " + std::to_string(step) + "] i64 : tensor<?xi64>",
                     {start, end}),
            count)
            << start << " " << end << " " << step;
      }
}

TEST_F(ResultSizes, CountThePositionsOfAWindow) {
  for (int64_t size = 5; size <= 11; ++size)
    for (int64_t kernel : {2, 3, 5})
      for (int64_t stride : {1, 2, 3})
        for (int64_t padding = 0; padding <= kernel / 2; ++padding)
          for (bool ceil : {false, true}) {
            // With `ceil`, a last position may reach beyond the padding, if it starts before it.
            int64_t count = 0;
            for (int64_t i = 0;; ++i) {
              int64_t first = i * stride - padding, end = size + padding;
              bool wasWithin = i == 0 || first - stride + kernel < end;
              bool counts = ceil ? first < size && wasWithin : first + kernel <= end;
              if (!counts)
                break;
              ++count;
            }
            std::string shape = std::to_string(size) + "x" + std::to_string(size);
            auto list = [](int64_t value) { return "[" + std::to_string(value) + "]"; };
            std::string both = "[" + std::to_string(kernel) + ", " + std::to_string(kernel) + "]";
            std::string type = "tensor<1x1x" + shape + "xf32>";
            EXPECT_EQ(reified("%x: " + type, "aten.max_pool %x kernel " + both + " stride " +
                                                 list(stride) + " padding " + list(padding) +
                                                 " dilation [1]" + (ceil ? " ceil" : "") + " : (" +
                                                 type + ") -> tensor<?x?x?x?xf32>"),
                      (Shapes{{1, 1, count, count}}))
                << size << " " << kernel << " " << stride << " " << padding << " " << ceil;
          }
}

} // namespace
