// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tensor op says about itself, beyond its operands and types. Passes talk to these interfaces
// and never to the ops of one dialect.
#ifndef SHARDC_DIALECTS_INTERFACES_OPINTERFACES_TD
#define SHARDC_DIALECTS_INTERFACES_OPINTERFACES_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    How the dims of an op's operands and results are made of factors, and so how the op may be sharded
    (dialects/sharding/ShardingRule.h). `operands[i]` and `results[i]` of the rule are the i-th operand
    and result of the op; an operand that is no tensor (an index) has no dims. The rule is the same for
    global and for placed types: encodings are ignored.
  }];
  let methods = [
    InterfaceMethod<"The rule for the shapes that the op has.", "::shardc::ShardingRule",
                    "getShardingRule">,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    How much work an op is on tensors of the shapes it has (global or local). Nothing where a shape is
    dynamic: the caller decides what to assume then.
  }];
  let methods = [
    InterfaceMethod<[{
        Arithmetic operations of one execution; a multiply-add counts as two, a transcendental function
        as one. Nothing if a shape that matters is dynamic.
      }],
      "std::optional<double>", "getFlops", (ins), [{}], [{
        return ::shardc::elementwiseFlops($_op.getOperation());
      }]>,
    InterfaceMethod<[{
        Bytes read and written by one execution that keeps no value in cache from an op before it.
        Nothing if a shape is dynamic.
      }],
      "std::optional<double>", "getBytes", (ins), [{}], [{
        return ::shardc::operandAndResultBytes($_op.getOperation());
      }]>,
  ];
}

def LocalizableOpInterface : OpInterface<"LocalizableOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    What one rank computes, given its local operands. The default is the same op on local types: right
    wherever an op has no attribute or operand that counts elements of a sharded dim, and where local
    results need nothing but the collectives that their layouts already name. Any other op attaches an
    implementation of its own (an external model, one file for each family, in passes/localize); an op
    that has neither cannot be localised, which is an error.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the local form of this op. `operands` are local values in the layouts that this op has
        them in. Returns one local value for each result, of types `context.localResultType(i)`. On
        failure a diagnostic has been emitted.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "localize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::shardc::LocalizeContext &":$context), [{}], [{
        return ::shardc::localizeAsSameOp($_op.getOperation(), builder, operands, context);
      }]>,
  ];
}

def ResultSizesOpInterface : OpInterface<"ResultSizesOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    How the sizes of an op's results follow from those of its operands: the one place where an op says so.
    `sizes` says what sizes are (dialects/interfaces/SizeAlgebra.h): numbers, expressions over symbols, index
    values. What the types say beyond that is for the caller to look at.
  }];
  let methods = [
    InterfaceMethod<[{
        The sizes of each result, none for one that is no tensor; a size may not be known. Fails, without a
        diagnostic, where operands of these sizes are refused.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::llvm::SmallVector<::shardc::Dim>>>", "inferResultSizes",
      (ins "::shardc::SizeAlgebra &":$sizes)>,
  ];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    How code runs over an op (dialects/interfaces/KernelForm.h): which of a lowering's ways it takes, and what
    it may share a kernel with. An op of one result, which is a tensor, unless its form has no loops.
  }];
  let methods = [
    InterfaceMethod<"How code runs over this op.", "::shardc::KernelForm", "getKernelForm", (ins), [{}], [{
        return ::shardc::KernelForm::None;
      }]>,
    InterfaceMethod<"The loops that compute this op; nothing where its form has none.",
      "std::optional<::shardc::Iteration>", "getIteration", (ins), [{}], [{
        return ::shardc::defaultIteration($_op.getOperation(), $_op.getKernelForm());
      }]>,
  ];
}

def TensorViewOpInterface : OpInterface<"TensorViewOpInterface"> {
  let cppNamespace = "::shardc";
  let description = [{
    An op whose results are operand 0, looked at in another way. Its other operands are sizes and positions.
  }];
  let methods = [
    InterfaceMethod<"What becomes of the elements.", "::shardc::ViewKind", "getViewKind">,
    InterfaceMethod<[{
        The dim of operand 0 that each dim of the results runs along, -1 where there is none. Nothing where a
        dim of a result is made of several dims, or of a piece of one.
      }],
      "std::optional<::llvm::SmallVector<int64_t>>", "getSourceDims">,
  ];
}

#endif // SHARDC_DIALECTS_INTERFACES_OPINTERFACES_TD
