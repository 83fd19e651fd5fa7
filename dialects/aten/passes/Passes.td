// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that need no dialect but aten.
#ifndef SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD
#define SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AtenRefineTypes : Pass<"aten-refine-types", "::mlir::func::FuncOp"> {
  let summary = "Infers all result types again, from the arguments to the results of the function";
  let description = [{
    Form: any stage before lowering -> the same. The pass makes dynamic dims static where operands have become static, and
    keeps encodings. The result types of the function are updated too. All contradictions between present and inferred types
    are reported.

    Before:
    ```mlir
    func.func @f(%x: tensor<4x3xf32>, %y: tensor<1x3xf32>) -> tensor<?x?xf32> {
      %0 = aten.add %x, %y : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<4x3xf32>, %y: tensor<1x3xf32>) -> tensor<4x3xf32> {
      %0 = aten.add %x, %y : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
      return %0 : tensor<4x3xf32>
    }
    ```
  }];
  let statistics = [Statistic<"refined", "results-refined", "Results whose type became more precise">];
}

def AtenFoldMasks : Pass<"aten-fold-masks", "::mlir::func::FuncOp"> {
  let summary = "Folds position ids and attention masks of exported models";
  let description = [{
    Form: imported -> imported. Exported models compute their masks by aranges, comparisons, index tensors and conjunctions
    with true. The pass recognises integer tensors that are affine in their position, and bool tensors that are comparisons of
    such tensors (AffineForms.h), whatever their size. It uses this in these ways:
    - a tensor of one value becomes a splat constant, a conjunction with true its other side;
    - indexing by such tensors becomes a view, where each is a range of one dim or one position;
    - a mask that hides nothing vanishes from an attention, and one that shows columns <= row becomes its
      `causal` flag.

    Ops whose results are not used any more are erased.

    Before:
    ```mlir
    func.func @f(%q: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
      %pos = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
      %row = aten.unsqueeze %pos dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
      %mask = aten.le %pos, %row : (tensor<16xi64>, tensor<16x1xi64>) -> tensor<16x16xi1>
      %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xi1>) -> tensor<2x4x16x8xf32>
      return %o : tensor<2x4x16x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%q: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
      %o = aten.scaled_dot_product_attention %q, %q, %q causal : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
      return %o : tensor<2x4x16x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect"];
  let statistics = [
    Statistic<"splats", "splats", "Tensors found to hold one value">,
    Statistic<"conjunctions", "conjunctions-dropped", "Conjunctions with true that were dropped">,
    Statistic<"indexings", "indexings-to-views", "Indexing ops turned into views">,
    Statistic<"causal", "masks-causal", "Attention masks turned into the causal flag">,
    Statistic<"invisible", "masks-dropped", "Attention masks dropped that hide nothing">,
  ];
}

def AtenUnflattenProducts : Pass<"aten-unflatten-products", "::mlir::func::FuncOp"> {
  let summary = "Gives products that were flattened to two dims the dims that they had";
  let description = [{
    Form: imported -> imported. Exported models flatten the batch and the sequence of a tensor into one dim, multiply (`mm`,
    `addmm`) and split the dim again. The merged dim can be sharded like one of its parts only, and never like the second
    where sizes are symbols. A `linear` needs no merged dim. Likewise a batch of products (`bmm`) whose batch was made of more than two dims, as an `einsum` over the
    positions of an image makes it, becomes a `matmul` with all of them. Index arithmetic that is no longer used is left to the canonicaliser.

    Before:
    ```mlir
    func.func @f(%x: tensor<?x16x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<?x16x32xf32> {
      %n = aten.sym_size %x dim 0 : (tensor<?x16x64xf32>) -> index
      %c16 = arith.constant 16 : index
      %m = arith.muli %n, %c16 : index
      %v = aten.view %x [%m, 64] : (tensor<?x16x64xf32>) -> tensor<?x64xf32>
      %p = aten.addmm %b, %v, %w : (tensor<32xf32>, tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
      %y = aten.view %p [%n, 16, 32] : (tensor<?x32xf32>) -> tensor<?x16x32xf32>
      return %y : tensor<?x16x32xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<?x16x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<?x16x32xf32> {
      %n = aten.sym_size %x dim 0 : (tensor<?x16x64xf32>) -> index
      %c16 = arith.constant 16 : index
      %m = arith.muli %n, %c16 : index
      %t = aten.permute %w [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
      %y = aten.linear %x, %t, %b : (tensor<?x16x64xf32>, tensor<32x64xf32>, tensor<32xf32>) -> tensor<?x16x32xf32>
      return %y : tensor<?x16x32xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect"];
  let statistics = [Statistic<"numProducts", "products", "Products that need no flattened operand">];
}

def AtenUndoRowOrders : Pass<"aten-undo-row-orders", "::mlir::func::FuncOp"> {
  let summary = "Works on rows where they are, if they would be put in order and back";
  let description = [{
    Form: imported -> imported. A mixture of experts in groups sorts its rows by their expert, multiplies, and brings the results back in
    the order that the rows had. What it does in between is the same for each row, wherever that stands. Without the order, a rank with
    some of the rows needs no others. Products sort the rows that a rank has where that is faster (`aten-decompose-for-kernels`).

    Before:
    ```mlir
    func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x8x16xf32>, %e: tensor<6xi64>) -> tensor<6x16xf32> {
      %v, %i = aten.sort %e dim 0 : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
      %g = aten.index %x[%i] : (tensor<6x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
      %p = aten.indexed_mm %g, %w at %v sorted : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
      %s, %b = aten.sort %i dim 0 : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
      %y = aten.index %p[%b] : (tensor<6x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
      return %y : tensor<6x16xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x8x16xf32>, %e: tensor<6xi64>) -> tensor<6x16xf32> {
      %p = aten.indexed_mm %x, %w at %e : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
      return %p : tensor<6x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numOrders", "orders", "Lookups that brought rows back and are gone">];
}

def AtenIndexProducts : Pass<"aten-index-products", "::mlir::func::FuncOp"> {
  let summary = "Makes products with matrices that are looked up for each row products of rows by index";
  let description = [{
    Form: imported -> imported. Exported mixtures of experts look up the matrix of an expert for each row, and multiply the batch of these
    matrices with the rows. As `aten.indexed_mm` nothing is looked up, so that no copies of matrices exist, and ranks
    that have some of the matrices each multiply the rows that name theirs.

    A lookup elsewhere is an error of the run, which a product passes over. Positions that are not known to be those of matrices, as those are
    that `topk` gives, are therefore looked up among the numbers of the matrices first.

    Before:
    ```mlir
    func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x16x8xf32>, %s: tensor<6x4xf32>) -> tensor<6x16x1xf32> {
      %v, %i = aten.sort %s dim 1 descending count 1 : (tensor<6x4xf32>) -> (tensor<6x1xf32>, tensor<6x1xi64>)
      %e = aten.view %i [6] : (tensor<6x1xi64>) -> tensor<6xi64>
      %l = aten.index %w[%e] : (tensor<4x16x8xf32>, tensor<6xi64>) -> tensor<6x16x8xf32>
      %c = aten.unsqueeze %x dim 2 : (tensor<6x8xf32>) -> tensor<6x8x1xf32>
      %y = aten.bmm %l, %c : (tensor<6x16x8xf32>, tensor<6x8x1xf32>) -> tensor<6x16x1xf32>
      return %y : tensor<6x16x1xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x16x8xf32>, %s: tensor<6x4xf32>) -> tensor<6x16x1xf32> {
      %v, %i = aten.sort %s dim 1 descending count 1 : (tensor<6x4xf32>) -> (tensor<6x1xf32>, tensor<6x1xi64>)
      %e = aten.view %i [6] : (tensor<6x1xi64>) -> tensor<6xi64>
      %t = aten.transpose %w [1, 2] : (tensor<4x16x8xf32>) -> tensor<4x8x16xf32>
      %p = aten.indexed_mm %x, %t at %e : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
      %y = aten.unsqueeze %p dim 2 : (tensor<6x16xf32>) -> tensor<6x16x1xf32>
      return %y : tensor<6x16x1xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numProducts", "products", "Products that look up no matrices any more">];
}

def AtenExpandConvolutions : Pass<"aten-expand-convolutions", "::mlir::func::FuncOp"> {
  let summary = "Rewrites convolutions as matrix products";
  let description = [{
    Form: local or scheduled, before `exec-form-kernels` -> the same. The elements under the window at each position become a
    column (`aten.windows`); the product of the kernels with the columns is the result, with its elements in the right order.
    A 1 x 1 window that visits every element needs no columns.

    Before:
    ```mlir
    func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
      %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
      return %y : tensor<2x4x6x6xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
      %c = aten.windows %x kernel [3, 3] stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>) -> tensor<2x3x3x3x6x6xf32>
      %k = aten.view %w [4, 27] : (tensor<4x3x3x3xf32>) -> tensor<4x27xf32>
      %v = aten.view %c [2, 27, 36] : (tensor<2x3x3x3x6x6xf32>) -> tensor<2x27x36xf32>
      %p = aten.matmul %k, %v : (tensor<4x27xf32>, tensor<2x27x36xf32>) -> tensor<2x4x36xf32>
      %y = aten.view %p [2, 4, 6, 6] : (tensor<2x4x36xf32>) -> tensor<2x4x6x6xf32>
      return %y : tensor<2x4x6x6xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"expanded", "convolutions", "Convolutions that became matrix products">];
}

def AtenNarrowFourier : Pass<"aten-narrow-fourier", "::mlir::func::FuncOp"> {
  let summary = "Transforms only what is read of a Fourier transform, and what is not zero before it";
  let description = [{
    Form: imported -> imported. A layer of a Fourier neural operator transforms a field along its dims, keeps the lowest frequencies of each, and
    puts zeros beside them before it transforms back. A transform along one dim is one of each position of the others. Where later
    ops read some positions of another dim only (slices, joins, transforms along further dims), and where its operand has zeros at some
    positions of another dim, the op transforms what is left. Less is computed then, and fewer bytes move where the transformed dim is
    sharded.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x12xf32>) -> tensor<8x3x2xf32> {
      %r = aten.fft_r2c %x dim 1 onesided : (tensor<8x12xf32>) -> tensor<8x7x2xf32>
      %c = aten.fft_c2c %r dim 0 forward : (tensor<8x7x2xf32>) -> tensor<8x7x2xf32>
      %y = aten.slice %c dim 1 [0 : 3 : 1] : (tensor<8x7x2xf32>) -> tensor<8x3x2xf32>
      return %y : tensor<8x3x2xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x12xf32>) -> tensor<8x3x2xf32> {
      %r = aten.fft_r2c %x dim 1 onesided : (tensor<8x12xf32>) -> tensor<8x7x2xf32>
      %s = aten.slice %r dim 1 [0 : 3 : 1] : (tensor<8x7x2xf32>) -> tensor<8x3x2xf32>
      %y = aten.fft_c2c %s dim 0 forward : (tensor<8x3x2xf32>) -> tensor<8x3x2xf32>
      return %y : tensor<8x3x2xf32>
    }
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"narrowed", "transforms", "Fourier transforms of fewer positions than before">];
}

def AtenExpandFourier : Pass<"aten-expand-fourier", "::mlir::func::FuncOp"> {
  let summary = "Rewrites Fourier transforms as matrix products";
  let description = [{
    Form: local or scheduled, before `exec-form-kernels` -> the same. A transform of few elements is a product with the matrix of roots of
    unity, as one of real numbers. Of more, the dim is split in two: a transform of the first part, factors, and a transform of
    the second. A length that does not split so (a large prime number) is a convolution, by transforms of a power of two.
    Real operands and results take half of the work in the products that read or make them.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x3xf64>) -> tensor<8x2x2xf64> {
      %y = aten.fft_r2c %x dim 1 onesided : (tensor<8x3xf64>) -> tensor<8x2x2xf64>
      return %y : tensor<8x2x2xf64>
    }
    ```
    After, in part:
    ```mlir
      %m = aten.constant dense<[[1.000000e+00, 1.000000e+00, 1.000000e+00], ...]> : tensor<4x3xf64>
      %p = aten.linear %x, %m : (tensor<8x3xf64>, tensor<4x3xf64>) -> tensor<8x4xf64>
      %y = aten.view %p [8, 2, 2] : (tensor<8x4xf64>) -> tensor<8x2x2xf64>
    ```
  }];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"expanded", "transforms", "Fourier transforms that became matrix products">];
}

def AtenRecognizeNeighborhoods : Pass<"aten-recognize-neighborhoods", "::mlir::func::FuncOp"> {
  let summary = "Makes attention whose mask leaves each position a window neighborhood attention";
  let description = [{
    Form: imported -> imported. A model in plain PyTorch writes sliding windows and neighborhood attention as attention with a mask, which is
    computed of coordinates. The pass evaluates the mask (KnownElements.h): all pairs of positions, many at a time where bounds tell that
    they are equal. If the mask is exactly that of windows over a line, an image or a volume whose positions are flattened
    (VisibleKeys.h), the scores of these windows are computed and no others, and over sharded positions only the keys and values
    beside a border are exchanged.

    - Windows are moved inwards at the border, as NATTEN has them, or cut off there (|i - j| <= r); they may have dilations, strides
      and causal dims.
    - Attention is one op, or a product, a softmax and a product, between which there are casts, factors and masks, and which nothing else
      reads. The mask is of bools, or of 0 and -infinity (or the lowest number of its type), and the same for all heads and all of the batch.
    - A mask may be stored: the argument, of kind "constant", has its elements as `aten.elements` then. The elements of a buffer that is saved
      with the weights are not known, as a run may have others.
    - With `mode=auto` a window must have at most 1/`least-ratio` of the positions; else the pass leaves the attention as it is, whose
      kernel needs less time for each pair. `mode=all` takes all windows, and `mode=off` none.

    A remark says why attention with a mask that is known, and hides at least half of all pairs, stays as it is.

    Before:
    ```mlir
    func.func @f(%q: tensor<1x2x16x8xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32> {
      %i = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
      %r = aten.unsqueeze %i dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
      %d = aten.sub %r, %i : (tensor<16x1xi64>, tensor<16xi64>) -> tensor<16x16xi64>
      %a = aten.abs %d : (tensor<16x16xi64>) -> tensor<16x16xi64>
      %one = aten.constant dense<1> : tensor<i64>
      %m = aten.le %a, %one : (tensor<16x16xi64>, tensor<i64>) -> tensor<16x16xi1>
      %o = aten.scaled_dot_product_attention %q, %k, %v mask(%m) scale 5.000000e-01 : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<16x16xi1>) -> tensor<1x2x16x8xf32>
      return %o : tensor<1x2x16x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%q: tensor<1x2x16x8xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32> {
      %0 = aten.transpose %q [1, 2] : (tensor<1x2x16x8xf32>) -> tensor<1x16x2x8xf32>
      %1 = aten.transpose %k [1, 2] : (tensor<1x2x16x8xf32>) -> tensor<1x16x2x8xf32>
      %2 = aten.transpose %v [1, 2] : (tensor<1x2x16x8xf32>) -> tensor<1x16x2x8xf32>
      %3 = aten.neighborhood_qk %0, %1 kernel [3] stride [1] dilation [1] causal [false] cut [1] place [] : (tensor<1x16x2x8xf32>, tensor<1x16x2x8xf32>) -> tensor<1x16x2x3xf32>
      %4 = aten.constant dense<5.000000e-01> : tensor<f32>
      %5 = aten.mul %3, %4 : (tensor<1x16x2x3xf32>, tensor<f32>) -> tensor<1x16x2x3xf32>
      %6 = aten.constant dense<[[[[2]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[3]], [[2]]]]> : tensor<1x16x1x1xi64>
      %7 = aten.arange [0 : 3 : 1] i64 : tensor<3xi64>
      %8 = aten.view %7 [1, 1, 1, 3] : (tensor<3xi64>) -> tensor<1x1x1x3xi64>
      %9 = aten.lt %8, %6 : (tensor<1x1x1x3xi64>, tensor<1x16x1x1xi64>) -> tensor<1x16x1x3xi1>
      %10 = aten.constant dense<0xFF800000> : tensor<f32>
      %11 = aten.where %9, %5, %10 : (tensor<1x16x1x3xi1>, tensor<1x16x2x3xf32>, tensor<f32>) -> tensor<1x16x2x3xf32>
      %12 = aten.softmax %11 dim 3 : (tensor<1x16x2x3xf32>) -> tensor<1x16x2x3xf32>
      %13 = aten.neighborhood_av %12, %2 kernel [3] stride [1] dilation [1] causal [false] cut [1] place [] : (tensor<1x16x2x3xf32>, tensor<1x16x2x8xf32>) -> tensor<1x16x2x8xf32>
      %14 = aten.transpose %13 [1, 2] : (tensor<1x16x2x8xf32>) -> tensor<1x2x16x8xf32>
      return %14 : tensor<1x2x16x8xf32>
    }
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"auto\"", "auto: where it pays, all, or off">,
    Option<"leastRatio", "least-ratio", "int64_t", "4", "How many times more positions there must be than a window has, for auto">,
  ];
  let dependentDialects = ["::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"recognized", "attentions", "Attentions that became neighborhood attention">];
}

#endif // SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD
