// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_TD
#define SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def PiecesOpInterface : OpInterface<"PiecesOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    An op whose results are made of its operands' elements, which it puts in another order along some
    dims, and of elements of one value. From what it says here follow the elements that a rank needs of
    others, for the op alone and for any number of such ops in a row. The other dims stay as they are.
  }];
  let methods = [
    InterfaceMethod<[{
        The dims along which elements move.
      }],
      "::llvm::SmallVector<int64_t>", "getMovedDims">,
    InterfaceMethod<[{
        What such a dim of a result is made of: a piece's source is the number of an operand, or `kNewElements`.
        Nothing where sizes or positions are not known.
      }],
      "std::optional<::shardc::Pieces>", "getPieces", (ins "unsigned":$result, "int64_t":$dim)>,
    InterfaceMethod<[{
        The value of new elements.
      }],
      "double", "getNewValue", (ins), [{}], [{ return 0; }]>,
  ];
}

#endif // SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_TD
