// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that are sums of products over some dims.
#include "importers/torch_export/import/Formula.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A tensor whose dims have labels, each of them once.
struct Labelled {
  Expr value;
  SmallVector<int> labels;

  bool has(int label) const { return llvm::is_contained(labels, label); }
  int64_t dimOf(int label) const {
    return std::distance(labels.begin(), llvm::find(labels, label));
  }
};

/// torch.einsum, one operand after the other. What the dots stand for are dims with labels above
/// those of letters, counted from the last one.
class Einsum {
public:
  explicit Einsum(Call &call) : f(call) {}

  FailureOr<Results> build() {
    StringRef equation = f.text("equation");
    SmallVector<Expr> tensors = f.tensors("tensors");
    if (f.failed() || tensors.empty() || failed(read(equation, tensors)))
      return failure();
    return contract();
  }

  /// The dims of three tensors in the order of the product's, some of which each of them lacks;
  /// those of `sumdim` are summed.
  FailureOr<Results> buildTrilinear() {
    std::array<Expr, 3> tensors = {f.tensor("i1"), f.tensor("i2"), f.tensor("i3")};
    std::array<SmallVector<int64_t>, 3> missing;
    if (f.failed())
      return failure();
    auto listOf = [&](StringRef name) {
      return f.call.integers(name).value_or(std::nullopt).value_or(SmallVector<int64_t>());
    };
    for (size_t i = 0; i < missing.size(); ++i)
      missing[i] = listOf("expand" + std::to_string(i + 1));
    int64_t rank = tensors[0].rank() + static_cast<int64_t>(missing[0].size());
    SmallVector<int64_t> summedDims = listOf("sumdim");
    for (auto [tensor, list] : llvm::zip_equal(tensors, missing)) {
      Labelled operand{tensor, {}};
      for (int label = 0; label < rank; ++label)
        if (!llvm::is_contained(list, label))
          operand.labels.push_back(label);
      if (static_cast<int64_t>(operand.labels.size()) != tensor.rank())
        return f.call.error() << "the tensors have not the same number of dims with those added";
      operands.push_back(operand);
    }
    for (int label = 0; label < rank; ++label) {
      if (llvm::none_of(operands, [&](const Labelled &x) { return x.has(label); }))
        return f.call.error() << "no tensor has dim " << label << " of the product";
      if (!llvm::is_contained(summedDims, label))
        output.push_back(label);
    }
    dropUnits();
    return contract();
  }

private:
  static constexpr int kDots = 256;

  FailureOr<Results> contract() {
    Labelled all = operands.front();
    for (size_t i = 1; i < operands.size(); ++i) {
      llvm::SmallSetVector<int, 8> kept(output.begin(), output.end());
      for (size_t j = i + 1; j < operands.size(); ++j)
        kept.insert(operands[j].labels.begin(), operands[j].labels.end());
      all = product(all, operands[i], kept.getArrayRef());
    }
    all = summed(all, [&](int label) { return !llvm::is_contained(output, label); });
    return f.result(ordered(all, output));
  }

