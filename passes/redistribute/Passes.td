// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that turns redistributions into single steps.

#ifndef SHARDC_PASSES_REDISTRIBUTE_PASSES_TD
#define SHARDC_PASSES_REDISTRIBUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanRedistributions : Pass<"dist-plan-redistributions", "::mlir::ModuleOp"> {
  let summary = "Turns each redistribution into a sequence of single steps";
  let description = [{
    Form: placed -> placed. A step changes what one mesh axis, or several at once, do to a tensor, and becomes one collective or
    one local operation. `by` names it; the verifier checks that such a step leads from the one layout to the other, and
    localisation emits that step. A redistribution that has a step already is left alone.

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
    #S0_S0 = #dist.layout<#mesh, [S(0), S(0)]>
    #R_S0 = #dist.layout<#mesh, [R, S(0)]>
    func.func @f(%x: tensor<5x3xf32, #S0_S0>) -> tensor<5x3xf32, #R_S0> {
      %r = dist.redistribute %x by exchange : tensor<5x3xf32, #S0_S0> to tensor<5x3xf32, #R_S0>
      return %r : tensor<5x3xf32, #R_S0>
    }
    ```

    Steps are those of dialects/sharding/RedistributeStep.h. With `planner=cheapest` their sequence is the shortest path over
    layouts (R2), where a step costs the latency of its group and the time of the bytes that a rank sends. Sequences that
    cost the same are ordered by the memory of a rank, then by their number of steps. With `planner=greedy` steps take dims apart
    from the inner axis to the outer, put them together from the outer to the inner, and leave the least data first.

    Between meshes (R3) one exchange brings every rank the elements that it needs and lacks, once.

    A remark names every gather on the way that the target does not ask for, with its bytes. Steps carry
    the places in the model of what made the value and of what uses it.
  }];
  let options = [
    Option<"planner", "planner", "::shardc::PlannerKind", "::shardc::PlannerKind::Cheapest",
           "How the sequence of steps is chosen",
           [{::llvm::cl::values(
          clEnumValN(::shardc::PlannerKind::Cheapest, "cheapest", "the shortest path over layouts"),
          clEnumValN(::shardc::PlannerKind::Greedy, "greedy", "the step that leaves the least data first"))}]>,
    Option<"topology", "topology", "std::string", "std::string(::shardc::cost::kDefaultModel)",
           "Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or the file of a target "
           "description">,
    ListOption<"latency", "latency", "std::string",
               "Microseconds before the first byte, for all axes or by axis, e.g. latency=dp=20,tp=5 (others: by the "
               "cost model). With latency=0 bytes alone decide">,
    ListOption<"bandwidth", "bandwidth", "std::string",
               "10^9 bytes that a rank sends in a second, for all axes or by axis (others: by the cost model)">,
  ];
  let statistics = [
    Statistic<"numPlanned", "planned", "Redistributions that became several steps">,
    Statistic<"numSteps", "steps", "Single steps after the pass">,
    Statistic<"numExchanges", "exchanges", "Steps that exchange blocks">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_REDISTRIBUTE_PASSES_TD
