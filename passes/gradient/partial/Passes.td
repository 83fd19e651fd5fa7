// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On placed programs with a backward: what becomes of partial gradients (semantics.md G2 to G5).

#ifndef SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_TD
#define SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_TD

include "mlir/Pass/PassBase.td"

def RewritePartialGradients : Pass<"dist-rewrite-partial-gradients", "::mlir::func::FuncOp"> {
  let summary = "Leaves gradients replicated where a backward redistribution would make them partial";
  let description = [{
    Form: placed -> placed. The cotangent of a redistribution `L1 -> L2` is redistributed back to `L1` (G2). Where `L1` is
    partial over an axis and the gradient is replicated or sharded over it, the redistribution would make a value
    partial which must be reduced again later. Its target on that axis becomes `R` (G3): a replicated gradient passes
    through, a sharded one is gathered. Nothing is divided by a number of ranks, because a redistribution is the identity on the
    global value (G4). A gradient that is partial over the axis already stays partial.

    What is computed from a changed target loses its layout, up to the next `backward` redistribution or a result of
    the function, and is placed again around the rest of the program, as `dist-propagate` and `dist-place` do it.
    A result of the function keeps its layout, unless it is the changed target itself.

    With `gradients=cheapest` the target is left open on these axes and placed with what follows; the pass then takes the
    program that moves the fewest bytes of this one, that of `replicate` and the one that was there.

    The example is behind a row-parallel product, whose result was reduced in the forward; `%g` is the gradient of the sum.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #R = #dist.layout<#mesh, [R]>
    #P = #dist.layout<#mesh, [P(sum)]>
    #S0 = #dist.layout<#mesh, [S(0)]>
    #S1 = #dist.layout<#mesh, [S(1)]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%g: tensor<8x32xf32, #R>, %w: tensor<32x64xf32, #S1>) -> tensor<8x64xf32, #S1> {
        %p = dist.redistribute backward %g : tensor<8x32xf32, #R> to tensor<8x32xf32, #P>
        %r = dist.redistribute %p : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
        %dx = aten.mm %r, %w : (tensor<8x32xf32, #R>, tensor<32x64xf32, #S1>) -> tensor<8x64xf32, #S1>
        return %dx : tensor<8x64xf32, #S1>
      }
    }
    ```
    After:
    ```mlir
    #mesh = #dist.mesh<["tp" = 4]>
    #R = #dist.layout<#mesh, [R]>
    #S1 = #dist.layout<#mesh, [S(1)]>
    module attributes {dist.mesh = #mesh} {
      func.func @f(%g: tensor<8x32xf32, #R>, %w: tensor<32x64xf32, #S1>) -> tensor<8x64xf32, #S1> {
        %dx = aten.mm %g, %w : (tensor<8x32xf32, #R>, tensor<32x64xf32, #S1>) -> tensor<8x64xf32, #S1>
        return %dx : tensor<8x64xf32, #S1>
      }
    }
    ```
  }];
  let options = [
    Option<"gradients", "gradients", "::shardc::PartialGradients", "::shardc::PartialGradients::Replicate",
           "What a gradient becomes that would be made partial",
      [{::llvm::cl::values(
          clEnumValN(::shardc::PartialGradients::Off, "off", "Partial"),
          clEnumValN(::shardc::PartialGradients::Replicate, "replicate", "Replicated"),
          clEnumValN(::shardc::PartialGradients::Cheapest, "cheapest", "What moves the fewest bytes"))}]>,
  ];
  let statistics = [
    Statistic<"numRewritten", "rewritten", "Backward redistributions that no longer make a partial value">,
    Statistic<"bytesSaved", "bytes-saved", "Bytes per rank that redistributions move less than before">,
    Statistic<"bytesAdded", "bytes-added", "Bytes per rank that redistributions move more than before">,
  ];
  let dependentDialects = ["::shardc::dist::DistDialect"];
}

#endif // SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_TD
