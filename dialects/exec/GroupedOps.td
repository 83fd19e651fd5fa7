// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with one of several matrices.

#ifndef SHARDC_DIALECTS_EXEC_GROUPEDOPS_TD
#define SHARDC_DIALECTS_EXEC_GROUPEDOPS_TD

include "dialects/exec/ExecBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_GroupedGemmOp : Exec_Op<"grouped_gemm"> {
  let summary = "Multiplies rows with the matrices that their indices name, or sums outer products by index";
  let description = [{
    Where `b` has three dims, `a` is `S x K`, `b` is `G x K x N` and `c` is `S x N`: row s of C is row s of A times matrix `index[s]` of
    B, and zero where the index is not one of G. Where `c` has three dims, `a` is `M x S`, `b` is `S x N` and `c` is `G x M x N`: matrix g
    of C is the sum over all s with `index[s] = g` of column s of A times row s of B.

    Consecutive rows with one index are one product. Nothing is padded, and an index may come again later. Strides are as those of
    `exec.gemm`.

    ```mlir
    exec.grouped_gemm %x * %w at %i -> %y name "indexed_mm"
        : memref<6x8xf32> * memref<4x8x16xf32> at memref<6xi64> -> memref<6x16xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$a, Arg<AnyMemRef, "", [MemRead]>:$b,
                       Arg<AnyMemRef, "", [MemRead]>:$index, Arg<AnyMemRef, "", [MemWrite]>:$c, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $a `*` $b `at` $index `->` $c (`name` $name^)? attr-dict
    `:` type($a) `*` type($b) `at` type($index) `->` type($c)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether outer products are summed.
    bool sumsOuterProducts() { return getC().getType().getRank() == 3; }
  }];
}

#endif // SHARDC_DIALECTS_EXEC_GROUPEDOPS_TD
