// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that choose elements by position.
#ifndef SHARDC_DIALECTS_ATEN_INDEXING_TD
#define SHARDC_DIALECTS_ATEN_INDEXING_TD

include "dialects/aten/AtenBase.td"

def Aten_EmbeddingOp : Aten_Op<"embedding"> {
  let summary = "Rows of weight, one for each index";
  let description = [{
    `padding_idx` names a row that gets no gradient; the forward does not look at it.
  }];
  let arguments = (ins Aten_Tensor:$weight, Aten_IndexTensor:$indices,
                       DefaultValuedAttr<I64Attr, "-1">:$padding_idx);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$weight `at` $indices attr-dict `:` functional-type(operands, results)";
}

#endif // SHARDC_DIALECTS_ATEN_INDEXING_TD
