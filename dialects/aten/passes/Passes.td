// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that know nothing but the aten dialect.
#ifndef SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD
#define SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AtenRefineTypes : Pass<"aten-refine-types", "::mlir::func::FuncOp"> {
  let summary = "Infer all result types again, from the arguments on";
  let description = [{
    Makes dynamic dims static where operands have become static, and keeps encodings. All contradictions
    between present and inferred types are reported. Function results follow. Form in: any stage before
    lowering; form out: the same.

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

#endif // SHARDC_DIALECTS_ATEN_PASSES_PASSES_TD
