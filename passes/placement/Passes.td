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

def PropagateShardings : Pass<"dist-propagate", "::mlir::func::FuncOp"> {
  let summary = "Propagates annotated shardings over sharding rules, in both directions, to a fixpoint";
  let description = [{
    Form: imported -> imported. Annotations of arguments, results and `dist.constrain` ops spread to all
    tensors that share a factor with them. Open extents become as coarse as consumers need (whole heads,
    blocks of a fused weight), which a remark says. Where an axis is asked for on two factors of one op, the
    stronger annotation wins, then the one that moves fewer bytes; that too is a remark. Linear in the number
    of ops.

    The outcome is written to every tensor as `dist.sharding` (see `#dist.sharding`): on an op a list with one entry
    for each result, on an argument or result of the function one entry. It is all that `dist-place` reads, and it may
    be edited by hand in between. Annotations stay as they are; a second run overwrites what the first one wrote.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<8x64xf32>,
                   %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8x32xf32> {
        %y = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<8x64xf32> {dist.sharding = #dist.sharding<#mesh, [?]>},
                   %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>,
                                          dist.sharding = #dist.sharding<#mesh, [S(0) given]>})
          -> (tensor<8x32xf32> {dist.sharding = #dist.sharding<#mesh, [S(1)]>}) {
        %y = aten.linear %x, %w {dist.sharding = [#dist.sharding<#mesh, [S(1)]>]}
            : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
  }];
  let statistics = [
    Statistic<"numVisits", "visits", "Visits of ops until the fixpoint">,
    Statistic<"numSharded", "sharded", "Tensors that became sharded over some axis">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

def PlaceTensors : Pass<"dist-place", "::mlir::func::FuncOp"> {
  let summary = "Gives every tensor a layout and inserts redistributions";
  let description = [{
    Form: imported -> placed. For each op and mesh axis takes the consistent strategy that moves the fewest
    bytes, given what propagation found: the `dist.sharding` of every tensor, which the pass takes off. Partial
    values arise where a contracted factor is sharded, pass through linear ops, and are reduced as late as is
    free (G1). The layout becomes part of each tensor's type; where an op needs another layout than its operand
    has, a `dist.redistribute` is inserted, one for all ops that need the same.

    An argument gets the layout that its `dist.sharding` says. A result gets what is `given` there, `R` and
    `P(op)`; any other shard of a result is weighed against the bytes that it moves, and a remark says where it
    is not followed. Errors are a tensor without a `dist.sharding`, one that does not keep an annotation, and one
    that binds an op to what it cannot make.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #open = #dist.sharding<#mesh, [?]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<8x64xf32> {dist.sharding = #dist.sharding<#mesh, [S(1) given]>},
                   %w: tensor<32x64xf32> {dist.sharding = #dist.sharding<#mesh, [S(1)]>})
          -> (tensor<8x32xf32> {dist.sharding = #open}) {
        %y = aten.linear %x, %w {dist.sharding = [#open]} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #P = #dist.layout<#mesh, [P(sum)]>
    #R = #dist.layout<#mesh, [R]>
    #S1 = #dist.layout<#mesh, [S(1)]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R> {
        %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #P>
        %r = dist.redistribute %y : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
        return %r : tensor<8x32xf32, #R>
      }
    }
    ```
  }];
  let statistics = [
    Statistic<"numRedistributions", "redistributions", "Redistributions inserted">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_PLACEMENT_PASSES_TD
