// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program that is recorded while a TorchScript model is interpreted, written in the form of
// torch.export (torch/_export/serde/schema.py, version 8), which the rest of the importer reads.
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_PROGRAM_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_PROGRAM_H

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace shardc::torchscript {

/// Where an op comes from.
struct Place {
  std::string module; ///< path, "" for the model itself
  std::string trace;  ///< lines `  File "f.py", line 3, in forward`, innermost last

  /// For messages.
  std::string describe() const;
};

/// Symbolic tensors live on PyTorch's Meta device and have names here. Tensors of few elements
/// whose values are known live on the CPU; they get a name, and nodes that make them, when an op
/// needs them beside symbolic ones.
class Program {
public:
  enum class InputKind { Parameter, Buffer, Constant, User };

  /// Adds an input and returns the tensor that stands for it. `path` is its name in the model;
  /// parameters that do not require a gradient are frozen.
  at::Tensor addInput(InputKind kind, const std::string &path, at::ScalarType type,
                      c10::IntArrayRef sizes, c10::IntArrayRef strides, bool requiresGrad = false);
  /// The tensors of the archive's table of constants, which code refers to by value.
  void setConstants(std::vector<at::Tensor> tensors) { constants = std::move(tensors); }
  /// An input for a constant of the code, the same one for the same value.
  at::Tensor constant(const at::Tensor &value);
  void addOutput(const at::Tensor &tensor);
  /// The value of a buffer after the run.
  void addMutation(const std::string &buffer, const at::Tensor &tensor);

  bool isNamed(const at::Tensor &tensor) const {
    return names.contains(tensor.unsafeGetTensorImpl());
  }
  /// The symbolic tensor that stands for this one.
  at::Tensor symbolic(const at::Tensor &tensor, const Place &place);

  /// Records a call of a dispatched operator with the arguments it was executed with. Results that
  /// have names already (an operator returned its argument) keep them.
  void addCall(const c10::FunctionSchema &schema, const std::vector<c10::IValue> &arguments,
               const std::vector<c10::IValue> &results, const Place &place);

  std::string toJson();

private:
  struct Input {
    InputKind kind;
    std::string name, path;
  };
  struct Node {
    std::string name, target, inputs, outputs; // the last two are JSON
    std::vector<std::string> used, made;
    bool updates; // an argument, in place
    Place place;
  };

  std::string uniqueName(const std::string &wanted);
  const std::string &define(const at::Tensor &tensor, const std::string &wanted,
                            bool requiresGrad = false);
  const std::string &nameOf(const at::Tensor &tensor) const;
  void addConstant(const at::Tensor &value, const at::Tensor &symbol, const Place &place);
  std::string argument(const c10::IValue &value, const c10::TypePtr &type, Node &node);
  std::string output(const c10::IValue &value, Node &node);
  void dropDead();

  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, std::string>> mutations; // buffer, value
  std::unordered_map<const c10::TensorImpl *, std::string> names;
  std::unordered_map<const c10::TensorImpl *, at::Tensor> symbols; // of known tensors
  std::map<std::string, std::string> metas;                        // JSON by name
  std::unordered_map<std::string, unsigned> taken;
  std::vector<at::Tensor> constants;
  std::unordered_map<size_t, at::Tensor> constantInputs; // by place in the table
  std::vector<at::Tensor> kept;                          // an address must not be used again
};

/// torch.export's code of an element type (not c10's).
int exportCode(at::ScalarType type);

/// "f32" and so on; nothing for a name that is none.
std::optional<at::ScalarType> parseElementType(std::string_view name);

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_PROGRAM_H
