// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An exported program as plain structs: the JSON of a .pt2 archive (torch/_export/serde/schema.py,
// schema version 8) read, checked and resolved. All `string_view`s point into
// `ExportedProgram::strings`.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROGRAM_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROGRAM_H

#include "importers/torch_export/program/TensorTable.h"
#include "support/Json.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shardc::torch_export {

struct Graph;

// The forms of an argument. A name refers to a value of the graph.
struct NoneArg {};
struct TensorListArg { // as_tensors, as_optional_tensors
  std::vector<TensorArg> tensors;
};
struct SymIntArg { // as_sym_int: a named value, or a constant
  std::string_view name;
  int64_t value = 0;
  bool constant() const { return name.empty(); }
};
struct SymIntListArg { // as_sym_ints
  std::vector<SymIntArg> values;
};
struct SymFloatArg { // as_sym_float by name (a constant is a double)
  std::string_view name;
};
struct SymBoolArg { // as_sym_bool by name (a constant is a bool)
  std::string_view name;
};
struct ScalarTypeArg { // as_scalar_type
  ElementType type;
};
struct MemoryFormatArg { // as_memory_format; 1 contiguous, 2 channels last, 3 the same 3d, 4
                         // preserve
  int64_t code;
};
struct LayoutArg { // as_layout; 7 strided
  int64_t code;
};
struct DeviceArg { // as_device
  std::string_view type;
  std::optional<int64_t> index;
};
struct GraphArg { // as_graph: the body of a higher-order operator
  std::string_view name;
  std::shared_ptr<const Graph> graph;
};
struct ComplexArg { // as_complex
  double real = 0, imag = 0;
};
struct OtherArg { // a form without meaning here, e.g. as_custom_obj
  std::string_view form;
};

using Argument =
    std::variant<NoneArg, TensorArg, TensorListArg, bool, int64_t, double, std::string_view,
                 std::vector<int64_t>, std::vector<double>, std::vector<bool>,
                 std::vector<std::string_view>, SymIntArg, SymIntListArg, SymFloatArg, SymBoolArg,
                 ScalarTypeArg, MemoryFormatArg, LayoutArg, DeviceArg, GraphArg, ComplexArg,
                 OtherArg>;

struct NamedArgument {
  std::string_view name; // of the operator's schema; empty for higher-order operators
  Argument value;
  bool keyword = false;
};

struct Node {
  std::string_view name;   // unique in its graph
  std::string_view target; // "torch.ops.aten.linear.default", "_operator.add"
  std::vector<NamedArgument> inputs;
  std::vector<Argument>
      outputs; // TensorArg, TensorListArg, SymIntArg, SymBoolArg, SymFloatArg, NoneArg
  std::string_view stackTrace, moduleStack;
  bool noGrad = false; ///< of a TorchScript program: inside `torch.no_grad()`
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  TensorTable tensors;
  std::unordered_map<std::string_view, SymInt> symInts;
  std::unordered_map<std::string_view, std::string_view> symBools, symFloats; // their expressions
};

struct InputSpec {
  enum class Kind {
    UserInput,
    Parameter,
    Buffer,
    TensorConstant,
    ConstantInput,
    CustomObject,
    Token
  };
  Kind kind = Kind::UserInput;
  std::string_view name;   // of the graph's value; for a user input that is its exported name
  std::string_view target; // parameter, buffer and constant: the qualified name in the model
  bool persistent = true;  // buffers
};

struct OutputSpec {
  enum class Kind {
    UserOutput,
    Loss,
    BufferMutation,
    ParameterMutation,
    UserInputMutation,
    GradientToParameter,
    GradientToUserInput,
    Token
  };
  Kind kind = Kind::UserOutput;
  Argument value;
  std::string_view target; // what is mutated, or has the gradient
  std::string
      path; // user outputs: place in the returned structure, "logits", "0.hidden"; may be empty
};

struct SymbolRange {
  std::string_view symbol;
  std::optional<int64_t> min, max;
};

struct ExportedProgram {
  Graph graph;
  std::vector<InputSpec> inputs;   // one per graph input, in order
  std::vector<OutputSpec> outputs; // one per graph output, in order
  std::vector<SymbolRange> ranges;
  std::vector<std::string_view> guards;        // conditions on sizes: see Guards.h
  std::vector<std::string_view> argumentNames; // of the module's forward; empty if not recorded
  std::vector<std::string_view> modules;       // qualified names of all modules
  std::string_view torchVersion;
  bool training = false; // training IR: in-place operators may occur
  std::shared_ptr<const void> strings;
};

/// Reads models/NAME.json. On failure returns nothing and sets `error` to what is wrong and where:
/// a newer schema, a member that is missing or has another type, a name that nothing defines, ...
std::optional<ExportedProgram> parseProgram(std::string_view json, std::string &error);

/// The same for a document that has been parsed; neither it nor its text is needed afterwards.
std::optional<ExportedProgram> parseProgram(const JsonDocument &document, std::string &error);

/// Checks that every value is defined once and before its uses, that every tensor has metadata, and
/// that constant shapes can be counted in 64 bits. `parseProgram` has done so.
bool verifyGraph(const Graph &graph, std::string &error);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROGRAM_H
