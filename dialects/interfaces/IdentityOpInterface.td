// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD
#define SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def IdentityOpInterface : OpInterface<"IdentityOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    The interface of ops with one tensor operand and one tensor result that have the same global value, such as a change of
    layout or a constraint. Operand and result have equal sizes, and a rule may look through the op.
  }];
  let methods = [
    InterfaceMethod<"The operand, whose global value is that of the result.", "::mlir::Value", "getIdentitySource", (ins), [{}], [{
      return $_op->getOperand(0);
    }]>,
  ];
}

#endif // SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD
