// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks that take part in a collective: one interface, and the three attributes that have it.

#ifndef SHARDC_DIALECTS_DIST_GROUPS_TD
#define SHARDC_DIALECTS_DIST_GROUPS_TD

include "dialects/dist/Attributes.td"

def Dist_GroupAttrInterface : AttrInterface<"GroupAttrInterface"> {
  let cppNamespace = "::shardc::dist";
  let description = [{
    A partition of (some of) the ranks into groups of one size. A collective runs in every group at
    once; what a rank sends and receives depends on its *position* in its group, never on its global
    rank (B1). A rank in no group takes no part.
  }];
  let methods = [
    InterfaceMethod<"Number of ranks in each group; at least 1.", "int64_t", "getGroupSize">,
    InterfaceMethod<[{
      The groups as lists of global ranks in order of position, sorted by their first rank; nothing
      where the ranks are not known. Linear in the number of ranks: keep the result.
    }], "std::optional<std::vector<std::vector<int64_t>>>", "getRankLists">,
    InterfaceMethod<[{
      One attribute for all ways to write the same groups: rank lists where they are known, else the
      attribute itself. Compare and hash groups by this (B1).
    }], "::mlir::Attribute", "getCanonicalGroup", (ins), [{}], [{
      return ::shardc::dist::canonicalizeGroup($_attr);
    }]>
  ];
}

class Dist_GroupAttr<string name, string mnemonicName,
                     list<string> sizeMethod = ["getGroupSize"]>
    : Dist_Attr<name, mnemonicName,
                [DeclareAttrInterfaceMethods<Dist_GroupAttrInterface,
                                             !listconcat(["getRankLists"], sizeMethod)>]> {
  let genVerifyDecl = 1;
}

def Dist_AxesAttr : Dist_GroupAttr<"Axes", "axes"> {
  let summary = "Describes groups that run along mesh axes";
  let description = [{
    There is one group for each coordinate of the other axes. Inside a group, ranks are in row-major order of
    the axes as listed: the first one varies slowest. Without axes every rank is a group of its own.

    ```mlir
    #dist.axes<#mesh, ["tp"]>
    #dist.axes<#mesh, ["tp", "dp"]>   // position = tp * |dp| + dp
    ```
  }];
  let parameters = (ins "MeshAttr":$mesh, ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Indices of the axes in the mesh.
    ::llvm::SmallVector<unsigned> getAxisIndices() const;
  }];
}

def Dist_GroupsAttr : Dist_GroupAttr<"Groups", "groups", []> {
  let summary = "Describes groups by explicit rank lists";
  let description = [{
    The attribute is for programs that were imported with collectives in them. All groups have the same size and no
    rank is in two of them.

    ```mlir
    #dist.groups<[[0, 2, 4, 6], [1, 3, 5, 7]]>
    ```
  }];
  let parameters = (ins "int64_t":$groupSize,
      ArrayRefParameter<"int64_t", "the lists one after the other">:$ranks);
  let hasCustomAssemblyFormat = 1;
}

def Dist_NamedGroupAttr : Dist_GroupAttr<"NamedGroup", "named_group"> {
  let summary = "Describes an imported process group whose ranks are not known";
  let description = [{
    The attribute has the name that the imported program gives the group, and its size. Two of them are the same group
    exactly when name and size agree.

    ```mlir
    #dist.named_group<"0", 64>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `,` $size `>`";
}

#endif // SHARDC_DIALECTS_DIST_GROUPS_TD
