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
  let summary = "Describes the tensor computations of exported PyTorch graphs";
  let description = [{
    There is one op for each ATen operator, on ranked tensors by value; overloads share an op, which is named as in ATen. The
    same ops are used on global tensors, on placed tensors (whose types carry a layout as encoding) and on the tensors
    of one rank; nothing here looks at an encoding.

    How an ATen call becomes an op:

    | ATen argument | here |
    |---|---|
    | `Tensor` | operand of the same name |
    | `Tensor?`, `Tensor[]` | optional or variadic operand |
    | `Tensor?[]` | variadic operand of those present, and the attribute `NAME_at` with their positions |
    | `Scalar` beside tensors (`add.Scalar`, `where.ScalarOther`, `clamp`) | operand: a 0-dim `aten.constant` of the promoted element type (TypePromotion.h) |
    | `Scalar` or `float` that parametrises the op (`eps`, `alpha`, `negative_slope`) | f64 attribute |
    | `int`, `int[]` | i64 attribute, array of i64 |
    | `SymInt`, `SymInt[]` | attribute `static_NAME` (i64, array of i64); `kDynamic` there where an index operand of `NAME` gives the value |
    | `bool` | unit attribute: present is true |
    | `ScalarType` | type attribute |
    | device, layout, memory format, generator, `non_blocking` | dropped |

    Where overloads take one dim or several, the attribute is an array. Other names for the same thing:

    | ATen | here |
    |---|---|
    | reshape, _unsafe_view, flatten, unflatten | view |
    | t, mT, swapaxes | transpose |
    | split, chunk, tensor_split, unsafe_split | split_with_sizes |
    | detach, lift_fresh_copy | alias |
    | contiguous | clone |
    | _to_copy, to.dtype, type_as | to_copy (clone or alias if the element type stays) |
    | full, zeros, ones, scalar_tensor, full_like, zeros_like, ones_like, new_full ... | constant; expand of a 0-dim constant if a size is dynamic (`buildFull`) |
    | _softmax, _log_softmax | softmax, log_softmax; half_to_float is dtype f32 |
    | fill, zero | copy of what is written |
    | index_put without `accumulate`, of one number | where |
    | rsub | sub with operands exchanged |
    | floor_divide | div with rounding_mode "floor" |
    | var.dim, var (unbiased) | var with correction 1 or 0 |
    | var_mean, std_mean | var or std, and mean |
    | conv1d, conv2d, conv3d, convolution | convolution |
    | max_pool2d, avg_pool2d, adaptive_avg_pool2d ... | max_pool, avg_pool, adaptive_avg_pool, of 1 to 3 spatial dims |
    | max_pool2d_with_indices ... | max_pool and max_pool_positions |
    | col2im | view and fold |

    Dims are counted from the front: an importer adds the rank to a negative dim, and replaces the `-1`
    of `view` and `expand` by the size meant. There are no in-place forms, no aliasing and no strides.

    Types are inferred as in PyTorch: broadcasting, 0-dim tensors, promotion. A dynamic dim matches
    any size. A result type may be less or more precise than the inferred one, but must not contradict it.
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
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
  string storage = !if(!isa<Attr>(c), !cast<Attr>(c).storageType, "");
  string kind = !cond(
    !isa<Attr>(c) : !if(!or(!cast<Attr>(c).isOptional, !isa<DefaultValuedAttr>(c)),
                        "OptionalAttribute", "Attribute"),
    !isa<Optional>(c) : "Optional",
    !isa<Variadic>(c) : "Variadic",
    true : "Required");
}

/// Most ops compute the same on local tensors as on global ones: the default of LocalizableOpInterface,
/// which their classes list. One that does not (sizes among its arguments, work across a sharded dim)
/// gets its implementation from passes/localize.
///
/// Base of all ops. `LogicalResult XOp::infer(Inference &, Adaptor)` checks an op and says what its results
/// are, over any kind of sizes: types are inferred by it, and global sizes and those of a run found. It is a
/// function of the op's own, or, where `inferBy` is set, the function of that name that its family shares.
class Aten_Op<string mnemonic, list<Trait> traits = []>
    : Op<Aten_Dialect, mnemonic, !listconcat([
        Pure, InferTypeOpAdaptorWithIsCompatible, DeclareOpInterfaceMethods<Aten_SchemaOpInterface>,
        DeclareOpInterfaceMethods<ResultSizesOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelForm", "getIteration"]>,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface>, CostOpInterface], traits)> {
  string inferBy = "";
  /// How code runs over the op: a KernelForm (dialects/interfaces/KernelForm.h), as a C++ expression of `op`.
  string runsAs = "KernelForm::None";
  /// Its loops, likewise, where the form leaves them open: the dims of a row.
  string loops = "defaultIteration(op, op.getKernelForm())";
  /// For views, which list TensorViewOpInterface: the ViewKind. `getSourceDims` is written out.
  string viewKind = "";
  /// The op's sharding rule as a C++ expression of `op` (Rules.h); empty: getShardingRule() is written
  /// out.
  string shardBy = "";

  list<string> argumentTable = !foreach(i, !range(!size(arguments)),
    "{\"" # !getdagname(arguments, i) # "\", ::shardc::aten::SchemaArgument::"
          # Aten_ArgumentKind<!getdagarg<Constraint>(arguments, i)>.kind
          # ", \"" # Aten_ArgumentKind<!getdagarg<Constraint>(arguments, i)>.storage # "\"}");

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
  code ruleDefinition = !if(!empty(shardBy), "", [{
    ::shardc::ShardingRule $cppClass::getShardingRule() {
      [[maybe_unused]] $cppClass op = *this;
      using namespace ::shardc::aten;
      return }] # shardBy # [{;
    }
  }]);
  code viewDefinition = !if(!empty(viewKind), "", [{
    ::shardc::ViewKind $cppClass::getViewKind() { return ::shardc::ViewKind::}] # viewKind # [{; }
  }]);
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::shardc::StaticSizes sizes;
      ::shardc::aten::Inference inference(context, location, getOperationName(), sizes);
      if (::mlir::failed(infer(inference, adaptor)))
        return ::mlir::failure();
      inference.appendTypes(types);
      return ::mlir::success();
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::shardc::aten::areCompatibleTypes(lhs, rhs);
    }
    ::mlir::FailureOr<::llvm::SmallVector<::llvm::SmallVector<::shardc::Dim>>>
    $cppClass::inferResultSizes(::shardc::SizeAlgebra &sizes) {
      ::shardc::aten::Inference inference(getContext(), std::nullopt, getOperationName(), sizes);
      if (::mlir::failed(infer(inference, Adaptor(*this))))
        return ::mlir::failure();
      return inference.resultSizes();
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder, ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return ::shardc::aten::reifyShapes(*this, builder, shapes);
    }
    ::shardc::KernelForm $cppClass::getKernelForm() {
      [[maybe_unused]] $cppClass op = *this;
      using namespace ::shardc;
      return }] # runsAs # [{;
    }
    std::optional<::shardc::Iteration> $cppClass::getIteration() {
      [[maybe_unused]] $cppClass op = *this;
      using namespace ::shardc;
      return }] # loops # [{;
    }
    ::llvm::ArrayRef<::shardc::aten::SchemaArgument> $cppClass::getSchemaArguments() {
      static constexpr std::array<::shardc::aten::SchemaArgument, }] # !size(argumentTable) # [{> table = {{}]
      # !interleave(argumentTable, ", ") # [{}};
      return table;
    }
  }] # inferDefinition # ruleDefinition # viewDefinition;
}

#endif // SHARDC_DIALECTS_ATEN_ATENBASE_TD
