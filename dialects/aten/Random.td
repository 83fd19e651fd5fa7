// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers: tensors of them, the generator that they come from, and dropout.
#ifndef SHARDC_DIALECTS_ATEN_RANDOM_TD
#define SHARDC_DIALECTS_ATEN_RANDOM_TD

include "dialects/aten/ElementwiseBase.td"

def Aten_RandomState : RankedTensorOf<[I64]>;

def Aten_RandomOp : Aten_Op<"random"> {
  let summary = "Makes a tensor of random numbers, a function of seed, offset and place";
  let description = [{
    Seed and offset are 0-dim. An op whose offset differs from those of all other ops of a program and of all other runs draws numbers that
    are independent of theirs. Distributions:

    | `distribution` | element types | elements |
    |---|---|---|
    | "uniform" | floats | multiples of 2^-24 in [0, 1) (of 2^-53 for f64, 2^-8 for bf16, 2^-11 for f16) |
    | "normal" | floats | of mean 0 and variance 1 |
    | "bits" | i64 | in [0, 2^63) |

    Each rank makes its own part; what an element's place is among ranks is the generator's mode (docs/semantics.md, N1).

    ```mlir
    %r = aten.random "uniform" [8, 4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$distribution, Aten_RandomState:$seed, Aten_RandomState:$offset,
                       DenseI64ArrayAttr:$static_size, Variadic<Index>:$size, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $distribution custom<DynamicIndexList>($size, $static_size) $dtype `seed` `(` $seed `)`
    `offset` `(` $offset `)` attr-dict `:` `(` type($seed) `,` type($offset) `)` `->` type($result)
  }];
  let hasVerifier = 1;
  let shardBy = "creationRule(op)";
}

def Aten_PhiloxOp : Aten_ElementwiseOp<"philox"> {
  let summary = "Computes one of four numbers of 32 bits of the generator Philox4x32-10";
  let description = [{
    The counter is `element` (words 0 and 1, the low one first) and `offset` (words 2 and 3), the key is `seed`. `word` says which of the four
    numbers the result is, which lies in [0, 2^32).

    Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
  }];
  let inferBy = "inferPromoted";
  let arguments = (ins Aten_RandomState:$element, Aten_RandomState:$seed, Aten_RandomState:$offset,
                       ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<3>]>:$word);
}

def Aten_DropoutOp : Aten_ElementwiseOp<"dropout"> {
  let summary = "Computes self / (1 - p) where mask holds, and 0 elsewhere";
  let description = [{
    For `p` of 1 all elements are 0. As in PyTorch, elements are multiplied by 0: what is not finite becomes NaN.
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_BoolTensor:$mask, F64Attr:$p);
  let linear = "{0}";
}

#endif // SHARDC_DIALECTS_ATEN_RANDOM_TD
