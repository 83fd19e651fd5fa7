// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that normalise over some dims: the result has the shape of the input.
#ifndef SHARDC_DIALECTS_ATEN_NORMALIZATION_TD
#define SHARDC_DIALECTS_ATEN_NORMALIZATION_TD

include "dialects/aten/AtenBase.td"

class Aten_NormalizationOp<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
}

defvar trailingLoops = "rowIteration(op, aten::shapeOf(op.getInput()).size() - op.getNormalizedShape().size(), "
                       "aten::shapeOf(op.getInput()).size())";

def Aten_LayerNormOp : Aten_NormalizationOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "Computes (input - mean) / sqrt(variance + eps) * weight + bias over the trailing dims";
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
  let shardBy = "trailingNormRule(op, getNormalizedShape().size(), /*exchange=*/3)";
  let runsAs = "KernelForm::Rows";
  let loops = trailingLoops;
}

def Aten_RmsNormOp : Aten_NormalizationOp<"rms_norm"> {
  let summary = "Computes input / sqrt(mean of input^2 + eps) * weight over the trailing dims";
  let description = [{
    Without `eps`, it is the machine epsilon of the element type: the smallest step above 1.
  }];
  let arguments = (ins Aten_FloatTensor:$input, DenseI64ArrayAttr:$normalized_shape,
                       Optional<Aten_FloatTensor>:$weight, OptionalAttr<F64Attr>:$eps);
  let assemblyFormat = [{
    $input $normalized_shape (`weight` `(` $weight^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let shardBy = "trailingNormRule(op, getNormalizedShape().size(), /*exchange=*/1)";
  let runsAs = "KernelForm::Rows";
  let loops = trailingLoops;
}

def Aten_GroupNormOp : Aten_NormalizationOp<"group_norm", [AttrSizedOperandSegments]> {
  let summary = "Normalises groups of channels (dim 1) together with all dims after them";
  let arguments = (ins Aten_FloatTensor:$input, I64Attr:$num_groups, Optional<Aten_FloatTensor>:$weight,
                       Optional<Aten_FloatTensor>:$bias, DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let assemblyFormat = [{
    $input `groups` $num_groups (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "groupNormRule(op)";
}

def Aten_BatchNormOp : Aten_NormalizationOp<"batch_norm", [AttrSizedOperandSegments, LocalizableOpInterface]> {
  let summary = "Computes (input - running_mean) / sqrt(running_var + eps) * weight + bias for each channel (dim 1)";
  let description = [{
    This is the op of inference: mean and variance are parameters, so all dims are independent.
  }];
  let arguments = (ins Aten_FloatTensor:$input, Optional<Aten_FloatTensor>:$weight,
                       Optional<Aten_FloatTensor>:$bias, Aten_FloatTensor:$running_mean,
                       Aten_FloatTensor:$running_var, F64Attr:$eps);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)? `mean` `(` $running_mean `)`
    `variance` `(` $running_var `)` `eps` $eps attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "perChannelRule(op)";
  let runsAs = "KernelForm::Elementwise";
  let loops = "perChannelIteration(op)";
}

class Aten_SoftmaxOpBase<string mnemonic> : Aten_NormalizationOp<mnemonic> {
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, OptionalAttr<TypeAttr>:$dtype);
  let assemblyFormat = [{
    $self `dim` $dim (`to` $dtype^)? attr-dict `:` functional-type(operands, results)
  }];
  let inferBy = "inferSoftmax";
  let runsAs = "KernelForm::Rows";
  let loops = "rowIteration(op, op.getDim(), op.getDim() + 1)";
  let shardBy = "jointRule(op, {static_cast<int64_t>(getDim())}, /*exchange=*/2)"; // maximum, sum
}
def Aten_SoftmaxOp : Aten_SoftmaxOpBase<"softmax"> {
  let summary = "Computes exp(self) / sum of exp(self) over dim; self is cast to dtype first, if given";
}
def Aten_LogSoftmaxOp : Aten_SoftmaxOpBase<"log_softmax"> {
  let summary = "Computes the logarithm of softmax; self is cast to dtype first, if given";
}

#endif // SHARDC_DIALECTS_ATEN_NORMALIZATION_TD
