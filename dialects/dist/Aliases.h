// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short names for the attributes that fill the types of a program.

#ifndef SHARDC_DIALECTS_DIST_ALIASES_H
#define SHARDC_DIALECTS_DIST_ALIASES_H

#include "mlir/IR/OpImplementation.h"

namespace shardc::dist {

/// `#mesh`; `#R`, `#S0tp`, `#Pdp_S1tp` for layouts (what happens on which axis, replicated axes
/// left out); `#tp`, `#dp_tp` for groups along axes; `#group` for rank lists.
struct AliasInterface : mlir::OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(mlir::Attribute attr, llvm::raw_ostream &os) const override;
};

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_ALIASES_H
