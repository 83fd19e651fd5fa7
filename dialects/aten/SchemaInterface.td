// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_SCHEMAINTERFACE_TD
#define SHARDC_DIALECTS_ATEN_SCHEMAINTERFACE_TD

include "mlir/IR/OpBase.td"

def Aten_SchemaOpInterface : OpInterface<"SchemaOpInterface"> {
  let cppNamespace = "::shardc::aten";
  let description = [{
    Lets an importer build any op of this dialect from the arguments of an ATen call: which are
    operands, which are attributes, in the order of the op's definition.
  }];
  let methods = [
    StaticInterfaceMethod<"The arguments in ODS order, named as in the ATen schema.",
      "::llvm::ArrayRef<::shardc::aten::SchemaArgument>", "getSchemaArguments">,
  ];
}

#endif // SHARDC_DIALECTS_ATEN_SCHEMAINTERFACE_TD
