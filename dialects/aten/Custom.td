// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users register.
#ifndef SHARDC_DIALECTS_ATEN_CUSTOM_TD
#define SHARDC_DIALECTS_ATEN_CUSTOM_TD

include "dialects/aten/AtenBase.td"

def Aten_CustomOp : Op<Aten_Dialect, "custom",
    [Pure, DeclareOpInterfaceMethods<ResultSizesOpInterface>,
     DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
     DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelForm"]>,
     DeclareOpInterfaceMethods<ShardingRuleOpInterface>, CostOpInterface]> {
  let summary = "An operator that a user has registered: a sharding rule, and a function in C";
  let description = [{
    The section `ops:` of a plan, or a file of its own, registers it (docs/custom-ops.md). `rule` says how its dims may
    be sharded (dialects/sharding/RuleText.h), and `symbol` is the function that computes it, on each rank what that has
    (runtime/include/shardrt_op.h). `library` is the file that has the function: what `shardc compile` links. `arguments` has the
    arguments that are no tensors.

    The op is a function of its operands. Where a window slides over a dim, the operand has what the positions cover: padding is
    an op of its own in front. `backward` registers functions for the cotangents of the operands that are floats, each with a `rule` and a `symbol`: one for
    each of these operands, or one for all. Their operands are the cotangents of the results that are floats, then the operands,
    then the results, less those for which the rule has `_`.

    ```mlir
    %i = aten.custom "geometry.knn.default"(%x, %y) rule "n d, m d -> n k" symbol "geometry_knn" library "geometry.so"
        {arguments = {k = 3 : i64}} : (tensor<10x3xf32>, tensor<20x3xf32>) -> tensor<10x3xi64>
    ```
  }];
  let arguments = (ins StrAttr:$target, Variadic<Aten_Tensor>:$operands, StrAttr:$rule, StrAttr:$symbol,
                       OptionalAttr<StrAttr>:$library, OptionalAttr<DictionaryAttr>:$arguments,
                       OptionalAttr<ArrayAttr>:$backward);
  let results = (outs Variadic<Aten_Tensor>:$results);
  let assemblyFormat = [{
    $target `(` $operands `)` `rule` $rule `symbol` $symbol (`library` $library^)? attr-dict
    `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_ATEN_CUSTOM_TD
