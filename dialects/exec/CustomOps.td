// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions in C that users have registered.

#ifndef SHARDC_DIALECTS_EXEC_CUSTOMOPS_TD
#define SHARDC_DIALECTS_EXEC_CUSTOMOPS_TD

include "dialects/exec/ExecBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_CallSymbolOp : Exec_Op<"call_symbol", [AttrSizedOperandSegments]> {
  let summary = "Calls a function that a user has registered";
  let description = [{
    `symbol` is the function, of type shardrt_op_function (runtime/include/shardrt_op.h), and `library` the file that has it. It gets
    the memory of all operands, dense and row-major, and what `arguments` has. `types` are the element types of the
    tensors, inputs first.

    ```mlir
    exec.call_symbol "geometry_knn" (%x, %y) -> (%i) types [f32, f32, i64] library "geometry.so" name "geometry.knn"
        {arguments = {k = 3 : i64}} : (memref<10x3xf32>, memref<20x3xf32>) -> (memref<10x3xi64>)
    ```
  }];
  let arguments = (ins StrAttr:$symbol, Arg<Variadic<AnyMemRef>, "", [MemRead]>:$inputs,
                       Arg<Variadic<AnyMemRef>, "", [MemWrite]>:$outputs, TypeArrayAttr:$types,
                       OptionalAttr<StrAttr>:$library, OptionalAttr<DictionaryAttr>:$arguments,
                       OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $symbol `(` $inputs `)` `->` `(` $outputs `)` `types` $types (`library` $library^)? (`name` $name^)? attr-dict
    `:` `(` type($inputs) `)` `->` `(` type($outputs) `)`
  }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_EXEC_CUSTOMOPS_TD