  /// The labels of a list such as `ij...k`; the dots are `dots` dims.
  LogicalResult labelsOf(StringRef list, int64_t dots, SmallVectorImpl<int> &labels) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] == ' ')
        continue;
      if (list.substr(i).starts_with("...")) {
        for (int64_t k = dots; k > 0; --k)
          labels.push_back(kDots + static_cast<int>(k));
        i += 2;
      } else if (llvm::isAlpha(list[i])) {
        labels.push_back(list[i]);
      } else {
        return f.call.error() << "the equation '" << list << "' is not understood";
      }
    }
    return success();
  }

  LogicalResult read(StringRef equation, ArrayRef<Expr> tensors) {
    auto [left, right] = equation.split("->");
    SmallVector<StringRef> lists;
    left.split(lists, ',');
    if (lists.size() != tensors.size())
      return f.call.error() << "the equation has " << lists.size() << " operands, not "
                            << tensors.size();
    int64_t most = 0;
    for (auto [list, tensor] : llvm::zip_equal(lists, tensors)) {
      int64_t letters = llvm::count_if(list, llvm::isAlpha);
      int64_t dots = list.contains("...") ? tensor.rank() - letters : 0;
      Labelled operand{tensor, {}};
      if (failed(labelsOf(list, dots, operand.labels)))
        return failure();
      if (static_cast<int64_t>(operand.labels.size()) != tensor.rank())
        return f.call.error() << "'" << list << "' does not name the dims of a tensor of rank "
                              << tensor.rank();
      most = std::max(most, dots);
      operands.push_back(diagonals(operand));
    }
    if (equation.contains("->")) {
      if (failed(labelsOf(right, most, output)))
        return failure();
    } else {
      for (int64_t k = most; k > 0; --k)
        output.push_back(kDots + static_cast<int>(k));
      std::string letters;
      for (char letter : left)
        if (llvm::isAlpha(letter) && left.count(letter) == 1)
          letters.push_back(letter);
      llvm::sort(letters);
      output.append(letters.begin(), letters.end());
    }
    dropUnits();
    return success();
  }

  /// Of a label that an operand has twice, the elements where both positions are equal.
  Labelled diagonals(Labelled x) {
    for (size_t i = 0; i < x.labels.size(); ++i)
      for (size_t j = x.labels.size(); --j > i;) {
        if (x.labels[j] != x.labels[i])
          continue;
        SmallVector<OpFoldResult> sizes = f.sizes(x.value);
        auto along = [&](size_t dim) {
          SmallVector<OpFoldResult> shape(sizes.size(), f.one());
          shape[dim] = sizes[dim];
          return view(f.range(sizes[dim]), shape);
        };
        x.value = sum(where(eq(along(i), along(j)), x.value, 0), static_cast<int64_t>(j), false);
        x.value = shardc::cast(x.value, f.call.resultElementType());
        x.labels.erase(x.labels.begin() + j);
      }
    return x;
  }

  /// A dim of one element is repeated where another operand has more of that label.
  void dropUnits() {
    for (Labelled &x : operands)
      for (size_t i = x.labels.size(); i-- > 0;) {
        bool isMore = llvm::any_of(operands, [&](const Labelled &y) {
          return y.has(x.labels[i]) && aten::shapeOf(y.value.value)[y.dimOf(x.labels[i])] != 1;
        });
        if (!isMore || aten::shapeOf(x.value.value)[i] != 1)
          continue;
        x.value = f.squeeze(x.value, static_cast<int64_t>(i));
        x.labels.erase(x.labels.begin() + i);
      }
  }

  template <typename Predicate> Labelled summed(Labelled x, Predicate isSummed) {
    SmallVector<int64_t> dims;
    SmallVector<int> kept;
    for (auto [dim, label] : llvm::enumerate(x.labels))
      if (isSummed(label))
        dims.push_back(static_cast<int64_t>(dim));
      else
        kept.push_back(label);
    return {shardc::cast(sum(x.value, dims, false), f.call.resultElementType()), kept};
  }

  Expr ordered(const Labelled &x, ArrayRef<int> labels) {
    SmallVector<int64_t> order;
    for (int label : labels)
      order.push_back(x.dimOf(label));
    return llvm::is_sorted(order) ? x.value : f.permute(x.value, order);
  }

  /// With these labels in this order; dims that it does not have are of one element.
  Expr spread(const Labelled &x, ArrayRef<int> labels) {
    SmallVector<int> own;
    llvm::copy_if(labels, std::back_inserter(own), [&](int label) { return x.has(label); });
    Expr value = ordered(x, own);
    for (auto [dim, label] : llvm::enumerate(labels))
      if (!x.has(label))
        value = unsqueeze(value, static_cast<int64_t>(dim));
    return value;
  }

  Labelled product(Labelled x, Labelled y, ArrayRef<int> kept) {
    auto isKept = [&](int label) { return llvm::is_contained(kept, label); };
    x = summed(x, [&](int label) { return !y.has(label) && !isKept(label); });
    y = summed(y, [&](int label) { return !x.has(label) && !isKept(label); });
    SmallVector<int> both, contracted, ofX, ofY;
    for (int label : x.labels)
      (!y.has(label) ? ofX : isKept(label) ? both : contracted).push_back(label);
    llvm::copy_if(y.labels, std::back_inserter(ofY), [&](int label) { return !x.has(label); });
    SmallVector<int> all = both;
    all.append(ofX);
    all.append(ofY);
    if (contracted.empty())
      return {spread(x, all) * spread(y, all), all};
    if (both.empty()) {
      SmallVector<int64_t> xDims, yDims;
      for (int label : contracted) {
        xDims.push_back(x.dimOf(label));
        yDims.push_back(y.dimOf(label));
      }
      return {tensordot(x.value, y.value, xDims, yDims), all};
    }
    // A product of matrices, whose rows, columns and sums may be of several dims each.
    SmallVector<OpFoldResult> sizes;
    auto matrix = [&](const Labelled &of, ArrayRef<int> rows, ArrayRef<int> columns) {
      SmallVector<int> labels = both;
      labels.append(rows.begin(), rows.end());
      labels.append(columns.begin(), columns.end());
      Expr value = ordered(of, labels);
      ArrayRef<OpFoldResult> whole = sizes = f.sizes(value);
      if (rows.size() == 1 && columns.size() == 1)
        return value;
      SmallVector<OpFoldResult> shape(whole.take_front(both.size()));
      shape.push_back(f.product(whole.slice(both.size(), rows.size())));
      shape.push_back(f.product(whole.take_back(columns.size())));
      return view(value, shape);
    };
    Expr left = matrix(x, ofX, contracted);
    SmallVector<OpFoldResult> shape(ArrayRef(sizes).take_front(both.size() + ofX.size()));
    Expr right = matrix(y, contracted, ofY);
    llvm::append_range(shape, ArrayRef(sizes).take_back(ofY.size()));
    Expr value = matmul(left, right);
    return {ofX.size() == 1 && ofY.size() == 1 ? value : view(value, shape), all};
  }

  Formula f;
  SmallVector<Labelled> operands;
  SmallVector<int> output;
};

} // namespace

