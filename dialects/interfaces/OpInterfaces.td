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
    (dialects/interfaces/ShardingRule.h). `operands[i]` and `results[i]` of the rule are the i-th operand
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

#endif // SHARDC_DIALECTS_INTERFACES_OPINTERFACES_TD
