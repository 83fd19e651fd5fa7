// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_LINALG_PASSES_TD
#define SHARDC_LOWERING_LINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernels : Pass<"exec-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines the ops that run as one kernel into a function of their own";
  let description = [{
    Neighbouring elementwise ops, reductions, norms and reads at computed positions share a kernel where one loop over
    rows computes all of them. Constants and aranges are copied into each kernel that reads them. Matrix products,
    attention, collectives, and views of memory stay in the calling function. All ops without a lowering are
    reported before anything is changed.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %0 = aten.add %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      %1 = aten.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
      return %1 : tensor<8x64xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %0 = call @add_relu_kernel(%x, %y) {exec.name = "add+relu"} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      return %0 : tensor<8x64xf32>
    }
    func.func private @add_relu_kernel(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {exec.kernel} {
      %0 = aten.add %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      %1 = aten.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
      return %1 : tensor<8x64xf32>
    }
    ```
  }];
  let options = [Option<"maxOps", "max-ops", "unsigned", "48", "Largest number of ops in one kernel">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::shardc::exec::ExecDialect"];
  let statistics = [Statistic<"kernels", "kernels", "Kernels outlined">];
}

def DecomposeForKernels : Pass<"aten-decompose-for-kernels", "::mlir::func::FuncOp"> {
  let summary = "Rewrites ops that kernels cannot compute as ops that they can compute";
  let description = [{
    `group_norm` becomes a layer norm of [batch, groups, channels of a group, positions], times the weight and plus the bias of
    each channel. Operands of `cat` and `stack` are cast to the element type of the result. The rows of `indexed_mm` and
    `indexed_outer` are sorted by their index where there are more of them for each matrix than the target's `together_rows`, so that
    those of a matrix are one product.

    Before:
    ```mlir
    func.func @f(%x: tensor<3x6x5xf32>) -> tensor<3x6x5xf32> {
      %y = aten.group_norm %x groups 2 : (tensor<3x6x5xf32>) -> tensor<3x6x5xf32>
      return %y : tensor<3x6x5xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<3x6x5xf32>) -> tensor<3x6x5xf32> {
      %0 = aten.view %x [3, 2, 3, 5] : (tensor<3x6x5xf32>) -> tensor<3x2x3x5xf32>
      %1 = aten.layer_norm %0 [3, 5] : (tensor<3x2x3x5xf32>) -> tensor<3x2x3x5xf32>
      %y = aten.view %1 [3, 6, 5] : (tensor<3x2x3x5xf32>) -> tensor<3x6x5xf32>
      return %y : tensor<3x6x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"decomposed", "decomposed", "Group norms that became layer norms">,
                    Statistic<"casts", "casts", "Operands of concatenations that are cast first">,
                    Statistic<"reordered", "reordered", "Products whose rows are brought together">];
}

def AtenToLinalg : Pass<"aten-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Turns the aten ops of fused kernels into linalg ops on tensors";
  let description = [{
    The pass converts elementwise ops, reductions, softmax and norms, reads at computed positions, and the views between them.
    Tensors get the element types they have in memory: bool is i8. Ops on 16-bit floats compute in f32 and round at the end
    of each op, as PyTorch does on CPUs. Constants of one value become part of the ops that use them.

    Before:
    ```mlir
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
      %1 = aten.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
      bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
      return
    }
    ```
    After:
    ```mlir
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
      %e = tensor.empty() : tensor<8x64xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%0 : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
      ^bb0(%a: f32, %out: f32):
        %zero = arith.constant 0.0 : f32
        %r = arith.maximumf %a, %zero : f32
        linalg.yield %r : f32
      } -> tensor<8x64xf32>
      bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
      return
    }
    ```

    All ops that cannot be converted are reported.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::shardc::exec::ExecDialect"];
  let statistics = [Statistic<"converted", "converted", "Ops of aten converted">];
}

def FuseKernelOps : Pass<"linalg-fuse-kernel-ops", "::mlir::func::FuncOp"> {
  let summary = "Merges elementwise ops of kernels into their users";
  let description = [{
    An op is merged only where it has one user, so that nothing is computed twice. An op whose value several ops use, or which
    is a result of the kernel, stays separate; its tile is kept in memory while its users run.

    Before:
    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @k(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8xf32> to tensor<8xf32>
      %e = tensor.empty() : tensor<8xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %out: f32):
        %s = arith.addf %a, %a : f32
        linalg.yield %s : f32
      } -> tensor<8xf32>
      %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %out: f32):
        %t = math.tanh %a : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
      return
    }
    ```
    After:
    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @k(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8xf32> to tensor<8xf32>
      %e = tensor.empty() : tensor<8xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %out: f32):
        %s = arith.addf %a, %a : f32
        %t = math.tanh %s : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"merged", "merged", "Ops that became part of their user, or were removed because they had none">];
}

#endif // SHARDC_LOWERING_LINALG_PASSES_TD
