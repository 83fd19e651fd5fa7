// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ElementBoxes.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/TensorView.h"

using namespace mlir;

namespace shardc::aten {

int64_t ElementBox::numElements() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

ElementBox ElementBox::whole(ArrayRef<int64_t> shape) {
  return {Sizes(shape.size(), 0), Sizes(shape.begin(), shape.end())};
}

Sizes stridesOf(ArrayRef<int64_t> sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

Numbers pickBox(ArrayRef<double> source, ArrayRef<int64_t> shape, const ElementBox &box) {
  Sizes strides = stridesOf(shape);
  int64_t offset = 0;
  for (auto [begin, stride] : llvm::zip_equal(box.begin, strides))
    offset += begin * stride;
  return pick(source, box.sizes, offset, strides);
}

Numbers broadcast(Numbers numbers, ArrayRef<int64_t> sizes, ArrayRef<int64_t> to) {
  if (sizes == to ||
      (numbers.size() == size_t(1) && llvm::all_of(to, [](int64_t n) { return n == 1; })))
    return numbers;
  Sizes own = stridesOf(sizes), strides(to.size() - sizes.size(), 0);
  for (auto [size, stride] : llvm::zip_equal(sizes, own))
    strides.push_back(size == 1 ? 0 : stride);
  return pick(numbers, to, 0, strides);
}

void paste(Numbers &to, ArrayRef<int64_t> sizes, size_t dim, int64_t at, const Numbers &part,
           int64_t size) {
  int64_t inner = 1, outer = 1;
  for (auto [i, own] : llvm::enumerate(sizes))
    (i < dim ? outer : inner) *= i == dim ? 1 : own;
  for (int64_t i = 0; i < outer; ++i)
    std::copy_n(part.begin() + i * size * inner, size * inner,
                to.begin() + (i * sizes[dim] + at) * inner);
}

namespace {

/// A part of the dims that a view keeps together: their positions from `begin` to `end`, in
/// row-major order.
std::optional<Run> positionsOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> begin,
                               ArrayRef<int64_t> sizes) {
  Run run{0, 1};
  bool isOpen = false; // of an outer dim several positions are taken
  for (auto [size, first, count] : llvm::zip_equal(shape, begin, sizes)) {
    if (isOpen && count != size)
      return std::nullopt;
    isOpen |= count != 1;
    run = {run.begin * size + first, run.end * size - size + first + count};
  }
  return run;
}

/// The reverse: appends the box of these positions to `box`. Else returns a position where to cut.
std::optional<int64_t> appendBox(ArrayRef<int64_t> shape, Run run, ElementBox &box) {
  int64_t inner = 1, offset = 0;
  for (int64_t size : shape)
    inner *= size;
  bool isOpen = false;
  for (int64_t size : shape) {
    inner /= size;
    if (isOpen) {
      box.begin.push_back(0);
      box.sizes.push_back(size);
      continue;
    }
    Run own{run.begin - offset, run.end - offset};
    int64_t first = own.begin / inner, last = (own.end - 1) / inner;
    isOpen = first != last;
    if (isOpen && own.begin % inner != 0)
      return offset + (first + 1) * inner;
    if (isOpen && own.end % inner != 0)
      return offset + last * inner;
    box.begin.push_back(first);
    box.sizes.push_back(last - first + 1);
    offset += first * inner;
  }
  return std::nullopt;
}

} // namespace

std::variant<ElementBox, Cut> boxBefore(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                        const ElementBox &box) {
  ElementBox result;
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    // Dims that are together the same on both sides.
    size_t firstFrom = i, firstTo = j;
    int64_t products[] = {1, 1};
    auto takeFrom = [&] { products[0] *= from[i++]; };
    auto takeTo = [&] { products[1] *= to[j++]; };
    if (i < from.size())
      takeFrom();
    if (j < to.size())
      takeTo();
    while (products[0] != products[1])
      products[0] < products[1] ? takeFrom() : takeTo();
    while (i < from.size() && from[i] == 1)
      takeFrom();
    while (j < to.size() && to[j] == 1)
      takeTo();
    size_t count = j - firstTo;
    ArrayRef<int64_t> shape = to.slice(firstTo, count);
    ArrayRef<int64_t> begin = ArrayRef(box.begin).slice(firstTo, count);
    ArrayRef<int64_t> sizes = ArrayRef(box.sizes).slice(firstTo, count);
    size_t open = 0; // the first dim of which several positions are taken
    while (open < count && sizes[open] == 1)
      ++open;
    std::optional<Run> run = positionsOf(shape, begin, sizes);
    if (!run)
      return Cut{firstTo + open, begin[open] + sizes[open] / 2};
    if (std::optional<int64_t> at = appendBox(from.slice(firstFrom, i - firstFrom), *run, result)) {
      int64_t inner = 1;
      for (int64_t size : shape.drop_front(open + 1))
        inner *= size;
      int64_t steps = (*at - run->begin) / inner;
      bool isExact = (*at - run->begin) % inner == 0 && steps > 0 && steps < sizes[open];
      return Cut{firstTo + open, begin[open] + (isExact ? steps : sizes[open] / 2)};
    }
  }
  return result;
}

ElementBox operandBox(Value operand, const ElementBox &box) {
  ElementBox own;
  ArrayRef<int64_t> shape = shapeOf(operand);
  size_t missing = box.sizes.size() - shape.size();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    own.begin.push_back(size == 1 ? 0 : box.begin[missing + dim]);
    own.sizes.push_back(size == 1 ? std::min<int64_t>(box.sizes[missing + dim], 1)
                                  : box.sizes[missing + dim]);
  }
  return own;
}

std::optional<ViewedBox> viewedBox(Operation *op, const ElementBox &box) {
  auto view = dyn_cast<TensorViewOpInterface>(op);
  if (!view || view.getViewKind() == ViewKind::Part)
    return std::nullopt;
  std::optional<SmallVector<int64_t>> dims = view.getSourceDims();
  if (!dims)
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  ViewedBox result{{Sizes(shape.size(), 0), Sizes(shape.begin(), shape.end())}, *dims};
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    if (dim < 0)
      continue;
    result.box.begin[dim] = shape[dim] == 1 ? 0 : box.begin[i];
    result.box.sizes[dim] = shape[dim] == 1 ? 1 : box.sizes[i];
  }
  // What no dim of the result comes from has one position.
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(*dims, int64_t(dim)) && size != 1)
      return std::nullopt;
  return result;
}

} // namespace shardc::aten
