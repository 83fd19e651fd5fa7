// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// imported -> placed: annotations from a plan, propagation over sharding rules, placement.

#ifndef SHARDC_PASSES_PLACEMENT_PASSES_TD
#define SHARDC_PASSES_PLACEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyPlan : Pass<"dist-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Writes a placement plan onto parameters, inputs, outputs and module boundaries";
  let description = [{
    Form: imported -> imported. Reads a plan file and `--place` specs, holds them against the names of the
    model, and leaves `dist.annotation` attributes on arguments and results of the entry function and
    `dist.constrain` ops at the boundaries of modules. Axes that the plan does not mention stay open (`?`)
    for propagation to decide. The mesh goes onto the module as `dist.mesh`.

    Every mistake of the plan is reported before the pass fails: a pattern that matches nothing (with the
    nearest real names), rules that disagree, an unknown axis, a dim out of range, an unknown style.

    With `mesh=tp=4 place=param:fc.weight=tp:S(0)`:

    ```mlir
    func.func @forward(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                       %w: tensor<32x64xf32> {dist.kind = "parameter", dist.name = "fc.weight"})
    // becomes
    func.func @forward(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                       %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>,
                                              dist.kind = "parameter", dist.name = "fc.weight"})
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "", "Mesh axes, outermost first, e.g. dp=2,tp=4; overrides the plan's">,
    Option<"plan", "plan", "std::string", "", "Path of a YAML plan">,
    ListOption<"places", "place", "std::string", "A line of a plan, e.g. param:*.weight=tp:S(0)">,
  ];
  let statistics = [
    Statistic<"numAnnotated", "annotated", "Arguments and results that got an annotation">,
    Statistic<"numConstrained", "constrained", "Values at module boundaries that were constrained">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_PLACEMENT_PASSES_TD