FailureOr<Results> buildEinsum(Call &call) { return Einsum(call).build(); }
FailureOr<Results> buildTrilinear(Call &call) { return Einsum(call).buildTrilinear(); }

FailureOr<Results> buildTensordot(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  if (f.failed())
    return failure();
  SmallVector<int64_t> xDims, yDims;
  auto read = [&](StringRef name, Expr of, SmallVectorImpl<int64_t> &dims) {
    FailureOr<std::optional<SmallVector<int64_t>>> given = call.integers(name);
    if (failed(given) || !*given)
      return failure();
    for (int64_t value : **given) {
      FailureOr<int64_t> dim = call.dim(value, of.rank());
      if (failed(dim))
        return failure();
      dims.push_back(*dim);
    }
    return success();
  };
  if (failed(read("dims_self", x, xDims)) || failed(read("dims_other", y, yDims)))
    return failure();
  // A dim of one element meets the sum of the other's.
  for (auto [a, b] : llvm::zip_equal(xDims, yDims)) {
    int64_t ofX = aten::shapeOf(x.value)[a], ofY = aten::shapeOf(y.value)[b];
    if (ofX == 1 && ofY != 1)
      y = shardc::cast(sum(y, b, true), x.elementType());
    else if (ofY == 1 && ofX != 1)
      x = shardc::cast(sum(x, a, true), y.elementType());
  }
  return f.result(tensordot(x, y, xDims, yDims));
}

