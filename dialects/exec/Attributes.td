// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of collectives and of arguments. Each is an enum, so that a misspelt kind does not parse.

#ifndef SHARDC_DIALECTS_EXEC_ATTRIBUTES_TD
#define SHARDC_DIALECTS_EXEC_ATTRIBUTES_TD

include "dialects/exec/ExecBase.td"
include "mlir/IR/EnumAttr.td"

// An attribute that is one value of a C++ enum; accessors of ops hand out the value.
class Exec_KindAttr<string name, string mnemonicName, string enumType> : Exec_Attr<name, mnemonicName> {
  let parameters = (ins AttrParameter<enumType, "the value">:$value);
  let hasCustomAssemblyFormat = 1;
  let returnType = enumType;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = cppClassName # "::get($_builder.getContext(), $0)";
}

def Exec_CollectiveKindAttr : Exec_KindAttr<"CollectiveKind", "collective", "::shardc::CollectiveKind"> {
  let summary = "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or permute";
  let description = [{
    Ops print the kind as a keyword. The attribute on its own is

    ```mlir
    #exec.collective<all_reduce>
    ```
  }];
}

def Exec_ArgumentKind : I32EnumAttr<"ArgumentKind", "what an argument of an entry is", [
    I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Parameter", 1, "parameter">,
    I32EnumAttrCase<"Output", 2, "output">]> {
  let cppNamespace = "::shardc::exec";
  let genSpecializedAttr = 0;
}

def Exec_ArgumentKindAttr : Exec_KindAttr<"ArgumentKind", "argument", "::shardc::exec::ArgumentKind"> {
  let summary = "Names a kind of argument: input, parameter or output";
  let description = [{
    Inputs come with every call of an entry, parameters are loaded once, and outputs are the caller's memory for results.

    ```mlir
    func.func @f(%x: memref<8x64xf32> {exec.argument = #exec.argument<input>}) attributes {exec.entry}
    ```
  }];
}

#endif // SHARDC_DIALECTS_EXEC_ATTRIBUTES_TD
