// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the imported to the placed stage: annotations from a plan, propagation over sharding rules, placement.

#ifndef SHARDC_PASSES_PLACEMENT_PASSES_TD
#define SHARDC_PASSES_PLACEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyPlan : Pass<"dist-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Annotates parameters, inputs, outputs and module boundaries as a placement plan says";
  let description = [{
    Form: imported -> imported (half-placed where an input or output is on another mesh). The pass reads a plan file and `--place` specs, matches them with the names of the
    model, and adds `dist.annotation` attributes to arguments and results of the entry function and
    `dist.constrain` ops to the boundaries of modules. Axes that the plan does not mention stay open (`?`),
    and propagation decides them. The module gets the mesh as `dist.mesh`. An input or output that the plan puts on another mesh
    gets its layout at once, and a `dist.redistribute` takes it to the mesh of the program, or from there; the module gets these
    meshes by name as `dist.meshes`.

    Every mistake of the plan is reported before the pass fails: a pattern that matches nothing (with the
    nearest real names), rules that disagree, an unknown axis, a dim out of range, an unknown style.

    Before, with `mesh=tp=4 place=param:fc.weight=tp:S(0)`:
    ```mlir
    func.func @f(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                 %w: tensor<32x64xf32> {dist.kind = "parameter", dist.name = "fc.weight"}) -> tensor<8x32xf32> {
      %y = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<32x64xf32> {dist.kind = "parameter", dist.name = "fc.weight",
                                          dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["pinned"],
                                          dist.origin = ["--place param:fc.weight=tp:S(0)"]}) -> tensor<8x32xf32> {
        %y = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "", "Mesh axes, outermost first, e.g. dp=2,tp=4; overrides the mesh of the plan">,
    ListOption<"meshes", "other-mesh", "::shardc::TextOption",
               "Further meshes that inputs and outputs may be on, e.g. {readers:io=2,devices=[4,5]}">,
    Option<"plan", "plan", "std::string", "", "Path of a YAML plan">,
    ListOption<"places", "place", "::shardc::TextOption",
               "Lines of a plan, e.g. param:*.weight=tp:S(0); one with commas stands in braces">,
    ListOption<"trains", "train", "::shardc::TextOption",
               "Keys of the section 'train' of a plan, e.g. zero=1; one with commas stands in braces">,
    Option<"random", "random", "std::string", "",
           "How ranks share random numbers: default, dtensor or per-rank; overrides that of the plan">,
  ];
  let statistics = [
    Statistic<"numAnnotated", "annotated", "Arguments and results that got an annotation">,
    Statistic<"numConstrained", "constrained", "Values at module boundaries that were constrained">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

def WarnUnsharded : Pass<"dist-warn-unsharded", "::mlir::ModuleOp"> {
  let summary = "Warns where a placed program is sharded over no axis of its mesh";
  let description = [{
    Form: placed -> placed. A mesh without a word about what is sharded over it is more likely forgotten than
    meant: where every layout of a mesh of several devices is replicated, the pass warns, and changes nothing.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #R = #dist.layout<#mesh, [R]>
    func.func @f(%x: tensor<8xf32, #R>) -> tensor<8xf32, #R> {
      return %x : tensor<8xf32, #R>   // warning: nothing is sharded: every rank computes the whole model
    }
    ```

    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #R = #dist.layout<#mesh, [R]>
    func.func @f(%x: tensor<8xf32, #R>) -> tensor<8xf32, #R> {
      return %x : tensor<8xf32, #R>
    }
    ```
  }];
  let statistics = [Statistic<"numUnsharded", "unsharded", "Programs that nothing of is sharded">];
}

def DispatchRows : Pass<"dist-dispatch-rows", "::mlir::func::FuncOp"> {
  let summary = "Sends the rows of a mixture of experts to the ranks that own their experts";
  let description = [{
    Form: imported -> imported. Where each rank of an axis has an equal share of the matrices of `aten.indexed_mm`, and would gather the rows of all ranks of that
    axis to multiply those that name its own, the rows go to the owners of their matrices instead (`aten.dispatch_rows`), through all products by one index and
    what is between them, and come back behind the last (`aten.collect_rows`). What is between must work row by row, and weights that all rows share must be used elementwise. The pass places the function as it is to see what
    would be gathered and reduced, and compares the bytes.

    Before:
    ```mlir
    #mesh = #dist.mesh<["ep" = 2]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<4x8xf32> {dist.annotation = #S}, %w: tensor<2x8x16xf32> {dist.annotation = #S},
                   %i: tensor<4xi64> {dist.annotation = #S}) -> tensor<4x16xf32> {
        %y = aten.indexed_mm %x, %w at %i : (tensor<4x8xf32>, tensor<2x8x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
        return %y : tensor<4x16xf32>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["ep" = 2]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<4x8xf32> {dist.annotation = #S}, %w: tensor<2x8x16xf32> {dist.annotation = #S},
                   %i: tensor<4xi64> {dist.annotation = #S}) -> tensor<4x16xf32> {
        %each = aten.constant dense<1> : tensor<i64>
        %owner = aten.div %i, %each {rounding_mode = "floor"} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
        %one = aten.constant dense<1> : tensor<i64>
        %0 = aten.add %i, %one : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
        %1 = aten.dispatch_rows %0 at %owner batches 1 parts 2 : (tensor<4xi64>, tensor<4xi64>) -> tensor<8xi64>
        %own = aten.sub %1, %one : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
        %rows = aten.dispatch_rows %x at %owner batches 1 parts 2 : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<8x8xf32>
        %2 = aten.indexed_mm %rows, %w at %own {row_parts = array<i64: 1, 2>}
            : (tensor<8x8xf32>, tensor<2x8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %y = aten.collect_rows %2 at %owner batches 1 parts 2 : (tensor<8x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
        return %y : tensor<4x16xf32>
      }
    }
    ```
  }];
  let statistics = [Statistic<"numRegions", "regions", "Chains of products whose rows are sent to their owners">];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

def SplitTransforms : Pass<"dist-split-transforms", "::mlir::func::FuncOp"> {
  let summary = "Chooses how Fourier transforms along sharded dims are computed";
  let description = [{
    Form: imported -> imported. A transform needs its dim whole. Where that is sharded, there are other ways than to gather it, and the pass takes for each
    kind of transform the one with which placement moves the fewest bytes in the whole function:
    - Where few elements of the result are read, as the lowest frequencies in a Fourier neural operator, or few of the operand are not zero,
      a product with these columns and rows of the matrix of roots of unity. Over a sharded dim before it, its result is a partial sum
      of the kept elements alone. Before a dim that is to be sharded, each rank computes its rows.
    - The shards move to another dim of the operand, by an all-to-all, and those of the result move back (`dist.constrain`).

    To compare, the pass places the function with each choice. Transforms of one type along one dim with the same elements kept are one
    kind. Functions without a transform along a sharded dim are left as they are.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #S = #dist.layout<#mesh, [S(0)]>
    #R = #dist.layout<#mesh, [R]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<4x8x2xf32> {dist.annotation = #S}) -> (tensor<1x8x2xf32> {dist.annotation = #R}) {
        %f = aten.fft_c2c %x dim 0 forward : (tensor<4x8x2xf32>) -> tensor<4x8x2xf32>
        %y = aten.slice %f dim 0 [0 : 1 : 1] : (tensor<4x8x2xf32>) -> tensor<1x8x2xf32>
        return %y : tensor<1x8x2xf32>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #R = #dist.layout<#mesh, [R]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%x: tensor<4x8x2xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> (tensor<1x8x2xf32> {dist.annotation = #R}) {
        %t = aten.permute %x [1, 0, 2] : (tensor<4x8x2xf32>) -> tensor<8x4x2xf32>
        %v = aten.view %t [8, 8] : (tensor<8x4x2xf32>) -> tensor<8x8xf32>
        %c = aten.constant dense<[[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [-0.0, 1.0, -0.0, 1.0, -0.0, 1.0, -0.0, 1.0]]> : tensor<2x8xf32>
        %p = aten.linear %v, %c {of_complex} : (tensor<8x8xf32>, tensor<2x8xf32>) -> tensor<8x2xf32>
        %w = aten.view %p [8, 1, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
        %y = aten.permute %w [1, 0, 2] : (tensor<8x1x2xf32>) -> tensor<1x8x2xf32>
        return %y : tensor<1x8x2xf32>
      }
    }
    ```
  }];
  let statistics = [
    Statistic<"numProducts", "products", "Transforms that became products with a part of a matrix">,
    Statistic<"numMoved", "moved", "Transforms whose operand is sharded along another dim">,
    Statistic<"numTrials", "trials", "Placements that were compared">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect", "::shardc::aten::AtenDialect", "::mlir::arith::ArithDialect"];
}

def PropagateShardings : Pass<"dist-propagate", "::mlir::func::FuncOp"> {
  let summary = "Propagates annotated shardings over sharding rules, in both directions, to a fixpoint";
  let description = [{
    Form: imported -> imported, half-placed -> half-placed. Annotations of arguments, results and `dist.constrain` ops spread to all
    tensors that share a factor with them. Open extents become as coarse as consumers need (whole heads,
    blocks of a fused weight), and a remark says so. Where an axis is asked for on two factors of one op, the
    stronger annotation wins, then the one that moves fewer bytes, and a remark says that too. The time is linear in the number
    of ops.

    The outcome is written to every tensor as `dist.sharding` (see `#dist.sharding`): an op has a list with one entry
    for each result, and an argument or result of the function has one entry. `dist-place` reads nothing else, and you may
    edit it by hand in between. Annotations stay as they are; a second run overwrites what the first one wrote.

    In a half-placed function the layouts that are there are what propagation starts from, before all annotations, and a `dist.sharding` that
    is written already is a wish with its own strength. What is placed gets no `dist.sharding`.

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
    Form: imported -> placed, half-placed -> placed. For each op and mesh axis takes the consistent strategy that moves the fewest
    bytes, given what propagation found: the `dist.sharding` of every tensor, which the pass takes off. Partial
    values arise where a contracted factor is sharded, pass through linear ops, and are reduced as late as is
    free (G1): after they are added to others, and once before several ops that need the total between them (G5). The layout becomes part of each tensor's type; where an op needs another layout than its operand
    has, a `dist.redistribute` is inserted, one for all ops that need the same.

    In a half-placed function a value keeps the layout that it has, and an op that is placed is not touched; redistributions are inserted for the
    other ops alone, and those that the program has are used where they make what is needed.

    An argument gets the layout that its `dist.sharding` says. A result gets what is `given` there, `R` and
    `P(op)`; any other shard of a result is a preference, which is weighed against the bytes that it moves. A
    remark says where it is not followed, because it may have been written by hand; pipelines switch these
    remarks off, because nobody edits a program inside of a pipeline. Errors are a tensor without a `dist.sharding`, one that does not keep an
    annotation, and one that binds an op to what it cannot make.

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
  let options = [
    Option<"preferences", "preferences", "bool", "true",
           "Remark on each result whose dist.sharding prefers a placement in which it is neither made nor used">,
  ];
  let statistics = [
    Statistic<"numRedistributions", "redistributions", "Redistributions inserted">,
    Statistic<"numRounds", "rounds", "Rounds until it is known where partial values are reduced, each linear in the ops; at most 4 for a function">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_PLACEMENT_PASSES_TD
