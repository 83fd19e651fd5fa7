// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect, its types and the classes that its ops are made of.
#ifndef SHARDC_DIALECTS_ATEN_ATENBASE_TD
#define SHARDC_DIALECTS_ATEN_ATENBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/aten/SchemaInterface.td"
include "dialects/interfaces/OpInterfaces.td"

def Aten_Dialect : Dialect {
  let name = "aten";
  let cppNamespace = "::shardc::aten";
  let summary = "The tensor ops of exported PyTorch graphs";
  let description = [{
    One op for each ATen operator concept, named as in ATen, on ranked tensors by value. The same ops are
    used on global tensors, on placed tensors (whose types carry a layout as encoding) and on the tensors
    of one rank; nothing here looks at an encoding.

    How an ATen call becomes an op:

    | ATen argument | here |
    |---|---|
    | `Tensor` | operand of the same name |
    | `Tensor?`, `Tensor[]` | optional or variadic operand |
    | `Scalar` beside tensors (`add.Scalar`, `where.ScalarOther`, `clamp`) | operand: a 0-dim `aten.constant` of the promoted element type (TypePromotion.h) |
    | `Scalar` or `float` that parametrises the op (`eps`, `alpha`, `negative_slope`) | f64 attribute |
    | `int`, `int[]` | i64 attribute, array of i64 |
    | `SymInt`, `SymInt[]` | static values in the attribute `static_NAME`, `kDynamic` where an index operand of `NAME` gives the value |
    | `bool` | unit attribute: present is true |
    | `ScalarType` | type attribute |
    | device, layout, memory format, generator, `non_blocking` | dropped |

    Dims are counted from the front: an importer adds the rank to a negative dim, and replaces the `-1`
    of `view` and `expand` by the size meant. There are no in-place forms, no aliasing and no strides.

    Types are inferred as PyTorch does: broadcasting, 0-dim tensors, promotion. A dynamic dim matches
    any size, and a result type may be less or more precise than the inferred one, never contrary to it.
  }];
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

//===--------------------------------------------------------------------------------------------===//
// Types
//===--------------------------------------------------------------------------------------------===//

defvar Aten_FloatTypes = [F16, BF16, F32, F64, F8E4M3FN, F8E5M2];
defvar Aten_IntTypes = [I8, I16, I32, I64, UI8, UI16, UI32, UI64];

def Aten_Tensor : RankedTensorOf<!listconcat([I1], Aten_IntTypes, Aten_FloatTypes)>;
def Aten_FloatTensor : RankedTensorOf<Aten_FloatTypes>;
def Aten_IntTensor : RankedTensorOf<!listconcat([I1], Aten_IntTypes)>;
def Aten_NumberTensor : RankedTensorOf<!listconcat(Aten_IntTypes, Aten_FloatTypes)>;
def Aten_BoolTensor : RankedTensorOf<[I1]>;
def Aten_IndexTensor : RankedTensorOf<[I32, I64]>;

def Aten_Dims : ConfinedAttr<DenseI64ArrayAttr, [DenseArrayNonNegative<DenseI64ArrayAttr>]>;
def Aten_Dim : ConfinedAttr<I64Attr, [IntNonNegative]>;

//===--------------------------------------------------------------------------------------------===//
// Ops
//===--------------------------------------------------------------------------------------------===//

class Aten_ArgumentKind<Constraint c> {
  string kind = !cond(
    !isa<Attr>(c) : !if(!or(!cast<Attr>(c).isOptional, !isa<DefaultValuedAttr>(c)),
                        "OptionalAttribute", "Attribute"),
    !isa<Optional>(c) : "Optional",
    !isa<Variadic>(c) : "Variadic",
    true : "Required");
}

/// Base of all ops. An op's types are inferred by `LogicalResult XOp::infer(Inference &, Adaptor)`: a
/// function of its own, or, where `inferBy` is set, the function of that name that its family shares.
class Aten_Op<string mnemonic, list<Trait> traits = []>
    : Op<Aten_Dialect, mnemonic, !listconcat([
        Pure, InferTypeOpAdaptorWithIsCompatible, DeclareOpInterfaceMethods<Aten_SchemaOpInterface>,
        CostOpInterface], traits)> {
  string inferBy = "";

  list<string> argumentTable = !foreach(i, !range(!size(arguments)),
    "{\"" # !getdagname(arguments, i) # "\", ::shardc::aten::SchemaArgument::"
          # Aten_ArgumentKind<!getdagarg<Constraint>(arguments, i)>.kind # "}");

  code inferDeclaration = [{
    static ::llvm::LogicalResult infer(::shardc::aten::Inference &inference, Adaptor op);
  }];
  code moreDeclarations = "";
  let extraClassDeclaration = inferDeclaration # moreDeclarations;

  code inferDefinition = !if(!empty(inferBy), "", [{
    ::llvm::LogicalResult $cppClass::infer(::shardc::aten::Inference &inference, Adaptor op) {
      return ::shardc::aten::}] # inferBy # [{(inference, op);
    }
  }]);
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::shardc::aten::Inference inference(context, location, getOperationName(), types);
      return infer(inference, adaptor);
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::shardc::aten::areCompatibleTypes(lhs, rhs);
    }
    ::llvm::ArrayRef<::shardc::aten::SchemaArgument> $cppClass::getSchemaArguments() {
      static constexpr std::array<::shardc::aten::SchemaArgument, }] # !size(argumentTable) # [{> table = {{}]
      # !interleave(argumentTable, ", ") # [{}};
      return table;
    }
  }] # inferDefinition;
}

#endif // SHARDC_DIALECTS_ATEN_ATENBASE_TD
