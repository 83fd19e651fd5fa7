// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slices of tensors against the layout's definition of where an element is.
#include "runtime/executor/Slice.h"
#include "runtime/support/Copy.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace shardc::rt;
using shardc::Layout;
using shardc::Mesh;

namespace {

void checkAllRanks(const Mesh &mesh, const std::string &text, std::vector<int64_t> global) {
  auto parsed = shardc::parseLayout(mesh, text);
  ASSERT_TRUE(parsed) << parsed.error;
  const Layout &layout = *parsed.value;
  ASSERT_TRUE(layout.validate(global).empty()) << text << ": " << layout.validate(global)[0];
  // The global tensor is stored transposed (first dim fastest), so that strides matter.
  std::vector<int64_t> strides;
  int64_t size = 1;
  for (int64_t extent : global) {
    strides.push_back(size);
    size *= extent;
  }
  std::vector<int32_t> whole(static_cast<size_t>(std::max<int64_t>(size, 1)));
  std::iota(whole.begin(), whole.end(), 100);
  std::vector<int32_t> rebuilt(whole.size(), -1);
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    auto coordinate = mesh.coordinateOf(rank);
    Slice slice = Slice::make(layout, global, coordinate);
    ASSERT_EQ(slice.local, layout.localShapeOfRank(global, rank)) << text;
    std::vector<int32_t> local(static_cast<size_t>(slice.elements()), -7);
    slice.extract(local.data(), whole.data(), strides.data(), 4);
    for (int64_t i = 0; i < slice.elements(); ++i) {
      std::vector<int64_t> index(global.size());
      int64_t rest = i;
      for (size_t d = global.size(); d-- > 0;) {
        index[d] = rest % slice.local[d];
        rest /= slice.local[d];
      }
      std::vector<int64_t> at = layout.globalIndex(global, *coordinate, index);
      int64_t offset = std::inner_product(at.begin(), at.end(), strides.begin(), int64_t(0));
      ASSERT_EQ(local[size_t(i)], whole[size_t(offset)]) << text << " rank " << rank;
    }
    if (slice.isBox() && slice.elements() > 0) {
      std::vector<int64_t> zero(global.size(), 0);
      std::vector<int64_t> first = layout.globalIndex(global, *coordinate, zero);
      EXPECT_EQ(slice.offset(strides.data()),
                std::inner_product(first.begin(), first.end(), strides.begin(), int64_t(0)));
    }
    for (int64_t most : {1, 2, 3, 7, 1000}) {
      std::vector<int32_t> inPieces;
      for (const Slice &piece : slice.pieces(most)) {
        ASSERT_GT(piece.elements(), 0);
        ASSERT_LE(piece.elements(), most);
        std::vector<int32_t> one(static_cast<size_t>(piece.elements()));
        piece.extract(one.data(), whole.data(), strides.data(), 4);
        inPieces.insert(inPieces.end(), one.begin(), one.end());
      }
      ASSERT_EQ(inPieces, local) << text << " rank " << rank << " in pieces of " << most;
    }
    if (writesPart(layout, coordinate))
      slice.insert(rebuilt.data(), strides.data(), local.data(), 4);
  }
  EXPECT_TRUE(size == 0 || rebuilt == whole) << text << ": the parts must cover the tensor";
}

} // namespace

TEST(Slice, AgreesWithTheLayoutOnEveryRank) {
  Mesh mesh({{"dp", 2}, {"tp", 3}});
  for (const char *text :
       {"[R, R]", "[S(0), R]", "[R, S(1)]", "[S(0), S(1)]", "[S(1), S(0)]", "[S(0), S(0)]",
        "[S(0), S(0)], order = [1, 0]", "[R, S(1, blocks = 3)]", "[S(0), S(1, blocks = 3)]",
        "[R, S(0, sizes = [4, 0, 1])]", "[S(1, blocks = 3), S(1)]"})
    checkAllRanks(mesh, text, {5, 9, 2});
  checkAllRanks(mesh, "[S(0), S(0)]", {1});
  checkAllRanks(mesh, "[S(0), R]", {0, 3});
  checkAllRanks(mesh, "[R, R]", {});
}

TEST(Slice, MeshesThatListDevices) {
  checkAllRanks(Mesh({{"a", 2}, {"b", 2}}, {2, 0, 3, 1}), "[S(0), S(1)]", {5, 3});
}

TEST(Slice, OutsideTheMeshIsEmpty) {
  Mesh mesh({{"tp", 2}});
  Slice slice = Slice::make(*shardc::parseLayout(mesh, "[R]").value, {4, 3}, std::nullopt);
  EXPECT_EQ(slice.local, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(slice.elements(), 0);
  EXPECT_FALSE(writesPart(*shardc::parseLayout(mesh, "[R]").value, std::nullopt));
}
