// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that reduce dims, or scan along one.
#ifndef SHARDC_DIALECTS_ATEN_REDUCTIONS_TD
#define SHARDC_DIALECTS_ATEN_REDUCTIONS_TD

include "dialects/aten/AtenBase.td"

/// `dim` absent or empty: all dims. Without `keepdim` they vanish from the result.
class Aten_ReductionOpBase<string mnemonic, string formula, list<Trait> traits = []>
    : Aten_Op<mnemonic, traits> {
  let runsAs = "KernelForm::Rows";
  let loops = "reductionIteration(op, op.getDim(), op.getKeepdim())";
  let summary = formula;
  let results = (outs Aten_Tensor:$result);
}

class Aten_ReductionOp<string mnemonic, string formula, string rule, Type type = Aten_Tensor,
                       list<Trait> traits = []> : Aten_ReductionOpBase<mnemonic, formula, traits> {
  let inferBy = rule;
  let arguments = (ins type:$self, OptionalAttr<Aten_Dims>:$dim, UnitAttr:$keepdim);
  let assemblyFormat = [{
    $self (`dim` $dim^)? (`keepdim` $keepdim^)? attr-dict `:` functional-type(operands, results)
  }];
}

/// `dtype`: self is cast to it first.
class Aten_CastReductionOp<string mnemonic, string formula, string rule, list<Trait> traits = []>
    : Aten_ReductionOpBase<mnemonic, formula, traits> {
  let inferBy = rule;
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<Aten_Dims>:$dim, UnitAttr:$keepdim,
                       OptionalAttr<TypeAttr>:$dtype);
  let assemblyFormat = [{
    $self (`dim` $dim^)? (`keepdim` $keepdim^)? (`to` $dtype^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

// Bools and integers become i64.
def Aten_SumOp : Aten_CastReductionOp<"sum", "the sum of the elements", "inferSumLike", [LocalizableOpInterface]> {
  let shardBy = "reductionRule(op, Reduction::Sum, /*isLinear=*/true)";
}
def Aten_ProdOp : Aten_CastReductionOp<"prod", "the product of the elements", "inferSumLike",
                                       [LocalizableOpInterface]> {
  let shardBy = "reductionRule(op, Reduction::Prod)";
}
def Aten_MeanOp : Aten_CastReductionOp<"mean", "the sum of the elements divided by their number", "inferMean"> {
  let description = [{
    Over a sharded dim the local op is a sum divided by the global number of elements (G6). The
    result is therefore partial by sum, and not by average.
  }];
  let shardBy = "reductionRule(op, Reduction::Sum, /*isLinear=*/true)";
}

class Aten_ExtremumOp<string mnemonic, string formula, string rule, string kind>
    : Aten_ReductionOp<mnemonic, formula, rule, Aten_Tensor, [LocalizableOpInterface]> {
  let shardBy = "reductionRule(op, Reduction::" # kind # ")";
}
// Of no elements: the identity of the reduction, as shards may be empty (PyTorch refuses).
def Aten_AmaxOp : Aten_ExtremumOp<"amax", "the largest element, or NaN if there is one", "inferReductionSame", "Max">;
def Aten_AminOp : Aten_ExtremumOp<"amin", "the smallest element, or NaN if there is one", "inferReductionSame", "Min">;
def Aten_AnyOp : Aten_ExtremumOp<"any", "whether an element is not 0", "inferAnyAll", "Max">;
def Aten_AllOp : Aten_ExtremumOp<"all", "whether no element is 0", "inferAnyAll", "Min">;

def Aten_LogsumexpOp : Aten_ReductionOp<"logsumexp", "the logarithm of the sum of exp(self)", "inferReductionFloat"> {
  let shardBy = "jointReductionRule(op, /*exchange=*/2)"; // maximum, sum
}

// count, mean, sum of squared differences
def Aten_VarOp : Aten_ReductionOpBase<"var", "the sum of squared differences from the mean, divided by (number - correction)"> {
  let inferBy = "inferReductionSame";
  let arguments = (ins Aten_FloatTensor:$self, OptionalAttr<Aten_Dims>:$dim,
                       DefaultValuedAttr<F64Attr, "1.0">:$correction, UnitAttr:$keepdim);
  let assemblyFormat = [{
    $self (`dim` $dim^)? (`keepdim` $keepdim^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "jointReductionRule(op, /*exchange=*/3)";
}

def Aten_VectorNormOp : Aten_ReductionOpBase<"linalg_vector_norm", "(sum of |self|^ord)^(1/ord)"> {
  let description = [{
    An infinite `ord` gives the largest |self|, a negative infinite one the smallest, and 0 the number of elements that are not
    0. With `dtype`, self is cast to it first.
  }];
  let inferBy = "inferCastReductionSame";
  let arguments = (ins Aten_FloatTensor:$self, DefaultValuedAttr<F64Attr, "2.0">:$ord,
                       OptionalAttr<Aten_Dims>:$dim, UnitAttr:$keepdim,
                       OptionalAttr<TypeAttr>:$dtype);
  let assemblyFormat = [{
    $self (`dim` $dim^)? (`keepdim` $keepdim^)? (`to` $dtype^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let shardBy = "jointReductionRule(op, /*exchange=*/1)";
}

class Aten_ArgReductionOp<string mnemonic, string formula> : Aten_ReductionOpBase<mnemonic, formula> {
  let description = [{
    Of equal elements the first one counts. Without `dim`, the result is the position in the flattened tensor.
  }];
  let inferBy = "inferArgReduction";
  let loops = [{reductionIteration(
      op, op.getDim() ? std::optional(::llvm::SmallVector<int64_t>{int64_t(*op.getDim())}) : std::nullopt,
      op.getKeepdim())}];
  let arguments = (ins Aten_NumberTensor:$self, OptionalAttr<Aten_Dim>:$dim, UnitAttr:$keepdim);
  let assemblyFormat = [{
    $self (`dim` $dim^)? (`keepdim` $keepdim^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "jointReductionRule(op, /*exchange=*/2)"; // value and position
}
def Aten_ArgmaxOp : Aten_ArgReductionOp<"argmax", "the position of the largest element, as i64">;
def Aten_ArgminOp : Aten_ArgReductionOp<"argmin", "the position of the smallest element, as i64">;

def Aten_CumsumOp : Aten_Op<"cumsum"> {
  let summary = "Computes, for each element, the sum of all elements up to it along dim";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, OptionalAttr<TypeAttr>:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `dim` $dim (`to` $dtype^)? attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "scanRule(op, static_cast<int64_t>(getDim()))";
  let runsAs = "KernelForm::Scan";
  let loops = "rowIteration(op, op.getDim(), op.getDim() + 1)";
}

#endif // SHARDC_DIALECTS_ATEN_REDUCTIONS_TD
