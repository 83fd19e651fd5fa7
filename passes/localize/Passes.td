// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the placed to the local stage.

#ifndef SHARDC_PASSES_LOCALIZE_PASSES_TD
#define SHARDC_PASSES_LOCALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def KeepOwnRows : Pass<"dist-keep-own-rows", "::mlir::func::FuncOp"> {
  let summary = "Finds sums between products by index of which each rank reads only what it has";
  let description = [{
    Form: placed, behind `dist-plan-redistributions` -> the same. Where ranks have some of the matrices of `aten.indexed_mm` each (the
    experts of a mixture), a product gives each rank the rows that name its own. An activation between this product
    and the next is no linear op and asks for the whole, but the next product passes over the rows of others. If all that reads
    the whole in the end does so, the redistribution is marked (`dist.own_rows`), and `dist-localize` leaves out its all-reduce.

    Before:
    ```mlir
    #mesh = #dist.mesh<["ep" = 2]>
    #R = #dist.layout<#mesh, [R]>
    #S0 = #dist.layout<#mesh, [S(0)]>
    #P = #dist.layout<#mesh, [P(sum)]>
    func.func @f(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #S0>) -> tensor<6x8xf32, #P> {
      %u = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #S0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
      %r = dist.redistribute %u by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
      %a = aten.silu %r : (tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
      %y = aten.indexed_mm %a, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #S0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
      return %y : tensor<6x8xf32, #P>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["ep" = 2]>
    #R = #dist.layout<#mesh, [R]>
    #S0 = #dist.layout<#mesh, [S(0)]>
    #P = #dist.layout<#mesh, [P(sum)]>
    func.func @f(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #S0>) -> tensor<6x8xf32, #P> {
      %u = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #S0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
      %r = dist.redistribute %u by all_reduce {dist.own_rows} : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
      %a = aten.silu %r : (tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
      %y = aten.indexed_mm %a, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #S0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
      return %y : tensor<6x8xf32, #P>
    }
    ```
  }];
  let statistics = [Statistic<"numKept", "kept", "Redistributions of which each rank reads only what it has">];
}

def Localize : Pass<"dist-localize", "::mlir::ModuleOp"> {
  let summary = "Turns a placed program into the program of one rank";
  let description = [{
    Form: placed -> local. Every tensor becomes the part of it that one rank holds. Every change of
    layout becomes a collective, or a local operation on the data that the rank has; it must be a single step, so run
    `dist-plan-redistributions` first. Ops stay the same ops. Those whose attributes count elements of a sharded dim count
    the elements of one rank, and those that need data of other ranks (softmax, norms, means and lookups over a sharded dim)
    get small collectives of their own, never a gather of their operand.

    A dim whose extent differs between ranks is dynamic, and `dist.extent` gives its extent. Arguments
    and results keep their global type and layout as attributes.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #R = #dist.layout<#mesh, [R]>
    #S1 = #dist.layout<#mesh, [S(1)]>
    #P = #dist.layout<#mesh, [P(sum)]>
    func.func @forward(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R> {
      %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #P>
      %r = dist.redistribute %y by all_reduce : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
      return %r : tensor<8x32xf32, #R>
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #tp = #dist.axes<#mesh, ["tp"]>
    #R = #dist.layout<#mesh, [R]>
    #S1 = #dist.layout<#mesh, [S(1)]>
    func.func @forward(%x: tensor<8x16xf32> {dist.global_type = tensor<8x64xf32>, dist.layout = #S1},
                       %w: tensor<32x16xf32> {dist.global_type = tensor<32x64xf32>, dist.layout = #S1})
        -> (tensor<8x32xf32> {dist.global_type = tensor<8x32xf32>, dist.layout = #R}) {
      %y = aten.linear %x, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
      %r = dist.all_reduce sum over #tp %y : tensor<8x32xf32>
      return %r : tensor<8x32xf32>
    }
    ```

    All ops that cannot be localised in their layouts are reported, each at its place in the model; the
    function is then left as it was.
  }];
  let statistics = [
    Statistic<"numOps", "ops", "Ops that were localised">,
    Statistic<"numSteps", "steps", "Redistributions that became collectives or local operations">,
    Statistic<"numInner", "inner-collectives", "Collectives that were added for single ops">,
    Statistic<"numRemade", "remade-borders", "Images of which ranks make rows of others again">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::aten::AtenDialect",
                           "::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_LOCALIZE_PASSES_TD
