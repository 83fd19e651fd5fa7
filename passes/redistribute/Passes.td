// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that turns redistributions into single steps.

#ifndef SHARDC_PASSES_REDISTRIBUTE_PASSES_TD
#define SHARDC_PASSES_REDISTRIBUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanRedistributions : Pass<"dist-plan-redistributions", "::mlir::ModuleOp"> {
  let summary = "Turns each redistribution into a sequence of single steps";
  let description = [{
    Form: placed -> placed. A step changes the placement of one mesh axis, or gathers, reduces or
    reduce-scatters over several at once, and becomes one collective or one local operation. Steps take dims apart from the inner axis to the
    outer and put them together from the outer to the inner (R1), so that every intermediate tensor has a
    correct layout. A redistribution that is a single step already is left alone.

    Before:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
    #S0_S0 = #dist.layout<#mesh, [S(0), S(0)]>
    #R_S0 = #dist.layout<#mesh, [R, S(0)]>
    func.func @f(%x: tensor<5x3xf32, #S0_S0>) -> tensor<5x3xf32, #R_S0> {
      %r = dist.redistribute %x : tensor<5x3xf32, #S0_S0> to tensor<5x3xf32, #R_S0>
      return %r : tensor<5x3xf32, #R_S0>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
    #R = #dist.layout<#mesh, [R, R]>
    #S0_S0 = #dist.layout<#mesh, [S(0), S(0)]>
    #R_S0 = #dist.layout<#mesh, [R, S(0)]>
    func.func @f(%x: tensor<5x3xf32, #S0_S0>) -> tensor<5x3xf32, #R_S0> {
      %0 = dist.redistribute %x : tensor<5x3xf32, #S0_S0> to tensor<5x3xf32, #R>
      %r = dist.redistribute %0 : tensor<5x3xf32, #R> to tensor<5x3xf32, #R_S0>
      return %r : tensor<5x3xf32, #R_S0>
    }
    ```

    Of the sequences that there are it takes the one that in each step leaves the least data. A remark names every gather on the way that the target does not ask for, with its bytes. Steps carry
    the places in the model of what made the value and of what uses it.
  }];
  let statistics = [
    Statistic<"numPlanned", "planned", "Redistributions that became several steps">,
    Statistic<"numSteps", "steps", "Single steps after the pass">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_REDISTRIBUTE_PASSES_TD
