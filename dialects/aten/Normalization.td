// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that normalise over some dims: the result has the shape of the input.
#ifndef SHARDC_DIALECTS_ATEN_NORMALIZATION_TD
#define SHARDC_DIALECTS_ATEN_NORMALIZATION_TD

include "dialects/aten/AtenBase.td"

class Aten_NormalizationOp<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
}

def Aten_LayerNormOp : Aten_NormalizationOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "(input - mean) / sqrt(variance + eps) * weight + bias over the trailing dims";
  let description = [{
    `normalized_shape` gives the sizes of the trailing dims that are normalised together; weight and
    bias have that shape. The variance divides by the number of elements.
  }];
  let arguments = (ins Aten_FloatTensor:$input, DenseI64ArrayAttr:$normalized_shape,
                       Optional<Aten_FloatTensor>:$weight, Optional<Aten_FloatTensor>:$bias,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let assemblyFormat = [{
    $input $normalized_shape (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

class Aten_SoftmaxOpBase<string mnemonic> : Aten_NormalizationOp<mnemonic> {
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, OptionalAttr<TypeAttr>:$dtype);
  let assemblyFormat = [{
    $self `dim` $dim (`to` $dtype^)? attr-dict `:` functional-type(operands, results)
  }];
  let inferBy = "inferSoftmax";
}
def Aten_SoftmaxOp : Aten_SoftmaxOpBase<"softmax"> {
  let summary = "exp(self) / sum of exp(self) over dim; self is cast to dtype first, if given";
}
def Aten_LogSoftmaxOp : Aten_SoftmaxOpBase<"log_softmax"> {
  let summary = "Logarithm of softmax; self is cast to dtype first, if given";
}

#endif // SHARDC_DIALECTS_ATEN_NORMALIZATION_TD
