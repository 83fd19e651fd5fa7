// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that read parts of a program's JSON.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_READER_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_READER_H

#include "importers/torch_export/program/Program.h"
#include "support/Json.h"

namespace shardc::torch_export {

/// Collects the first error. Every function returns false once there is one.
class Reader {
public:
  bool fail(std::string what) {
    if (error.empty())
      error = std::move(what);
    return false;
  }
  bool string(JsonValue value, std::string_view &out, std::string_view what);
  bool integer(JsonValue value, int64_t &out, std::string_view what);
  bool symInt(JsonValue value, SymInt &out);
  bool tensorMeta(JsonValue value, TensorMeta &out);
  bool argument(JsonValue value, Argument &out);
  bool graph(JsonValue value, Graph &out);
  bool inputSpec(JsonValue value, InputSpec &out);
  bool outputSpec(JsonValue value, OutputSpec &out);

  std::string error;

  /// Of the graph that arguments are read for: where their tensors' numbers are from.
  const TensorTable *tensors = nullptr;

private:
  bool node(JsonValue value, Node &out);
  bool graphParts(JsonValue value, Graph &out);
  void number(Argument &argument) const;
};

/// The one member of a serialized union; a missing key for anything else.
JsonMember unionMember(JsonValue value);

/// Names the leaves of a serialized pytree, in order: keys of dicts and indices of sequences,
/// joined by dots. Empty if the text is of an unknown form.
std::vector<std::string> treeLeafPaths(std::string_view treespec);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_READER_H
