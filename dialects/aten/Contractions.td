// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that multiply and sum over shared dims.
#ifndef SHARDC_DIALECTS_ATEN_CONTRACTIONS_TD
#define SHARDC_DIALECTS_ATEN_CONTRACTIONS_TD

include "dialects/aten/AtenBase.td"

class Aten_ContractionOp<string mnemonic, list<Trait> traits = []>
    : Aten_Op<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>], traits)> {
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let runsAs = "KernelForm::Product";
}

def Aten_LinearOp : Aten_ContractionOp<"linear"> {
  let summary = "Computes input times the transpose of weight, plus bias";
  let description = [{
    `result[..., n] = sum_k input[..., k] * weight[n, k] + bias[n]`. A weight of one dim gives a result
    without the last dim.
  }];
  let arguments = (ins Aten_Tensor:$input, Aten_Tensor:$weight, Optional<Aten_Tensor>:$bias);
  let shardBy = "linearRule(op)";
}

def Aten_MatmulOp : Aten_ContractionOp<"matmul", [LocalizableOpInterface]> {
  let summary = "Computes the matrix product with broadcast batch dims, for vectors as in PyTorch";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other);
  let shardBy = "matmulRule(op)";
}

def Aten_MmOp : Aten_ContractionOp<"mm", [LocalizableOpInterface]> {
  let summary = "Computes the matrix product of [m, k] and [k, n]";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2);
  let shardBy = "productRule(op)";
}

def Aten_BmmOp : Aten_ContractionOp<"bmm", [LocalizableOpInterface]> {
  let summary = "Computes a batch of matrix products, of [b, m, k] and [b, k, n]";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2);
  let shardBy = "productRule(op)";
}

def Aten_AddmmOp : Aten_ContractionOp<"addmm"> {
  let summary = "Computes beta * self + alpha * mat1 mat2, where self is broadcast";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat1, Aten_Tensor:$mat2,
                       DefaultValuedAttr<F64Attr, "1.0">:$beta, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let shardBy = "sumWithProductRule(op)";
}

def Aten_BaddbmmOp : Aten_ContractionOp<"baddbmm"> {
  let summary = "Computes beta * self + alpha * batch1 batch2, where self is broadcast";
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$batch1, Aten_Tensor:$batch2,
                       DefaultValuedAttr<F64Attr, "1.0">:$beta, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let shardBy = "sumWithProductRule(op)";
}

def Aten_TensordotOp : Aten_ContractionOp<"tensordot", [LocalizableOpInterface]> {
  let summary = "Multiplies and sums over dims_self[i] of self and dims_other[i] of other, for all i together";
  let description = [{
    The result has the other dims of self, then those of other, each in their order. The gradient of the weight of a linear layer
    is such a product, over all leading dims of its input: they stay apart here, because a dim that is made of several
    has no layout where an inner one of them is sharded.

    ```mlir
    %gw = aten.tensordot %gy, %x dims [0, 1] [0, 1] : (tensor<8x16x32xf32>, tensor<8x16x64xf32>) -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, Aten_Dims:$dims_self, Aten_Dims:$dims_other);
  let assemblyFormat = [{
    $self `,` $other `dims` $dims_self $dims_other attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "tensordotRule(op)";
  let moreDeclarations = [{
    /// The dims of an operand (0 or 1) that are not summed over, in order.
    ::llvm::SmallVector<int64_t> getFreeDims(unsigned operand);
  }];
}

#endif // SHARDC_DIALECTS_ATEN_CONTRACTIONS_TD
