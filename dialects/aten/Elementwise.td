// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that compute each element of the result from the elements at the same place of the operands,
// after broadcasting.
#ifndef SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD
#define SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD

include "dialects/aten/ElementwiseBase.td"

//===--------------------------------------------------------------------------------------------===//
// One operand
//===--------------------------------------------------------------------------------------------===//

// The element type stays.
def Aten_AbsOp : Aten_UnaryOp<"abs", "the absolute value">;
def Aten_NegOp : Aten_UnaryOp<"neg", "the negation", "inferPromoted", Aten_NumberTensor> {
  let linear = "{0}";
}
def Aten_SignOp : Aten_UnaryOp<"sign", "-1, 0 or 1">;
def Aten_FloorOp : Aten_UnaryOp<"floor", "largest integer not above self", "inferPromoted", Aten_NumberTensor>;
def Aten_CeilOp : Aten_UnaryOp<"ceil", "smallest integer not below self", "inferPromoted", Aten_NumberTensor>;
def Aten_TruncOp : Aten_UnaryOp<"trunc", "integer part", "inferPromoted", Aten_NumberTensor>;
def Aten_RoundOp : Aten_UnaryOp<"round", "nearest integer, ties to even", "inferPromoted", Aten_NumberTensor>;
def Aten_BitwiseNotOp : Aten_UnaryOp<"bitwise_not", "complement of all bits, or of a bool", "inferPromoted", Aten_IntTensor>;
class Aten_IdentityOp<string mnemonic, string formula, string kind>
    : Aten_ElementwiseOp<mnemonic, [DeclareOpInterfaceMethods<TensorViewOpInterface>]> {
  let summary = formula;
  let arguments = (ins Aten_Tensor:$self);
  let inferBy = "inferPromoted";
  let shardBy = "copyRule(op)";
  let runsAs = "KernelForm::LoopView";
  let viewKind = kind;
}
def Aten_CloneOp : Aten_IdentityOp<"clone", "the same elements", "Copy">;
def Aten_AliasOp : Aten_IdentityOp<"alias", "the same elements (also detach, lift_fresh_copy)", "Alias"> {
  let description = [{
    With `detached`, no gradient goes through the op, which stands for ATen's detach then.
  }];
  let arguments = (ins Aten_Tensor:$self, UnitAttr:$detached);
}

// Integers and bools become the default float type.
def Aten_ExpOp : Aten_UnaryOp<"exp", "e to the power of self", "inferPromotedFloat">;
def Aten_Exp2Op : Aten_UnaryOp<"exp2", "2 to the power of self", "inferPromotedFloat">;
def Aten_Expm1Op : Aten_UnaryOp<"expm1", "exp(self) - 1, exact near 0", "inferPromotedFloat">;
def Aten_LogOp : Aten_UnaryOp<"log", "the natural logarithm", "inferPromotedFloat">;
def Aten_Log2Op : Aten_UnaryOp<"log2", "the logarithm to base 2", "inferPromotedFloat">;
def Aten_Log10Op : Aten_UnaryOp<"log10", "the logarithm to base 10", "inferPromotedFloat">;
def Aten_Log1pOp : Aten_UnaryOp<"log1p", "log(1 + self), exact near 0", "inferPromotedFloat">;
def Aten_SqrtOp : Aten_UnaryOp<"sqrt", "the square root", "inferPromotedFloat">;
def Aten_RsqrtOp : Aten_UnaryOp<"rsqrt", "1 / sqrt(self)", "inferPromotedFloat">;
def Aten_ReciprocalOp : Aten_UnaryOp<"reciprocal", "1 / self", "inferPromotedFloat">;
def Aten_SinOp : Aten_UnaryOp<"sin", "the sine", "inferPromotedFloat">;
def Aten_CosOp : Aten_UnaryOp<"cos", "the cosine", "inferPromotedFloat">;
def Aten_TanOp : Aten_UnaryOp<"tan", "the tangent", "inferPromotedFloat">;
def Aten_AsinOp : Aten_UnaryOp<"asin", "the arcsine", "inferPromotedFloat">;
def Aten_AcosOp : Aten_UnaryOp<"acos", "the arccosine", "inferPromotedFloat">;
def Aten_AtanOp : Aten_UnaryOp<"atan", "the arctangent", "inferPromotedFloat">;
def Aten_SinhOp : Aten_UnaryOp<"sinh", "the hyperbolic sine", "inferPromotedFloat">;
def Aten_CoshOp : Aten_UnaryOp<"cosh", "the hyperbolic cosine", "inferPromotedFloat">;
def Aten_TanhOp : Aten_UnaryOp<"tanh", "the hyperbolic tangent", "inferPromotedFloat">;
def Aten_ErfOp : Aten_UnaryOp<"erf", "the error function", "inferPromotedFloat">;
def Aten_ErfinvOp : Aten_UnaryOp<"erfinv", "the number whose error function self is", "inferPromotedFloat">;
def Aten_SigmoidOp : Aten_UnaryOp<"sigmoid", "1 / (1 + exp(-self))", "inferPromotedFloat">;

