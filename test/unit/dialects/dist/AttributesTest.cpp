// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of attributes: sizes, extents and groups against numbers worked out by hand.

#include "dialects/dist/Dist.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {
class AttributesTest : public ::testing::Test {
protected:
  AttributesTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<DistDialect>();
    mesh = Mesh({{"dp", 2}, {"tp", 4}});
  }

  static std::optional<int64_t> noSymbols(StringRef) { return std::nullopt; }

  MLIRContext context;
  Mesh mesh;
};
} // namespace

TEST_F(AttributesTest, LayoutsAreUniqued) {
  Layout layout(mesh, {Placement::shard(0), Placement::partial()});
  auto attr = LayoutAttr::get(&context, layout);
  EXPECT_EQ(attr, LayoutAttr::get(&context, layout));
  EXPECT_EQ(attr.getValue(), layout);
  EXPECT_EQ(attr.getMesh().getValue(), mesh);
  // An order among axes of different dims says nothing; among axes of one dim it does.
  Layout different(mesh, {Placement::shard(0), Placement::shard(1)});
  Layout swapped(mesh, {Placement::shard(0), Placement::shard(1)}, {1, 0});
  EXPECT_EQ(LayoutAttr::get(&context, different), LayoutAttr::get(&context, swapped));
  Layout same(mesh, {Placement::shard(0), Placement::shard(0)});
  Layout sameSwapped(mesh, {Placement::shard(0), Placement::shard(0)}, {1, 0});
  EXPECT_NE(LayoutAttr::get(&context, same), LayoutAttr::get(&context, sameSwapped));
}

TEST_F(AttributesTest, SizesAreCanonical) {
  auto a = SizeAttr::get(&context, "a"), b = SizeAttr::get(&context, "b");
  auto two = SizeAttr::get(&context, 2);
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::Mul, a, b),
            SizeAttr::combine(AffineExprKind::Mul, b, a));
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::Add, a, a),
            SizeAttr::combine(AffineExprKind::Mul, two, a));
  // What cancels is no longer a symbol of the size.
  auto zero = SizeAttr::combine(AffineExprKind::Mul, a, SizeAttr::get(&context, int64_t(0)));
  EXPECT_EQ(zero.getConstant(), 0);
  EXPECT_TRUE(zero.getSymbols().empty());
}

TEST_F(AttributesTest, SizesHaveValues) {
  auto a = SizeAttr::get(&context, "a"), b = SizeAttr::get(&context, "b");
  auto product = SizeAttr::combine(AffineExprKind::Mul, a, b);
  auto value = [](StringRef name) { return std::optional<int64_t>(name == "a" ? 7 : 3); };
  EXPECT_EQ(product.evaluate(value), 21);
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::FloorDiv, a, b).evaluate(value), 2);
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::CeilDiv, a, b).evaluate(value), 3);
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::Mod, a, b).evaluate(value), 1);
  EXPECT_EQ(product.evaluate(noSymbols), std::nullopt);
  auto huge = [](StringRef) { return std::optional<int64_t>(int64_t(1) << 40); };
  EXPECT_EQ(product.evaluate(huge), std::nullopt);
  auto none = [](StringRef) { return std::optional<int64_t>(0); };
  EXPECT_EQ(SizeAttr::combine(AffineExprKind::FloorDiv, a, b).evaluate(none), std::nullopt);
}

TEST_F(AttributesTest, ExtentsFollowNestedChunks) {
  // Five over dp is 3, 2; 3 over tp is 1, 1, 1, 0 and 2 over tp is 1, 1, 0, 0 (L3a).
  auto layout = LayoutAttr::get(&context, Layout(mesh, {Placement::shard(0), Placement::shard(0)}));
  auto extents = ExtentsAttr::get(SizeAttr::get(&context, 5), layout, 0);
  int64_t expected[2][4] = {{1, 1, 1, 0}, {1, 1, 0, 0}};
  for (int64_t dp = 0; dp < 2; ++dp)
    for (int64_t tp = 0; tp < 4; ++tp)
      EXPECT_EQ(extents.evaluate({dp, tp}, noSymbols), expected[dp][tp]);
  EXPECT_EQ(extents.getConstant(), std::nullopt);
  EXPECT_EQ(ExtentsAttr::get(SizeAttr::get(&context, 16), layout, 0).getConstant(), 2);
  // A dim that is not split needs no mesh.
  auto whole = ExtentsAttr::get(SizeAttr::get(&context, 5), layout, 1);
  EXPECT_EQ(whole, ExtentsAttr::get(SizeAttr::get(&context, 5)));
  EXPECT_EQ(whole.getConstant(), 5);
}

TEST_F(AttributesTest, ExtentsOfSymbols) {
  auto layout =
      LayoutAttr::get(&context, Layout(mesh, {Placement::shard(0), Placement::replicate()}));
  auto extents = ExtentsAttr::get(SizeAttr::get(&context, "n"), layout, 0);
  auto seven = [](StringRef) { return std::optional<int64_t>(7); };
  EXPECT_EQ(extents.evaluate({0, 3}, seven), 4);
  EXPECT_EQ(extents.evaluate({1, 0}, seven), 3);
  EXPECT_EQ(extents.evaluate({1, 0}, noSymbols), std::nullopt);
  EXPECT_EQ(extents.getConstant(), std::nullopt);
}

// Forms that no text can have, but code could build.
TEST_F(AttributesTest, ExtentsAreASizeOrATable) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { said = d.str(); });
  auto make = [&](SizeAttr size, DimSplit split, ArrayRef<int64_t> table) {
    Location loc = UnknownLoc::get(&context);
    return ExtentsAttr::getChecked([&] { return emitError(loc); }, &context,
                                   MeshAttr::get(&context, mesh), size, split, table);
  };
  DimSplit split{{AxisSplit{1, 4, 1, 1, {}}}}, other{{AxisSplit{1, 3, 1, 1, {}}}};
  SizeAttr eight = SizeAttr::get(&context, 8);
  SmallVector<int64_t> table{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_TRUE(make(eight, split, {}));
  EXPECT_TRUE(make(SizeAttr(), {}, table));
  EXPECT_FALSE(make(SizeAttr(), split, table));
  EXPECT_EQ(said, "a table is not split over axes");
  EXPECT_FALSE(make(eight, split, table));
  EXPECT_EQ(said, "expected a size or a table, got both");
  EXPECT_FALSE(make(eight, other, {}));
  EXPECT_EQ(said, "the split of axis \"tp\" is for another mesh");
  EXPECT_FALSE(make(eight, DimSplit{{AxisSplit{7, 4, 1, 1, {}}}}, {}));
  EXPECT_EQ(said, "the mesh has no axis 7");
}

TEST_F(AttributesTest, GroupsCompareByRanks) {
  auto meshAttr = MeshAttr::get(&context, mesh);
  auto name = [&](StringRef text) { return StringAttr::get(&context, text); };
  auto dp = AxesAttr::get(&context, meshAttr, {name("dp")});
  EXPECT_EQ(dp.getGroupSize(), 2);
  std::vector<std::vector<int64_t>> pairs = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(dp.getRankLists(), pairs);
  // The same groups, written as lists in another order of groups.
  auto lists = GroupsAttr::get(&context, 2, {2, 6, 0, 4, 3, 7, 1, 5});
  EXPECT_NE(Attribute(dp), Attribute(lists));
  EXPECT_EQ(dp.getCanonicalGroup(), lists.getCanonicalGroup());
  // Another order of positions is another group.
  auto reversed = GroupsAttr::get(&context, 2, {4, 0, 5, 1, 6, 2, 7, 3});
  EXPECT_NE(dp.getCanonicalGroup(), reversed.getCanonicalGroup());
  // Listing axes in another order permutes positions.
  auto tpdp = AxesAttr::get(&context, meshAttr, {name("tp"), name("dp")});
  std::vector<std::vector<int64_t>> all = {{0, 4, 1, 5, 2, 6, 3, 7}};
  EXPECT_EQ(tpdp.getRankLists(), all);
  auto named = NamedGroupAttr::get(&context, name("0"), 64);
  EXPECT_EQ(named.getRankLists(), std::nullopt);
  EXPECT_EQ(named.getCanonicalGroup(), Attribute(named));
}
