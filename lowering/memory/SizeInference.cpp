// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/SizeInference.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "lowering/linalg/Iteration.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::memory {
namespace {

struct Inferrer {
  const IndexMath &math;
  Operation *op;
  unsigned result;
  SizesOf sizesOf;
  IndexOf index;

  Size mixed(Value dynamic, int64_t fixed) {
    return dynamic ? Size(index(dynamic)) : math.constant(fixed);
  }
  Sizes mixed(ArrayRef<int64_t> fixed, ValueRange dynamic) {
    Sizes sizes;
    for (int64_t size : fixed) {
      if (!ShapedType::isDynamic(size)) {
        sizes.push_back(math.constant(size));
        continue;
      }
      sizes.push_back(Size(index(dynamic.front())));
      dynamic = dynamic.drop_front();
    }
    return sizes;
  }

  /// Of ops that loops describe: each dim of the result is a loop that some operand has.
  std::optional<Sizes> fromIteration() {
    std::optional<Iteration> iteration = describeIteration(op);
    if (!iteration)
      return std::nullopt;
    SmallVector<Size> loops(iteration->loops.size());
    for (auto [loop, extent] : llvm::enumerate(iteration->loops))
      if (!ShapedType::isDynamic(extent))
        loops[loop] = math.constant(extent);
    for (auto [operand, access] : llvm::zip_equal(op->getOperands(), iteration->operands)) {
      if (access.loops.empty())
        continue;
      Sizes sizes = sizesOf(operand);
      for (auto [dim, loop] : llvm::enumerate(access.loops))
        if (loop != kNoLoop && !loops[loop] && !isConstant(sizes[dim], 1))
          loops[loop] = sizes[dim];
    }
    Sizes sizes;
    for (int loop : iteration->result.loops) {
      Size size = loop == kNoLoop ? math.constant(1) : loops[loop];
      if (!size)
        return std::nullopt;
      sizes.push_back(size);
    }
    return sizes;
  }

