// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_WINDOWINTERFACE_TD
#define SHARDC_DIALECTS_ATEN_WINDOWINTERFACE_TD

include "mlir/IR/OpBase.td"

def Aten_WindowOpInterface : OpInterface<"WindowOpInterface"> {
  let cppNamespace = "::shardc::aten";
  let description = [{
    An op that slides a window over the last dims of its operand 0, the image, and makes one position of the last dims of its
    result of what the window covers. (A fold is not one: its windows slide over the result.)
  }];
  let methods = [
    InterfaceMethod<"One for each spatial dim.", "::shardc::aten::Windows", "getWindows">,
    InterfaceMethod<[{
        Whether a position is made of the elements under its window alone, wherever it lies in the image, so that some
        of the positions may be computed by an op of their own.
      }],
      "bool", "isComputedByPosition", (ins), [{}], [{ return true; }]>,
    InterfaceMethod<[{
        How a position is put together from what the op makes of parts of the elements under its window; nothing where it
        cannot be, or where it would be rounded once more than PyTorch does.
      }],
      "std::optional<::shardc::Reduction>", "getPartReduction", (ins), [{}], [{ return std::nullopt; }]>,
    InterfaceMethod<"Elements beside the image on both sides, one number for each spatial dim.",
      "void", "setPadding", (ins "::llvm::ArrayRef<int64_t>":$padding)>,
  ];
}

#endif // SHARDC_DIALECTS_ATEN_WINDOWINTERFACE_TD