// The result is bool.
def Aten_LogicalNotOp : Aten_UnaryOp<"logical_not", "whether self is 0", "inferPredicate">;
def Aten_IsnanOp : Aten_UnaryOp<"isnan", "whether self is not a number", "inferPredicate">;
def Aten_IsinfOp : Aten_UnaryOp<"isinf", "whether self is infinite", "inferPredicate">;

//===--------------------------------------------------------------------------------------------===//
// Activations
//===--------------------------------------------------------------------------------------------===//

class Aten_ActivationOp<string mnemonic, string formula, dag parameters = (ins)>
    : Aten_ElementwiseOp<mnemonic> {
  let summary = "Computes " # formula;
  let inferBy = "inferPromoted";
  let arguments = !con((ins Aten_FloatTensor:$self), parameters);
}

def Aten_ReluOp : Aten_UnaryOp<"relu", "max(self, 0)", "inferPromoted", Aten_NumberTensor>;
def Aten_SiluOp : Aten_ActivationOp<"silu", "self * sigmoid(self)">;
def Aten_MishOp : Aten_ActivationOp<"mish", "self * tanh(log(1 + exp(self)))">;
def Aten_HardswishOp : Aten_ActivationOp<"hardswish", "self * min(max(self + 3, 0), 6) / 6">;
def Aten_HardsigmoidOp : Aten_ActivationOp<"hardsigmoid", "min(max(self + 3, 0), 6) / 6">;
def Aten_LeakyReluOp : Aten_ActivationOp<"leaky_relu",
    "self where positive, elsewhere negative_slope * self",
    (ins DefaultValuedAttr<F64Attr, "0.01">:$negative_slope)>;
def Aten_EluOp : Aten_ActivationOp<"elu",
    "scale * self where positive, elsewhere scale * alpha * (exp(input_scale * self) - 1)",
    (ins DefaultValuedAttr<F64Attr, "1.0">:$alpha, DefaultValuedAttr<F64Attr, "1.0">:$scale,
         DefaultValuedAttr<F64Attr, "1.0">:$input_scale)>;
def Aten_HardtanhOp : Aten_ActivationOp<"hardtanh", "min(max(self, min_val), max_val)",
    (ins DefaultValuedAttr<F64Attr, "-1.0">:$min_val, DefaultValuedAttr<F64Attr, "1.0">:$max_val)>;
def Aten_SoftplusOp : Aten_ActivationOp<"softplus",
    "log(1 + exp(beta * self)) / beta; self where beta * self > threshold",
    (ins DefaultValuedAttr<F64Attr, "1.0">:$beta, DefaultValuedAttr<F64Attr, "20.0">:$threshold)>;
