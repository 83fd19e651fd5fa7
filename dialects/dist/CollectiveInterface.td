// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_COLLECTIVEINTERFACE_TD
#define SHARDC_DIALECTS_DIST_COLLECTIVEINTERFACE_TD

include "mlir/IR/OpBase.td"

def Dist_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::shardc::dist";
  let description = [{
    The interface of collectives of all kinds, for passes, cost models and lowerings. Tensor i is the
    i-th of `getTensors()` and delivers result i; dims, extents and element types are per tensor.
  }];
  let methods = [
    InterfaceMethod<"", "::shardc::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"Who takes part.", "::shardc::dist::GroupAttrInterface", "getGroup">,
    InterfaceMethod<"The tensors that are sent.", "::mlir::OperandRange", "getTensors">,
    InterfaceMethod<[{
      Index operands, tensor after tensor: the dynamic entries of its extent lists in order, then its
      full extent where neither list nor the type of the result says it (see `getTensorSizes`).
    }], "::mlir::OperandRange", "getSizes", (ins), [{}], [{
      return $_op->getOperands().take_back(0);
    }]>,
    InterfaceMethod<"How values are combined; nothing for kinds that combine nothing.",
        "std::optional<::shardc::Reduction>", "getReductionOrNone", (ins), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      The dim along which operands may differ from position to position: the one along which an all-gather or
      all-to-all concatenates, or along which the operands of a permute differ. -1 where there is none.
    }], "int64_t", "getConcatDim", (ins "unsigned":$tensor), [{}], [{ return -1; }]>,
    InterfaceMethod<[{
      The dim that shrinks with the group, because a reduce-scatter or all-to-all cuts it. -1 where there
      is none.
    }], "int64_t", "getSplitDim", (ins "unsigned":$tensor), [{}], [{ return -1; }]>,
    InterfaceMethod<[{
      Explicit extents along the concat dim by position in the group; empty where they are PyTorch's
      chunks of the full extent (L3). `kDynamic` entries are in `getSizes()`.
    }], "::llvm::ArrayRef<int64_t>", "getConcatExtents", (ins "unsigned":$tensor), [{}],
        [{ return {}; }]>,
    InterfaceMethod<"The same along the split dim.", "::llvm::ArrayRef<int64_t>",
        "getSplitExtents", (ins "unsigned":$tensor), [{}], [{ return {}; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether results are futures. A collective without tensors is synchronous.
    bool isAsync() {
      return $_op->getNumResults() != 0 &&
             ::mlir::isa<::shardc::dist::FutureType>($_op->getResult(0).getType());
    }
    ::mlir::RankedTensorType getOperandType(unsigned tensor) {
      return ::mlir::cast<::mlir::RankedTensorType>($_op.getTensors()[tensor].getType());
    }
    /// What result `tensor` delivers, whether it is a future or not.
    ::mlir::RankedTensorType getResultTensorType(unsigned tensor) {
      return ::shardc::dist::getDeliveredType($_op->getResult(tensor).getType());
    }
  }];
}

#endif // SHARDC_DIALECTS_DIST_COLLECTIVEINTERFACE_TD
