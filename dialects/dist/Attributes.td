// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Meshes, layouts, reductions, symbolic sizes and local extents. Groups are in Groups.td.

#ifndef SHARDC_DIALECTS_DIST_ATTRIBUTES_TD
#define SHARDC_DIALECTS_DIST_ATTRIBUTES_TD

include "dialects/dist/DistBase.td"
include "mlir/IR/TensorEncoding.td"

// A value type of dialects/interfaces as the one parameter of an attribute: the attribute is the
// uniqued, printable form of the value, and handing the value out costs nothing.
class Dist_ValueParameter<string type, string description>
    : AttrParameter<"::shardc::" # type, description> {
  let cppAccessorType = "const ::shardc::" # type # " &";
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "Describes a grid of devices with named axes (L6)";
  let description = [{
    The attribute lists the axes, outermost first, with their sizes. A device is named by its global rank: position i of
    the row-major grid is rank i, or `devices[i]` where a list is given. A rank that is not in the
    mesh holds empty tensors and takes no part in collectives over it (L5).

    ```mlir
    #dist.mesh<["dp" = 2, "tp" = 4]>
    #dist.mesh<["tp" = 4], devices = [0, 2, 4, 6]>
    ```
  }];
  let parameters = (ins Dist_ValueParameter<"Mesh", "axes and devices">:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_LayoutAttr
    : Dist_Attr<"Layout", "layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Says where the elements of a tensor are on a mesh (L1 to L4)";
  let description = [{
    There is one placement per mesh axis, in mesh order: `R` is replicated, `S(d)` is sharded along dim d, `P(op)` is
    partial and `?` is open. Propagation decides open placements; they may stand in an annotation
    (`dist.constrain`, `dist.annotation`), but never in the type of a tensor.

    ```mlir
    #dist.layout<#mesh, [S(0), R]>                          // chunked as torch.chunk does (L3)
    #dist.layout<#mesh, [R, S(0, blocks = 3)]>              // three equal blocks, each sharded (L3b)
    #dist.layout<#mesh, [R, S(0, blocks = [64, 32, 32])]>   // blocks of these sizes, each sharded (L3b)
    #dist.layout<#mesh, [R, S(1, granule = 64)]>            // whole units of 64 elements (L3c)
    #dist.layout<#mesh, [R, S(0, sizes = [5, 3, 0, 2])]>    // explicit extents (L4)
    #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]> // tp is the outer split (L2)
    ```

    A layout is the encoding of a tensor type, and so part of the type. The value is a
    `shardc::Layout` (dialects/sharding/Layout.h), which computes local shapes and owners (L7).
  }];
  let parameters = (ins Dist_ValueParameter<"Layout", "mesh, placements and order">:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // The order of axes that do not share a dim has no effect and is dropped, so that equal layouts
    // are equal types.
    AttrBuilder<(ins "::shardc::Layout":$value), [{
      return $_get($_ctxt, value.isDefaultOrder() ? value : value.canonicalize({}));
    }]>];
  let extraClassDeclaration = [{
    MeshAttr getMesh() const { return MeshAttr::get(getContext(), getValue().mesh); }
    /// As verifyEncoding, but placements may be open.
    ::llvm::LogicalResult
    verifyAnnotation(::llvm::ArrayRef<int64_t> shape,
                     ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "Says which placement each mesh axis is asked for, on a tensor that has no layout yet";
  let description = [{
    `dist-propagate` writes this attribute and `dist-place` reads it: it is the `dist.sharding` of an op (a list
    with one for each result), of an argument or of a result of a function. It has one entry per mesh axis, in mesh
    order: `?` where nothing is asked for, else `R`, `S(d)` or `P(op)` as in `#dist.layout`, and words after it.

    ```mlir
    #dist.sharding<#mesh, [S(0), ?]>                        // found: placement weighs it by the bytes that it moves
    #dist.sharding<#mesh, [S(0) given, R]>                  // asked for: the tensor gets exactly this, or placement fails
    #dist.sharding<#mesh, [?, S(0, blocks = 3) given pinned]>  // ops never gather it
    #dist.sharding<#mesh, [S(0) given weak storage, S(0) given]> // dp only chunks what tp leaves, for storage
    #dist.sharding<#mesh, [S(0) level 1, S(0) level 0]>     // tp splits the factor outside dp
    ```

    | word | means |
    |---|---|
    | `given` | An annotation asked for it, and it binds. `R` and `P(op)` always bind, so the word is left out there. |
    | `pinned`, `weak` | The strength of the annotation that it comes from; without either, normal strength. |
    | `storage` | The axis only chunks what the other axes leave, innermost: ops gather the tensor over it. |
    | `fixed` | The extents were given: they may not become coarser. |
    | `level n` | Among axes that split one factor of a dim, lower levels are outside; without it, the axis's number. |

    Unlike in a layout, `blocks`, `granule` and `sizes` of an axis describe the dim as if no other axis split
    it. `dist-place` decides how several axes nest that split one dim.
  }];
  let parameters = (ins Dist_ValueParameter<"Sharding", "mesh, and what each axis is asked to do">:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    MeshAttr getMesh() const;
    /// Whether the attribute fits a tensor of this shape: its dims exist, and its extents divide them.
    ::llvm::LogicalResult
    verifyShape(::llvm::ArrayRef<int64_t> shape,
                ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def Dist_ReductionAttr : Dist_Attr<"Reduction", "reduction"> {
  let summary = "Names a reduction: sum, avg, min, max or prod";
  let parameters = (ins AttrParameter<"::shardc::Reduction", "how values are combined">:$value);
  let hasCustomAssemblyFormat = 1;
}

def Dist_StepKindAttr : Dist_Attr<"StepKind", "step"> {
  let summary = "Names a step of a redistribution: all_gather, exchange, slice, ...";
  let parameters = (ins AttrParameter<"::shardc::StepKind", "what ranks do">:$value);
  let hasCustomAssemblyFormat = 1;
}

def Dist_SizeAttr : Dist_Attr<"Size", "size"> {
  let summary = "Gives a size as an expression over named symbols, whose values are known when the program runs";
  let description = [{
    The expression has integers and symbols with `+`, `-`, `*`, `floordiv`, `ceildiv` and `mod`. It is in canonical form: two
    sizes with equal expressions are the same attribute. The function's `dist.symbols` declares the symbols
    and their ranges.

    ```mlir
    #dist.size<128>
    #dist.size<batch * seq + 1>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr", "sorted, each used">:$symbols,
      "::mlir::AffineExpr":$expr);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // Canonical form: simplified, symbols sorted, unused ones dropped.
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::StringAttr>":$symbols, "::mlir::AffineExpr":$expr), [{
      auto [used, simplified] = ::shardc::dist::canonicalizeSize(symbols, expr);
      return $_get($_ctxt, ::llvm::ArrayRef<::mlir::StringAttr>(used), simplified);
    }]>,
    AttrBuilder<(ins "int64_t":$constant), [{
      return $_get($_ctxt, ::llvm::ArrayRef<::mlir::StringAttr>(),
                   ::mlir::getAffineConstantExpr(constant, $_ctxt));
    }]>,
    AttrBuilder<(ins "::llvm::StringRef":$symbol), [{
      return $_get($_ctxt,
                   ::llvm::ArrayRef<::mlir::StringAttr>(::mlir::StringAttr::get($_ctxt, symbol)),
                   ::mlir::getAffineSymbolExpr(0, $_ctxt));
    }]>];
  let extraClassDeclaration = [{
    /// Nothing where the size depends on a symbol.
    std::optional<int64_t> getConstant() const;
    /// Value for given symbols; nothing where one is unknown, on overflow or division by less than 1.
    std::optional<int64_t>
    evaluate(::llvm::function_ref<std::optional<int64_t>(::llvm::StringRef)> valueOf) const;
    /// `lhs op rhs` over the union of both sets of symbols.
    static SizeAttr combine(::mlir::AffineExprKind op, SizeAttr lhs, SizeAttr rhs);
    static SizeAttr parseExpression(::mlir::AsmParser &parser);
    void printExpression(::mlir::AsmPrinter &printer) const;
  }];
}

def Dist_SymbolAttr : Dist_Attr<"Symbol", "symbol"> {
  let summary = "Declares a symbol and its range";
  let description = [{
    The attribute is an element of a function's `dist.symbols`. Both bounds are inclusive; `?` stands for no upper bound.

    ```mlir
    #dist.symbol<batch in [1, 64]>
    #dist.symbol<seq in [2, ?]>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$min, "int64_t":$max);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_ExtentsAttr : Dist_Attr<"Extents", "extents"> {
  let summary = "Gives an extent that may differ from rank to rank";
  let description = [{
    An extent is either a size that is split over mesh axes as a layout splits a dim (outer axis first, with the same
    options), or a table with one value for each position of the mesh in row-major order. Without axes the extent
    is the same on all ranks.

    ```mlir
    #dist.extents<10 over #mesh ["dp", "tp"]>                // chunk, then chunk again (L3a)
    #dist.extents<1536 over #mesh ["tp"(blocks = 3, granule = 64)]>
    #dist.extents<batch * seq over #mesh ["dp"]>
    #dist.extents<table [4, 4, 3, 0] over #mesh>
    ```
  }];
  let parameters = (ins OptionalParameter<"MeshAttr", "absent: the same on all ranks">:$mesh,
      OptionalParameter<"SizeAttr", "what is split; absent for a table">:$size,
      Dist_ValueParameter<"DimSplit", "how the size is split">:$split,
      ArrayRefParameter<"int64_t", "per mesh position, or empty">:$table);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    // The extent of dim `dim` of a tensor of global size `size` in a layout.
    AttrBuilderWithInferredContext<(ins "SizeAttr":$size, "LayoutAttr":$layout, "int64_t":$dim), [{
      ::shardc::DimSplit split = layout.getValue().splitOfDim(dim);
      return $_get(size.getContext(), split.empty() ? MeshAttr() : layout.getMesh(), size, split,
                   ::llvm::ArrayRef<int64_t>());
    }]>,
    // The same size on all ranks.
    AttrBuilderWithInferredContext<(ins "SizeAttr":$size), [{
      return $_get(size.getContext(), MeshAttr(), size, ::shardc::DimSplit(),
                   ::llvm::ArrayRef<int64_t>());
    }]>];
  let extraClassDeclaration = [{
    /// Extent at a mesh coordinate (empty where there is no mesh); nothing while a symbol is unknown.
    std::optional<int64_t>
    evaluate(::llvm::ArrayRef<int64_t> coordinate,
             ::llvm::function_ref<std::optional<int64_t>(::llvm::StringRef)> valueOf) const;
    /// The one value it has on every rank whatever the symbols; nothing where there is no such value.
    std::optional<int64_t> getConstant() const;
  }];
}

def Dist_VariantsAttr : Dist_Attr<"Variants", "variants"> {
  let summary = "Says which clone of a specialised function each device runs";
  let description = [{
    The attribute is an entry of a module's `dist.specializations`, under the name of the function that was specialised. It
    lists the clones, and says which of them each position of the module's mesh runs.

    ```mlir
    #dist.variants<[@forward_v0, @forward_v1], [0, 0, 0, 1]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::FlatSymbolRefAttr">:$functions,
      ArrayRefParameter<"int64_t", "index into functions, by position in the mesh">:$positions);
  let assemblyFormat = "`<` `[` $functions `]` `,` `[` $positions `]` `>`";
  let genVerifyDecl = 1;
}

#endif // SHARDC_DIALECTS_DIST_ATTRIBUTES_TD
