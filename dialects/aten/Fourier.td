// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Discrete Fourier transforms along one dim, of pairs (Pairs.h) or of real numbers.
#ifndef SHARDC_DIALECTS_ATEN_FOURIER_TD
#define SHARDC_DIALECTS_ATEN_FOURIER_TD

include "dialects/aten/AtenBase.td"

def Aten_FourierTensor : RankedTensorOf<[F32, F64]>;

/// Linear. The transformed dim is needed whole; all dims but that and that of the pairs may be sharded. The result is multiplied
/// by 1, 1 / sqrt(n) or 1 / n: `normalization` 0, 1 or 2, as ATen has it. A transform over several dims is one op for each,
/// so that a rank needs one dim whole at a time.
class Aten_FourierOp<string mnemonic>
    : Aten_Op<mnemonic, [LocalizableOpInterface, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let results = (outs Aten_FourierTensor:$result);
  let shardBy = "fourierRule(op, static_cast<int64_t>(op.getDim()))";
  let runsAs = "KernelForm::None"; // becomes products with matrices of roots of unity
}

def Aten_FftC2cOp : Aten_FourierOp<"fft_c2c"> {
  let summary = "Computes the Fourier transform of complex numbers along a dim, or its inverse";
  let description = [{
    `result[k] = sum over j of self[j] * exp(-2 pi i j k / n)`; without `forward` it is `exp(+2 pi i j k / n)`. Operand and
    result have a last dim of 2, for the real part and the imaginary one.

    ```mlir
    %y = aten.fft_c2c %x dim 1 forward : (tensor<8x30x2xf32>) -> tensor<8x30x2xf32>
    ```
  }];
  let arguments = (ins Aten_FourierTensor:$self, Aten_Dim:$dim, DefaultValuedAttr<I64Attr, "0">:$normalization, UnitAttr:$forward);
  let assemblyFormat = [{
    $self `dim` $dim (`normalization` $normalization^)? (`forward` $forward^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_FftR2cOp : Aten_FourierOp<"fft_r2c"> {
  let summary = "Computes the forward Fourier transform of real numbers along a dim";
  let description = [{
    The result has one more dim, of 2. With `onesided` it has the elements 0 to n / 2 only: the others are their conjugates.

    ```mlir
    %y = aten.fft_r2c %x dim 1 onesided : (tensor<8x30xf32>) -> tensor<8x16x2xf32>
    ```
  }];
  let arguments = (ins Aten_FourierTensor:$self, Aten_Dim:$dim, DefaultValuedAttr<I64Attr, "0">:$normalization, UnitAttr:$onesided);
  let assemblyFormat = [{
    $self `dim` $dim (`normalization` $normalization^)? (`onesided` $onesided^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_FftC2rOp : Aten_FourierOp<"fft_c2r"> {
  let summary = "Computes the real numbers whose forward transform has these elements 0 to n / 2, times n";
  let description = [{
    The result has n elements along the dim, which is the one number of `last_dim_size`, and no dim of pairs. Of element 0, and n / 2 where n is even,
    only the real part counts.

    ```mlir
    %x = aten.fft_c2r %y dim 1 to [30] normalization 2 : (tensor<8x16x2xf32>) -> tensor<8x30xf32>
    ```
  }];
  let arguments = (ins Aten_FourierTensor:$self, Aten_Dim:$dim, DenseI64ArrayAttr:$static_last_dim_size,
                       Variadic<Index>:$last_dim_size, DefaultValuedAttr<I64Attr, "0">:$normalization);
  let assemblyFormat = [{
    $self `dim` $dim `to` custom<DynamicIndexList>($last_dim_size, $static_last_dim_size) (`normalization` $normalization^)? attr-dict
    `:` `(` type($self) `)` `->` type($result)
  }];
}

#endif // SHARDC_DIALECTS_ATEN_FOURIER_TD