FailureOr<Results> buildBilinear(Call &call) {
  Formula f(call);
  Expr x = f.tensor("input1"), y = f.tensor("input2"), weight = f.tensor("weight"),
       bias = f.tensor("bias");
  if (f.failed())
    return failure();
  Expr rows = tensordot(x, weight, x.rank() - 1, 1);
  Expr result = sum(rows * unsqueeze(y, y.rank() - 1), rows.rank() - 1, false);
  return f.result(bias ? result + bias : result);
}

FailureOr<Results> buildOuter(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("vec2");
  if (f.failed())
    return failure();
  return f.result(unsqueeze(x, 1) * unsqueeze(y, 0));
}

FailureOr<Results> buildInner(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  if (f.failed())
    return failure();
  if (x.rank() == 0 || y.rank() == 0)
    return f.result(x * y);
  return f.result(tensordot(x, y, x.rank() - 1, y.rank() - 1));
}

FailureOr<Results> buildDotAlong(Call &call) {
  Formula f(call);
  Expr x = f.tensor("x"), y = f.tensor("y");
  if (f.failed())
    return failure();
  Expr product = x * y;
  int64_t dim = f.dim("dim", product.rank());
  if (f.failed())
    return failure();
  return f.result(
      sum(product, product.rank() ? ArrayRef<int64_t>(dim) : ArrayRef<int64_t>(), false));
}

FailureOr<Results> buildChain(Call &call) {
  Formula f(call);
  SmallVector<Expr> all = f.tensors(call.schema.find("tensors") ? "tensors" : "matrices");
  if (f.failed() || all.empty())
    return failure();
  Expr product = all.front();
  for (Expr next : llvm::drop_begin(all))
    product = matmul(product, next);
  return f.result(product);
}

FailureOr<Results> buildMatrixPower(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self");
  int64_t n = f.integer("n");
  if (f.failed())
    return failure();
  if (n < 0)
    return call.error() << "a negative power is an inverse, which is not supported";
  if (n == 0) {
    SmallVector<OpFoldResult> sizes = f.sizes(x), rows(sizes.size(), f.one()), columns = rows;
    rows[rows.size() - 2] = sizes[sizes.size() - 2];
    columns.back() = sizes.back();
    Expr isOne =
        eq(view(f.range(sizes[sizes.size() - 2]), rows), view(f.range(sizes.back()), columns));
    return f.result(where(isOne, f.constant(x, 1), 0));
  }
  Expr result, square = x;
  for (; n > 0; n /= 2) {
    if (n % 2 != 0)
      result = result ? matmul(result, square) : square;
    if (n > 1)
      square = matmul(square, square);
  }
  return f.result(result);
}

// Dims in pairs: one of each operand.
FailureOr<Results> buildKronecker(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  int64_t rank = std::max(x.rank(), y.rank());
  auto apart = [&](Expr of, int64_t place) {
    SmallVector<OpFoldResult> own = f.sizes(of), shape(2 * rank, f.one());
    for (auto [i, size] : llvm::enumerate(own))
      shape[2 * (rank - own.size() + i) + place] = size;
    return view(of, shape);
  };
  return f.result(view(apart(x, 0) * apart(y, 1), *sizes));
}

// x1 y2 - x2 y1 and so on, of three elements each.
FailureOr<Results> buildCross(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  if (f.failed())
    return failure();
  int64_t rank = std::max(x.rank(), y.rank()), dim = -1;
  if (call.isNone("dim")) {
    for (dim = 0; dim + 1 < rank && aten::shapeOf(x.value)[dim] != 3;)
      ++dim;
  } else {
    dim = f.dim("dim", rank);
  }
  if (f.failed())
    return failure();
  auto moved = [&](Expr of, int64_t by) {
    int64_t own = dim - (rank - of.rank());
    auto at = [&](int64_t place) { return call.builder.getIndexAttr(place); };
    Expr front = f.slice(of, own, at(by), at(3)), back = f.slice(of, own, at(0), at(by));
    return f.of(f.emit.cat({front.value, back.value}, own));
  };
  return f.result(moved(x, 1) * moved(y, 2) - moved(x, 2) * moved(y, 1));
}

} // namespace shardc::torch_export
