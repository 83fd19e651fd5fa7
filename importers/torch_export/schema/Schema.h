// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Schemas of ATen operators with their default arguments. The table is made at build time from
// PyTorch's dispatcher, for the overloads in Overloads.def and their in-place forms.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_SCHEMA_SCHEMA_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_SCHEMA_SCHEMA_H

#include <cstdint>
#include <span>
#include <string_view>

namespace shardc::torch_export {

enum class ArgumentType : uint8_t {
  Tensor,
  TensorList,
  Int,
  IntList,
  SymInt,
  SymIntList,
  Float,
  FloatList,
  Scalar,
  Bool,
  ScalarType,
  String,
  Other, // device, layout, memory format, generator, ...
};

/// The value of an argument that a call leaves out.
struct Default {
  enum Kind : uint8_t { Required, None, Bool, Int, Real, String, Ints, Other };
  Kind kind = Required;
  int64_t integer = 0; // Bool, Int
  double real = 0;
  std::string_view text = {}; // String; Ints: "0,1"
};

struct SchemaArgument {
  std::string_view name;
  ArgumentType type;
  bool optional; // may be None; of a TensorList: its elements may
  bool written;  // updated in place
  Default otherwise;
};

struct Schema {
  std::string_view overload; // "add.Tensor"
  std::span<const SchemaArgument> arguments;
  bool isView; // a result may share the storage of an argument

  const SchemaArgument *find(std::string_view name) const;
};

/// The schema of an overload such as "add.Tensor"; null if it is not in the table.
const Schema *findSchema(std::string_view overload);

/// All of them, sorted by name.
std::span<const Schema> allSchemas();

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_SCHEMA_SCHEMA_H
