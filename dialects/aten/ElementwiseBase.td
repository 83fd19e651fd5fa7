// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classes of elementwise ops, for every family that has some.
#ifndef SHARDC_DIALECTS_ATEN_ELEMENTWISEBASE_TD
#define SHARDC_DIALECTS_ATEN_ELEMENTWISEBASE_TD

include "dialects/aten/AtenBase.td"

/// An op needs a rule in lowering/linalg, which says what it computes for one element.
/// `inferBy` names how the element type follows from those of the operands (Inference.h).
class Aten_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Aten_Op<mnemonic, !listconcat([LocalizableOpInterface], traits)> {
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let runsAs = "KernelForm::Elementwise";
  /// Sets of operands in which the op is linear jointly (ShardingRule.h).
  string linear = "";
  let shardBy = "elementwiseRule(op, {" # linear # "})";
}

class Aten_UnaryOp<string mnemonic, string formula, string rule = "inferPromoted",
                   Type type = Aten_Tensor> : Aten_ElementwiseOp<mnemonic> {
  let summary = "Computes " # formula;
  let inferBy = rule;
  let arguments = (ins type:$self);
}

class Aten_BinaryOp<string mnemonic, string formula, string rule = "inferPromoted",
                    Type type = Aten_Tensor, list<Trait> traits = []>
    : Aten_ElementwiseOp<mnemonic, traits> {
  let summary = "Computes " # formula;
  let inferBy = rule;
  let arguments = (ins type:$self, type:$other);
}

#endif // SHARDC_DIALECTS_ATEN_ELEMENTWISEBASE_TD
