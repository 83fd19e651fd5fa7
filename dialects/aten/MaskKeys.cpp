// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/MaskKeys.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/KnownElements.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace shardc::aten {
namespace {

/// Numbers that may be computed: a few seconds.
constexpr int64_t kMostWork = int64_t(1) << 30;
/// Rows that are looked at together.
constexpr int64_t kRows = 64;
/// Pairs that are computed one by one, where bounds do not decide.
constexpr int64_t kSmallTile = 4096;
/// Masks of other dims, which must be equal.
constexpr int64_t kMostOuter = 64;

class MaskReader {
public:
  MaskReader(ArrayRef<AttentionMask> masks, int64_t size, std::string &why)
      : masks(masks), size(size), why(why), known(kMostWork) {}

  /// Of one position of the dims in front; each mask has its own number of these.
  std::optional<VisibleKeys> read(int64_t outer, int64_t mostSeen) {
    at = outer;
    VisibleKeys keys;
    int64_t seen = 0;
    SmallVector<Run> runs;
    for (int64_t first = 0; first < size; first += kRows) {
      rows = {first, std::min(first + kRows, size)};
      tile.assign(rows.size() * size, 1);
      for (const AttentionMask &mask : masks)
        if (!fill(mask, rows, {0, size}))
          return std::nullopt;
      for (int64_t row = 0; row < rows.size(); ++row) {
        const char *of = tile.data() + row * size;
        runs.clear();
        for (int64_t key = 0; key < size; ++key)
          if (of[key]) {
            if (runs.empty() || runs.back().end != key)
              runs.push_back({key, key});
            runs.back().end = key + 1;
            ++seen;
          }
        keys.append(runs);
      }
      if (seen > mostSeen)
        return std::nullopt;
    }
    return keys;
  }

private:
  /// The part of a mask, of which a dim of size 1 stands for all positions.
  ElementBox boxOf(const AttentionMask &mask, Run queries, Run keys) const {
    ArrayRef<int64_t> shape = shapeOf(mask.tensor);
    ElementBox box{SmallVector<int64_t, 4>(shape.size(), 0),
                   SmallVector<int64_t, 4>(shape.size(), 1)};
    size_t rank = shape.size();
    int64_t rest = at;
    for (size_t dim = rank - 2; dim-- > 0; rest /= shape[dim])
      box.begin[dim] = rest % shape[dim];
    for (auto [dim, run] : {std::pair(rank - 2, queries), std::pair(rank - 1, keys)})
      if (shape[dim] != 1) {
        box.begin[dim] = run.begin;
        box.sizes[dim] = run.size();
      }
    return box;
  }

  /// Whether a key is seen, by the number that the mask has for it.
  std::optional<bool> sees(const AttentionMask &mask, double number) {
    Type type = elementTypeOf(mask.tensor);
    if (type.isInteger(1))
      return (number != 0) != mask.hides;
    if (number == 0)
      return true;
    auto lowest = APFloat::getLargest(cast<FloatType>(type).getFloatSemantics(), /*Negative=*/true);
    bool isInexact = false;
    lowest.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
    if (number == lowest.convertToDouble() || (std::isinf(number) && number < 0))
      return false;
    why = number < -1000
              ? llvm::formatv("its mask adds {0:e2} to scores, which need not hide a key as "
                              "-infinity does",
                              number)
                    .str()
              : "its mask adds other numbers to scores than 0 and -infinity";
    return std::nullopt;
  }

  bool fill(const AttentionMask &mask, Run queries, Run keys) {
    ElementBox box = boxOf(mask, queries, keys);
    std::optional<NumberRange> range = known.range(mask.tensor, box);
    if (range && range->isOne()) {
      std::optional<bool> isSeen = sees(mask, range->low);
      if (!isSeen)
        return false;
      for (int64_t query = queries.begin; query < queries.end && !*isSeen; ++query)
        std::fill_n(place(query) + keys.begin, keys.size(), 0);
      return true;
    }
    if (queries.size() * keys.size() > kSmallTile) {
      if (queries.size() >= keys.size()) {
        int64_t half = queries.begin + queries.size() / 2;
        return fill(mask, {queries.begin, half}, keys) && fill(mask, {half, queries.end}, keys);
      }
      int64_t half = keys.begin + keys.size() / 2;
      return fill(mask, queries, {keys.begin, half}) && fill(mask, queries, {half, keys.end});
    }
    std::optional<Numbers> numbers = known.elements(mask.tensor, box);
    if (!numbers) {
      if (known.isWorkDone())
        why = "its mask takes too long to look at";
      return false;
    }
    size_t rank = box.sizes.size();
    int64_t step = box.sizes[rank - 1] == 1 ? 0 : 1;
    int64_t rowStep = box.sizes[rank - 2] == 1 ? 0 : box.sizes[rank - 1];
    for (int64_t i = 0; i < queries.size(); ++i)
      for (int64_t j = 0; j < keys.size(); ++j) {
        std::optional<bool> isSeen = sees(mask, (*numbers)[i * rowStep + j * step]);
        if (!isSeen)
          return false;
        if (!*isSeen)
          place(queries.begin + i)[keys.begin + j] = 0;
      }
    return true;
  }

  char *place(int64_t query) { return tile.data() + (query - rows.begin) * size; }

  ArrayRef<AttentionMask> masks;
  int64_t size, at = 0;
  std::string &why;
  KnownElements known;
  Run rows;
  std::vector<char> tile;
};

} // namespace

std::optional<VisibleKeys> visibleKeys(ArrayRef<AttentionMask> masks, int64_t size,
                                       int64_t mostSeen, std::string &why) {
  SmallVector<int64_t> outer;
  for (const AttentionMask &mask : masks) {
    ArrayRef<int64_t> shape = shapeOf(mask.tensor);
    if (shape.size() < 2 || llvm::any_of(shape, ShapedType::isDynamic) ||
        !llvm::all_of(shape.take_back(2), [=](int64_t n) { return n == size || n == 1; }))
      return std::nullopt;
    int64_t own = 1;
    for (int64_t n : shape.drop_back(2))
      own *= n;
    if (own == 0 || own > kMostOuter)
      return std::nullopt;
    outer.push_back(own);
  }
  // Each mask has dims in front of its own, so that each by itself must be the same along these.
  // (Alone it may leave more keys than all together.)
  for (auto [mask, own] : llvm::zip_equal(masks, outer)) {
    if (own == 1)
      continue;
    MaskReader alone(mask, size, why);
    std::optional<VisibleKeys> first = alone.read(0, size * size);
    if (!first)
      return std::nullopt;
    for (int64_t i = 1; i < own; ++i)
      if (alone.read(i, size * size) != first) {
        why = "its mask is not the same for all heads and for all of the batch";
        return std::nullopt;
      }
  }
  return MaskReader(masks, size, why).read(0, mostSeen);
}

} // namespace shardc::aten
