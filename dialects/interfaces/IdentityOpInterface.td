// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD
#define SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def IdentityOpInterface : OpInterface<"IdentityOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    An op with one operand and one result, both tensors, that are the same value as a whole: a change of
    layout, a constraint. What is true of the operand's sizes is true of the result's, and a rule may look
    through it.
  }];
  let methods = [
    InterfaceMethod<"What the result is.", "::mlir::Value", "getIdentitySource", (ins), [{}], [{
      return $_op->getOperand(0);
    }]>,
  ];
}

#endif // SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_TD
