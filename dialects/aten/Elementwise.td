// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that compute each element of the result from the elements at the same place of the operands,
// after broadcasting.
#ifndef SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD
#define SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD

include "dialects/aten/AtenBase.td"

/// `inferBy` names how the element type follows from those of the operands (Inference.h).
class Aten_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Aten_Op<mnemonic, !listconcat([LocalizableOpInterface], traits)> {
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class Aten_UnaryOp<string mnemonic, string formula, string rule = "inferPromoted",
                   Type type = Aten_Tensor> : Aten_ElementwiseOp<mnemonic> {
  let summary = formula;
  let inferBy = rule;
  let arguments = (ins type:$self);
}

class Aten_BinaryOp<string mnemonic, string formula, string rule = "inferPromoted",
                    Type type = Aten_Tensor, list<Trait> traits = []>
    : Aten_ElementwiseOp<mnemonic, traits> {
  let summary = formula;
  let inferBy = rule;
  let arguments = (ins type:$self, type:$other);
}

// Same element type as the operand.
def Aten_AbsOp : Aten_UnaryOp<"abs", "absolute value">;
def Aten_NegOp : Aten_UnaryOp<"neg", "negation", "inferPromoted", Aten_NumberTensor>;
def Aten_ReluOp : Aten_UnaryOp<"relu", "max(self, 0)", "inferPromoted", Aten_NumberTensor>;
def Aten_SiluOp : Aten_UnaryOp<"silu", "self * sigmoid(self)", "inferPromoted", Aten_FloatTensor>;

// Integers and bools become the default float type.
def Aten_ExpOp : Aten_UnaryOp<"exp", "e to the power of self", "inferPromotedFloat">;
def Aten_RsqrtOp : Aten_UnaryOp<"rsqrt", "1 / sqrt(self)", "inferPromotedFloat">;
def Aten_TanhOp : Aten_UnaryOp<"tanh", "hyperbolic tangent", "inferPromotedFloat">;

def Aten_GeluOp : Aten_ElementwiseOp<"gelu"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `self * Phi(self)` with Phi the normal distribution function, or its approximation by tanh.
  }];
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_FloatTensor:$self,
                       DefaultValuedAttr<StrAttr, "\"none\"">:$approximate);
  let hasVerifier = 1;
}

class Aten_AddLikeOp<string mnemonic, string formula> : Aten_ElementwiseOp<mnemonic> {
  let summary = formula;
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
}
def Aten_AddOp : Aten_AddLikeOp<"add", "self + alpha * other">;
def Aten_SubOp : Aten_AddLikeOp<"sub", "self - alpha * other">;

def Aten_MulOp : Aten_BinaryOp<"mul", "self * other">;

def Aten_ToCopyOp : Aten_Op<"to_copy", [LocalizableOpInterface]> {
  let summary = "The same elements, cast to another element type (ATen's _to_copy, to.dtype)";
  let arguments = (ins Aten_Tensor:$self, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$self `to` $dtype attr-dict `:` functional-type(operands, results)";
}

#endif // SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD
