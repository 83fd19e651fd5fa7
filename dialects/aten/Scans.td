// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that carry a value along a dim, other than sums.
#ifndef SHARDC_DIALECTS_ATEN_SCANS_TD
#define SHARDC_DIALECTS_ATEN_SCANS_TD

include "dialects/aten/AtenBase.td"

/// Each element of the result combines all elements of self up to its place. Along a sharded dim, each rank combines its
/// own elements with what all ranks before it have, of which ranks exchange one number a row.
class Aten_ScanOp<string mnemonic, string formula> : Aten_Op<mnemonic> {
  let summary = "Computes, for each element, " # formula;
  let results = (outs Aten_Tensor:$result);
  let shardBy = "nonlinearScanRule(op, static_cast<int64_t>(getDim()))";
  let runsAs = "KernelForm::Scan";
  let loops = "rowIteration(op, op.getDim(), op.getDim() + 1)";
}

class Aten_SameScanOp<string mnemonic, string formula, Type type> : Aten_ScanOp<mnemonic, formula> {
  let inferBy = "inferScanSame";
  let arguments = (ins type:$self, Aten_Dim:$dim);
  let assemblyFormat = "$self `dim` $dim attr-dict `:` functional-type(operands, results)";
}

// Bools and integers become i64.
def Aten_CumprodOp : Aten_ScanOp<"cumprod", "the product of all elements up to it along dim"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, OptionalAttr<TypeAttr>:$dtype);
  let assemblyFormat = "$self `dim` $dim (`to` $dtype^)? attr-dict `:` functional-type(operands, results)";
}
// ATen's ops of these names have positions as well: those are the largest place so far whose element is the extremum.
def Aten_CummaxOp : Aten_SameScanOp<"cummax", "the largest element up to it along dim, or NaN if there is one", Aten_Tensor>;
def Aten_CumminOp : Aten_SameScanOp<"cummin", "the smallest element up to it along dim, or NaN if there is one", Aten_Tensor>;
def Aten_LogcumsumexpOp
    : Aten_SameScanOp<"logcumsumexp", "the logarithm of the sum of exp(self) of all elements up to it along dim",
                      Aten_FloatTensor>;

#endif // SHARDC_DIALECTS_ATEN_SCANS_TD
