// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect itself: what it is for, and the base classes of its attributes, types and operations.

#ifndef SHARDC_DIALECTS_DIST_DISTBASE_TD
#define SHARDC_DIALECTS_DIST_DISTBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::shardc::dist";
  let summary = "Describes meshes, layouts, redistributions, collectives and futures";
  let description = [{
    This dialect has everything that concerns several ranks, and nothing else: where the parts of a tensor are
    (`#dist.mesh`, `#dist.layout`), that they must move (`dist.redistribute`), and how they move
    (`dist.all_gather` and the other collectives). The arithmetic between two movements belongs to other dialects.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

class Dist_Attr<string name, string mnemonicName, list<Trait> traits = []>
    : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

class Dist_Type<string name, string mnemonicName, list<Trait> traits = []>
    : TypeDef<Dist_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

#endif // SHARDC_DIALECTS_DIST_DISTBASE_TD
