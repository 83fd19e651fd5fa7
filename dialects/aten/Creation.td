// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that make tensors without tensor operands, and the size of a dim.
#ifndef SHARDC_DIALECTS_ATEN_CREATION_TD
#define SHARDC_DIALECTS_ATEN_CREATION_TD

include "dialects/aten/AtenBase.td"

def Aten_ConstantOp : Aten_Op<"constant", [ConstantLike]> {
  let summary = "Makes a tensor of known elements";
  let description = [{
    The op is for small tensors and splats only: parameters, buffers and big constants are arguments of the function.
    The value's type has no encoding; the result's may have one, and is printed then:

    ```mlir
    %c = aten.constant dense<0.5> : tensor<f32>
    %d = aten.constant dense<true> : tensor<4xi1> -> tensor<4xi1, #layout>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "attr-dict custom<ConstantValue>($value, type($result))";
  let hasFolder = 1;
  let shardBy = "creationRule(op)";
  let runsAs = "op.isSplat() ? KernelForm::Generator : KernelForm::Table";
  let moreDeclarations = [{
    /// All elements are one number.
    bool isSplat() {
      auto elements = ::llvm::dyn_cast<::mlir::DenseElementsAttr>(getValue());
      return elements && elements.isSplat();
    }
  }];
}

def Aten_ArangeOp : Aten_Op<"arange", [AttrSizedOperandSegments]> {
  let summary = "Makes a vector of start, start + step, ... up to end, which is not included";
  let description = [{
    The numbers are integers, which are cast to `dtype`; they decrease where `step` is negative. An importer turns an arange of
    floats into one of integers, times a step, plus a start.

    ```mlir
    %p = aten.arange [0 : %n : 1] i64 : tensor<?xi64>
    ```
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$static_start, Optional<Index>:$start,
                       I64Attr:$static_end, Optional<Index>:$end,
                       DefaultValuedAttr<I64Attr, "1">:$step, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    ` ` `[` custom<DynamicIndex>($start, $static_start) `:` custom<DynamicIndex>($end, $static_end) `:`
    $step `]` $dtype attr-dict `:` type($result)
  }];
  let shardBy = "creationRule(op)";
  let runsAs = "KernelForm::Generator";
}

/// An index. Not "buildable", which would make ODS write inference of its own.
def Aten_Size : Type<Index.predicate, "index", "::mlir::IndexType">;

def Aten_SymSizeOp : Aten_Op<"sym_size"> {
  let summary = "Returns the size of a dim";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim);
  let results = (outs Aten_Size:$result);
  let assemblyFormat = "$self `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let shardBy = "sizeRule(op)";
  let runsAs = "KernelForm::Scalar";
}

#endif // SHARDC_DIALECTS_ATEN_CREATION_TD
