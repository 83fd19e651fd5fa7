// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/schema/Schema.h"

#include <algorithm>

namespace shardc::torch_export {
namespace {
#include "importers/torch_export/schema/Schemas.inc"
} // namespace

const SchemaArgument *Schema::find(std::string_view name) const {
  for (const SchemaArgument &argument : arguments)
    if (argument.name == name)
      return &argument;
  return nullptr;
}

const Schema *findSchema(std::string_view overload) {
  const Schema *found = std::lower_bound(
      std::begin(schemas), std::end(schemas), overload,
      [](const Schema &schema, std::string_view name) { return schema.overload < name; });
  return found != std::end(schemas) && found->overload == overload ? found : nullptr;
}

std::span<const Schema> allSchemas() { return schemas; }

} // namespace shardc::torch_export
