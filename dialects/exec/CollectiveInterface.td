// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_EXEC_COLLECTIVEINTERFACE_TD
#define SHARDC_DIALECTS_EXEC_COLLECTIVEINTERFACE_TD

include "mlir/IR/OpBase.td"

def Exec_CollectiveCallInterface : OpInterface<"CollectiveCallInterface"> {
  let cppNamespace = "::shardc::exec";
  let description = [{
    The interface of collectives of the host program, for verifiers, passes and emission, whether the op runs the collective
    to its end or only starts it. Tensor i is read from input i and delivered to output i.
  }];
  let methods = [
    InterfaceMethod<"", "::shardc::CollectiveKind", "getKind">,
    InterfaceMethod<"How values are combined; null for kinds that combine nothing.",
        "::shardc::dist::ReductionAttr", "getReductionAttr">,
    InterfaceMethod<"The ranks that take part.", "::shardc::dist::GroupAttrInterface", "getGroup">,
    InterfaceMethod<"", "::mlir::Operation::operand_range", "getInputs">,
    InterfaceMethod<"", "::mlir::Operation::operand_range", "getOutputs">,
    InterfaceMethod<"The dynamic entries of the lists of extents, tensor after tensor.",
        "::mlir::Operation::operand_range", "getSizes">,
    InterfaceMethod<"Element types of the tensors; memory has i8 for i1.", "::mlir::ArrayAttr",
        "getElementTypes">,
    InterfaceMethod<"By tensor, -1 for none.", "::llvm::ArrayRef<int64_t>", "getGatherDims">,
    InterfaceMethod<"By tensor, -1 for none.", "::llvm::ArrayRef<int64_t>", "getScatterDims">,
    InterfaceMethod<"Full extents of each tensor.", "::mlir::ArrayAttr", "getExtents">,
    InterfaceMethod<"By tensor, extents by position along the gather dim; empty for PyTorch's chunks.",
        "::mlir::ArrayAttr", "getGatherExtents">,
    InterfaceMethod<"The same along the scatter dim.", "::mlir::ArrayAttr", "getScatterExtents">,
    InterfaceMethod<"Position of the source of a broadcast.", "uint64_t", "getRoot">,
    InterfaceMethod<"Source and target positions of a permute, one pair after the other.",
        "::llvm::ArrayRef<int64_t>", "getPairs">,
  ];
}

#endif // SHARDC_DIALECTS_EXEC_COLLECTIVEINTERFACE_TD