def Aten_GeluOp : Aten_ActivationOp<"gelu", "the Gaussian error linear unit",
    (ins DefaultValuedAttr<StrAttr, "\"none\"">:$approximate)> {
  let description = [{
    The result is `self * Phi(self)`, where Phi is the normal distribution function, or its approximation by `tanh`.
  }];
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------===//
// Two operands
//===--------------------------------------------------------------------------------------------===//

class Aten_AddLikeOp<string mnemonic, string formula> : Aten_ElementwiseOp<mnemonic> {
  let summary = "Computes " # formula;
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let linear = "{0, 1}";
}
def Aten_AddOp : Aten_AddLikeOp<"add", "self + alpha * other">;
def Aten_SubOp : Aten_AddLikeOp<"sub", "self - alpha * other">;

def Aten_MulOp : Aten_BinaryOp<"mul", "self * other"> {
  let linear = "{0}, {1}";
}
def Aten_DivOp : Aten_ElementwiseOp<"div"> {
  let summary = "Computes self / other";
  let description = [{
    Without `rounding_mode`, integers become floats. "trunc" rounds the quotient towards zero and "floor" rounds it
    down; the element type then stays the same.
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, OptionalAttr<StrAttr>:$rounding_mode);
  let shardBy = "divRule(op)";
  let hasVerifier = 1;
}
def Aten_PowOp : Aten_ElementwiseOp<"pow"> {
  let summary = "Computes self to the power of exponent";
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$exponent);
}
def Aten_MaximumOp : Aten_BinaryOp<"maximum", "the larger of the two, or NaN if one is NaN">;
def Aten_MinimumOp : Aten_BinaryOp<"minimum", "the smaller of the two, or NaN if one is NaN">;
def Aten_FmodOp : Aten_BinaryOp<"fmod", "the remainder, with the sign of self", "inferPromoted", Aten_NumberTensor>;
def Aten_RemainderOp : Aten_BinaryOp<"remainder", "the remainder, with the sign of other", "inferPromoted", Aten_NumberTensor>;
def Aten_Atan2Op : Aten_BinaryOp<"atan2", "the angle of the point (other, self)", "inferPromotedFloat">;

def Aten_BitwiseAndOp : Aten_BinaryOp<"bitwise_and", "the bitwise and, which is the logical one for bools", "inferPromoted", Aten_IntTensor>;
def Aten_BitwiseOrOp : Aten_BinaryOp<"bitwise_or", "the bitwise or, which is the logical one for bools", "inferPromoted", Aten_IntTensor>;
def Aten_BitwiseXorOp : Aten_BinaryOp<"bitwise_xor", "the bitwise exclusive or, which is the logical one for bools", "inferPromoted", Aten_IntTensor>;
def Aten_LogicalAndOp : Aten_BinaryOp<"logical_and", "whether both are not 0", "inferPredicate">;
def Aten_LogicalOrOp : Aten_BinaryOp<"logical_or", "whether one of them is not 0", "inferPredicate">;
def Aten_LogicalXorOp : Aten_BinaryOp<"logical_xor", "whether exactly one is not 0", "inferPredicate">;

// Comparisons, in the promoted type of the two.
def Aten_EqOp : Aten_BinaryOp<"eq", "self == other", "inferComparison">;
def Aten_NeOp : Aten_BinaryOp<"ne", "self != other", "inferComparison">;
def Aten_LtOp : Aten_BinaryOp<"lt", "self < other", "inferComparison">;
def Aten_LeOp : Aten_BinaryOp<"le", "self <= other", "inferComparison">;
def Aten_GtOp : Aten_BinaryOp<"gt", "self > other", "inferComparison">;
def Aten_GeOp : Aten_BinaryOp<"ge", "self >= other", "inferComparison">;

//===--------------------------------------------------------------------------------------------===//
// More operands
//===--------------------------------------------------------------------------------------------===//

def Aten_WhereOp : Aten_ElementwiseOp<"where"> {
  let summary = "Selects self where condition holds, and other elsewhere";
  let arguments = (ins Aten_BoolTensor:$condition, Aten_Tensor:$self, Aten_Tensor:$other);
  let linear = "{1, 2}";
}
def Aten_MaskedFillOp : Aten_ElementwiseOp<"masked_fill"> {
  let summary = "Selects value where mask holds, and self elsewhere, in the element type of self";
  let arguments = (ins Aten_Tensor:$self, Aten_BoolTensor:$mask, Aten_Tensor:$value);
  let linear = "{0, 2}";
}
def Aten_ClampOp : Aten_ElementwiseOp<"clamp", [AttrSizedOperandSegments]> {
  let summary = "Computes min(max(self, min), max), where a bound may be absent";
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_NumberTensor:$self, Optional<Aten_NumberTensor>:$min,
                       Optional<Aten_NumberTensor>:$max);
  let assemblyFormat = [{
    $self (`min` `(` $min^ `)`)? (`max` `(` $max^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}
def Aten_AddcmulOp : Aten_ElementwiseOp<"addcmul"> {
  let summary = "Computes self + value * tensor1 * tensor2";
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$tensor1, Aten_Tensor:$tensor2,
                       DefaultValuedAttr<F64Attr, "1.0">:$value);
  let linear = "{0, 1}, {0, 2}";
}
def Aten_AddcdivOp : Aten_ElementwiseOp<"addcdiv"> {
  let summary = "Computes self + value * tensor1 / tensor2";
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$tensor1, Aten_FloatTensor:$tensor2,
                       DefaultValuedAttr<F64Attr, "1.0">:$value);
  let linear = "{0, 1}";
}
def Aten_LerpOp : Aten_ElementwiseOp<"lerp"> {
  let summary = "Computes self + weight * (end - self)";
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$end, Aten_FloatTensor:$weight);
  let linear = "{0, 1}";
}

def Aten_ToCopyOp : Aten_Op<"to_copy", [LocalizableOpInterface]> {
  let summary = "Casts elements to another element type (ATen's _to_copy, to.dtype)";
  let arguments = (ins Aten_Tensor:$self, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let shardBy = "castRule(op)";
  let runsAs = "KernelForm::Elementwise";
  let hasFolder = 1;
  let assemblyFormat = "$self `to` $dtype attr-dict `:` functional-type(operands, results)";
}

def Aten_BitcastOp : Aten_Op<"bitcast", [LocalizableOpInterface]> {
  let summary = "Reads the bits of elements as another element type of their width";
  let description = [{
    Passes make the op; the importer does not, since ATen's `view.dtype` is a view whose memory may be written.

    ```mlir
    %y = aten.bitcast %x to i32 : (tensor<8xf32>) -> tensor<8xi32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let shardBy = "elementwiseRule(op, {})";
  let runsAs = "KernelForm::Elementwise";
  let hasVerifier = 1;
  let assemblyFormat = "$self `to` $dtype attr-dict `:` functional-type(operands, results)";
}

def Aten_CopyOp : Aten_Op<"copy"> {
  let summary = "Returns src, which was written over self (ATen's copy, fill and zero)";
  let description = [{
    Both have the shape and the element type of the result. Nothing of self is read: the op keeps what depends on it. Where a
    loss depends on a parameter through overwritten tensors alone, its gradient is zero, as in PyTorch, and not absent. A
    rank's part of the op is its part of src.

    ```mlir
    %y = aten.copy %x, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$src);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let shardBy = "elementwiseRule(op, {{1}})";
  let runsAs = "KernelForm::Elementwise";
}

#endif // SHARDC_DIALECTS_ATEN_ELEMENTWISE_TD
