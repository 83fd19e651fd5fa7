// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_SPECIALIZE_PASSES_TD
#define SHARDC_PASSES_SPECIALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssumeSizes : Pass<"dist-assume-sizes", "::mlir::ModuleOp"> {
  let summary = "Notes what each dynamic size is taken to be where something is estimated";
  let description = [{
    Form: any before lowering -> the same. The module's `dist.assumed_sizes` has a value for every symbol of its
    functions: the one that `sizes` names, else the one that was noted before, else a typical one (128, or the
    nearest in its range). Passes that predict times or account for memory read it; the program itself stays valid
    for all sizes. With `largest`, symbols that `sizes` does not name have the largest value of their range, which
    is what a limit of memory must hold for; a symbol without one is an error.

    Before, with `largest`:
    ```mlir
    func.func @f(%x: tensor<?x8xf32> {dist.sizes = [#dist.size<n>, #dist.size<8>]})
        -> (tensor<?x8xf32> {dist.sizes = [#dist.size<n>, #dist.size<8>]}) attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
      return %x : tensor<?x8xf32>
    }
    ```

    After:
    ```mlir
    module attributes {dist.assumed_sizes = {n = 64 : i64}} {
      func.func @f(%x: tensor<?x8xf32> {dist.sizes = [#dist.size<n>, #dist.size<8>]})
          -> (tensor<?x8xf32> {dist.sizes = [#dist.size<n>, #dist.size<8>]}) attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
        return %x : tensor<?x8xf32>
      }
    }
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string", "Values of symbols, e.g. sizes=batch=8,sequence=128">,
    Option<"largest", "largest", "bool", "false", "Gives every other symbol the largest value of its range">,
  ];
  let statistics = [Statistic<"numSymbols", "symbols", "Symbols that have a value">];
}

def Specialize : Pass<"dist-specialize", "::mlir::ModuleOp"> {
  let summary = "Clones a function for each distinct tuple of local extents and makes shapes static";
  let description = [{
    Form: local or scheduled -> the same. Where a dim is sharded unevenly, its extent differs between
    ranks and is dynamic. There are few distinct tuples of such extents, two or three in practice, however many ranks there
    are. Each gets a clone in which `dist.extent` is a constant, arguments have the extents of their `dist.layout`,
    sizes that follow from these are attributes, and all types are inferred again, so that kernels and arena are
    static. Sizes that depend on a symbol stay dynamic; any other size that stays dynamic is an error.

    An index that differs between the devices of a clone but is part of no shape, such as where a slice begins, stays a
    `dist.extent`: each rank looks it up in a table when it runs.

    Where tensors are on several meshes (`dist.meshes`), the devices are the ranks of all of them, and a clone is what a rank
    runs: outside of a mesh its arguments and results are empty, and neither its ops nor its collectives are run (L5). The
    collectives that are left keep their number in the sequence that all ranks share, as `dist.ordinal`.

    `bind` replaces symbols by constants first: the program is then for these sizes only.

    The module's `dist.specializations` says which device runs which clone. The clones issue the same
    collectives in the same order (those of the meshes that the device is in). Run `dist-verify-schedule` before this pass, on the one function that all ranks
    share; no pass after it adds, removes or moves a collective.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh} {
      func.func @forward(%x: tensor<?x4xf32> {dist.global_type = tensor<7x4xf32>, dist.layout = #S}) -> tensor<?x4xf32> {
        %y = aten.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
        return %y : tensor<?x4xf32>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #S = #dist.layout<#mesh, [S(0)]>
    module attributes {dist.mesh = #mesh, dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 0, 0, 1]>}} {
      func.func @forward_v0(%x: tensor<2x4xf32> {dist.global_type = tensor<7x4xf32>, dist.layout = #S}) -> tensor<2x4xf32> {
        %y = aten.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
        return %y : tensor<2x4xf32>
      }
      func.func @forward_v1(%x: tensor<1x4xf32> {dist.global_type = tensor<7x4xf32>, dist.layout = #S}) -> tensor<1x4xf32> {
        %y = aten.relu %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
        return %y : tensor<1x4xf32>
      }
    }
    ```
  }];
  let options = [
    ListOption<"bind", "bind", "std::string",
               "Values of symbols, e.g. bind=batch=8,sequence=128; sizes that depend on them become static">,
    Option<"bindTypical", "bind-typical", "bool", "false",
           "Gives every other symbol the value that the module notes (dist-assume-sizes), else 128, or the "
           "nearest in its range: for estimates">,
  ];
  let statistics = [
    Statistic<"numVariants", "variants", "Functions after specialisation">,
    Statistic<"numExtents", "extents-folded", "dist.extent ops that became constants">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // SHARDC_PASSES_SPECIALIZE_PASSES_TD
