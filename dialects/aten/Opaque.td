// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that are known by name only.
#ifndef SHARDC_DIALECTS_ATEN_OPAQUE_TD
#define SHARDC_DIALECTS_ATEN_OPAQUE_TD

include "dialects/aten/AtenBase.td"

def Aten_OpaqueOp : Op<Aten_Dialect, "opaque",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>, KernelOpInterface]> {
  let summary = "An operator of an imported program that shardc knows by name only";
  let description = [{
    Custom ops, Triton kernels and backward kernels come with graphs that have collectives in them. Of such graphs the
    collectives and their order matter, and the arithmetic does not. The op has types and costs
    the bytes that it touches; it cannot be placed or lowered. Opaque ops keep their order, because they may have effects
    that are not known.

    `aliases` says for each result which operand's storage it shares, -1 for none. With `in_place` the
    op writes there, and without it the result is a view. As with all ops, the value of the operand does not change.
    `arguments` has the arguments that are neither tensors nor sizes.

    ```mlir
    %c = aten.opaque "aten.view_as_complex.default"(%x) aliases [0]
        : (tensor<4x8x2xf32>) -> tensor<4x8xcomplex<f32>>
    %y:2 = aten.opaque "my.kernel.default"(%a, %b) in_place aliases [1, -1] {arguments = {scale = 5.0e-01 : f64}}
        : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>)
    ```
  }];
  let arguments = (ins StrAttr:$target, Variadic<AnyTypeOf<[AnyRankedTensor, Index]>>:$operands,
                       UnitAttr:$in_place, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$aliases,
                       OptionalAttr<DictionaryAttr>:$arguments);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $target `(` $operands `)` (`in_place` $in_place^)? (`aliases` $aliases^)? attr-dict
    `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The operand whose storage a result shares; nothing where it has its own.
    std::optional<unsigned> getAliasedOperand(unsigned result) {
      ::llvm::ArrayRef<int64_t> aliases = getAliases();
      if (result >= aliases.size() || aliases[result] < 0)
        return std::nullopt;
      return static_cast<unsigned>(aliases[result]);
    }
  }];
}

#endif // SHARDC_DIALECTS_ATEN_OPAQUE_TD