  std::optional<Sizes> infer() {
    return llvm::TypeSwitch<Operation *, std::optional<Sizes>>(op)
        .Case<aten::ViewOp, aten::ExpandOp>(
            [&](auto view) { return mixed(view.getStaticSize(), view.getSize()); })
        .Case([&](aten::PermuteOp permute) {
          Sizes from = sizesOf(permute.getSelf()), sizes;
          for (int64_t dim : permute.getDims())
            sizes.push_back(from[dim]);
          return sizes;
        })
        .Case([&](aten::TransposeOp transpose) {
          Sizes sizes = sizesOf(transpose.getSelf());
          if (!sizes.empty())
            std::swap(sizes[transpose.getDim0()], sizes[transpose.getDim1()]);
          return sizes;
        })
        .Case([&](aten::SliceOp slice) {
          Sizes sizes = sizesOf(slice.getSelf());
          Size &size = sizes[slice.getDim()];
          size = sliceRange(math, mixed(slice.getStart(), slice.getStaticStart()),
                            mixed(slice.getEnd(), slice.getStaticEnd()), slice.getStep(), size)
                     .count;
          return sizes;
        })
        .Case([&](aten::SelectOp select) {
          Sizes sizes = sizesOf(select.getSelf());
          sizes.erase(sizes.begin() + select.getDim());
          return sizes;
        })
        .Case([&](aten::SplitWithSizesOp split) {
          Sizes sizes = sizesOf(split.getSelf());
          sizes[split.getDim()] = mixed(split.getStaticSplitSizes(), split.getSplitSizes())[result];
          return sizes;
        })
        .Case([&](aten::CatOp cat) {
          SmallVector<Value> parts = aten::partsOfCat(cat.getTensors());
          Sizes sizes = sizesOf(parts.front());
          Size total = math.constant(0);
          for (Value tensor : parts)
            total = math.add(total, sizesOf(tensor)[cat.getDim()]);
          sizes[cat.getDim()] = total;
          return sizes;
        })
        .Case([&](aten::StackOp stack) {
          Sizes sizes = sizesOf(stack.getTensors().front());
          sizes.insert(sizes.begin() + stack.getDim(), math.constant(stack.getTensors().size()));
          return sizes;
        })
        .Case([&](aten::EmbeddingOp embedding) {
          Sizes sizes = sizesOf(embedding.getIndices());
          sizes.push_back(sizesOf(embedding.getWeight())[1]);
          return sizes;
        })
        .Case([&](aten::GatherOp gather) { return sizesOf(gather.getIndex()); })
        .Case([&](aten::IndexSelectOp select) {
          Sizes sizes = sizesOf(select.getSelf()), at = sizesOf(select.getIndex());
          if (!sizes.empty())
            sizes[select.getDim()] = at.empty() ? math.constant(1) : at[0];
          return sizes;
        })
        .Case([&](aten::IndexOp at) { return indexed(at); })
        .Case([&](aten::ArangeOp arange) {
          Size length = math.sub(mixed(arange.getEnd(), arange.getStaticEnd()),
                                 mixed(arange.getStart(), arange.getStaticStart()));
          return Sizes{math.max(math.ceilDiv(length, arange.getStep()), math.constant(0))};
        })
        .Case([&](aten::ConstantPadNdOp pad) {
          Sizes sizes = sizesOf(pad.getSelf());
          for (size_t i = 0; i + 1 < pad.getPad().size(); i += 2) {
            Size &size = sizes[sizes.size() - 1 - i / 2];
            size = math.add(size, math.constant(pad.getPad()[i] + pad.getPad()[i + 1]));
          }
          return sizes;
        })
        .Case([&](aten::WindowsOp windows) {
          Sizes sizes = slide(windows, sizesOf(windows.getSelf()), /*ceil=*/false);
          for (auto [dim, window] : llvm::enumerate(windows.getWindows()))
            sizes.insert(sizes.end() - 2, math.constant(window.kernel));
          return sizes;
        })
        .Case<aten::MaxPool2dOp, aten::AvgPool2dOp>(
            [&](auto pool) { return slide(pool, sizesOf(pool.getSelf()), pool.getCeilMode()); })
        .Case([&](aten::AdaptiveAvgPool2dOp pool) { return sizesOf(pool.getSelf()); })
        .Case([&](aten::FlipOp flip) { return sizesOf(flip.getSelf()); })
        .Case([&](aten::CumsumOp cumsum) { return sizesOf(cumsum.getSelf()); })
        .Case([&](aten::ScaledDotProductAttentionOp attention) {
          Sizes sizes = sizesOf(attention.getQuery());
          sizes.back() = sizesOf(attention.getValue()).back();
          return sizes;
        })
        .Case([&](aten::LinearOp linear) {
          Sizes sizes = sizesOf(linear.getInput()), weight = sizesOf(linear.getWeight());
          sizes.pop_back();
          if (weight.size() == 2)
            sizes.push_back(weight[0]);
          return sizes;
        })
        .Case<aten::MmOp, aten::BmmOp>([&](auto product) {
          Sizes sizes = sizesOf(product.getSelf());
          sizes.back() = sizesOf(product.getMat2()).back();
          return sizes;
        })
        .Case([&](aten::AddmmOp product) {
          return Sizes{sizesOf(product.getMat1())[0], sizesOf(product.getMat2())[1]};
        })
        .Case([&](aten::BaddbmmOp product) {
          Sizes sizes = sizesOf(product.getBatch1());
          sizes.back() = sizesOf(product.getBatch2()).back();
          return sizes;
        })
        .Case([&](aten::MatmulOp product) {
          return matmul(sizesOf(product.getSelf()), sizesOf(product.getOther()));
        })
        .Default([&](Operation *) { return fromIteration(); });
  }

  /// Positions of an op's windows instead of height and width.
  template <typename Op> Sizes slide(Op op, Sizes sizes, bool ceil) {
    std::array<aten::Window, 2> windows = op.getWindows();
    for (unsigned dim = 0; dim < 2; ++dim) {
      Size &size = sizes[sizes.size() - 2 + dim];
      size = positions(windows[dim], size, ceil);
    }
    return sizes;
  }
  Size positions(const aten::Window &window, Size size, bool ceil) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return math.constant(window.positions(*constant, ceil));
    int64_t more = 2 * window.padding - window.extent();
    if (!ceil) // floor(room / stride) + 1, of a room that is not negative
      return math.ceilDiv(math.add(size, math.constant(more + 1)), window.stride);
    // As Window::positions; a position that starts at size + padding or later does not count.
    Size all = math.ceilDiv(math.add(size, math.constant(more + window.stride)), window.stride);
    Size inside = math.ceilDiv(math.add(size, math.constant(window.padding)), window.stride);
    return math.min(all, inside);
  }

  Sizes matmul(Sizes a, Sizes b) {
    bool vectorA = a.size() == 1, vectorB = b.size() == 1;
    Size rows = vectorA ? math.constant(1) : a[a.size() - 2];
    Size columns = vectorB ? math.constant(1) : b.back();
    Sizes batchA(a.begin(), a.end() - (vectorA ? 1 : 2)),
        batchB(b.begin(), b.end() - (vectorB ? 1 : 2));
    Sizes sizes = batchA.size() >= batchB.size() ? batchA : batchB;
    const Sizes &other = batchA.size() >= batchB.size() ? batchB : batchA;
    for (size_t i = 0; i < other.size(); ++i) {
      Size &size = sizes[sizes.size() - other.size() + i];
      if (isConstant(size, 1))
        size = other[i];
    }
    if (!vectorA)
      sizes.push_back(rows);
    if (!vectorB)
      sizes.push_back(columns);
    return sizes;
  }

  Sizes indexed(aten::IndexOp at) {
    ArrayRef<int64_t> dims = at.getIndicesAt();
    Sizes shape;
    for (Value tensor : at.getIndices()) {
      Sizes sizes = sizesOf(tensor);
      while (shape.size() < sizes.size())
        shape.insert(shape.begin(), math.constant(1));
      for (size_t i = 0; i < sizes.size(); ++i) {
        Size &size = shape[shape.size() - sizes.size() + i];
        if (isConstant(size, 1))
          size = sizes[i];
      }
    }
    bool adjacent = true;
    for (size_t i = 1; i < dims.size(); ++i)
      adjacent &= dims[i] == dims[i - 1] + 1;
    Sizes sizes;
    if (!adjacent)
      sizes = shape;
    for (auto [dim, size] : llvm::enumerate(sizesOf(at.getSelf()))) {
      int64_t position = dim;
      if (adjacent && !dims.empty() && position == dims.front())
        llvm::append_range(sizes, shape);
      if (!llvm::is_contained(dims, position))
        sizes.push_back(size);
    }
    return sizes;
  }
};

} // namespace

SliceRange sliceRange(const IndexMath &math, Size start, Size end, int64_t step, Size size) {
  Size zero = math.constant(0);
  // A bound as large as that is "to the end": it must not be multiplied or added to.
  auto clip = [&](Size bound) {
    if (getConstantIntValue(bound) == std::numeric_limits<int64_t>::max())
      return size;
    if (isConstant(bound, 0))
      return bound;
    return math.max(zero, math.min(math.fromEnd(bound, size), size));
  };
  Size first = clip(start), last = clip(end);
  Size length = math.max(math.sub(last, first), zero);
  return {first, math.ceilDiv(length, step)};
}

FailureOr<Sizes> inferSizes(const IndexMath &math, Operation *op, unsigned result, SizesOf sizesOf,
                            IndexOf index) {
  auto type = cast<RankedTensorType>(op->getResult(result).getType());
  if (type.hasStaticShape())
    return getAsIndexOpFoldResult(op->getContext(), type.getShape());
  std::optional<Sizes> sizes = Inferrer{math, op, result, sizesOf, index}.infer();
  if (!sizes || sizes->size() != static_cast<size_t>(type.getRank())) {
    op->emitOpError("has a result whose sizes do not follow from its operands: ") << type;
    return failure();
  }
  // What the type says is certain, whatever else was found.
  for (auto [size, known] : llvm::zip_equal(*sizes, type.getShape()))
    if (!ShapedType::isDynamic(known))
      size = math.constant(known);
  return *sizes;
}

} // namespace shardc::memory
