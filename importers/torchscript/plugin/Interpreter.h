// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a TorchScript function on symbolic tensors. Numbers, lists and control flow are concrete, so
// what is recorded is straight-line code.
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_INTERPRETER_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_INTERPRETER_H

#include "importers/torchscript/plugin/Program.h"

#include <torch/csrc/jit/ir/ir.h>

namespace shardc::torchscript {

class Interpreter {
public:
  /// `paths` says where in the model each of its objects is.
  Interpreter(Program &program, std::unordered_map<const c10::ivalue::Object *, std::string> paths)
      : program(program), paths(std::move(paths)) {}

  /// Throws c10::Error, with the place in the model, for what cannot be run.
  /// The op that was run last, and where it is; for errors.
  std::string describePlace() const;
  c10::IValue run(torch::jit::Function &function, std::vector<c10::IValue> arguments);

private:
  using Node = torch::jit::Node;
  using Value = torch::jit::Value;
  using Values = std::vector<c10::IValue>;
  using Environment = std::unordered_map<const Value *, c10::IValue>;

  /// A function that is being run.
  struct Frame {
    std::string module; ///< path of the object whose method it is
    const Node *current = nullptr;
  };

  Values runBlock(const torch::jit::Block &block, Environment &values);
  void runNode(const Node &node, Environment &values);
  Values evaluate(const Node &node, const Values &arguments, Environment &values);
  Values runIf(const Node &node, Environment &values);
  Values runLoop(const Node &node, Environment &values);
  Values callFunction(torch::jit::Function &function, Values arguments);
  c10::IValue attributeOf(const c10::IValue &object, const std::string &name);
  Place place() const;

  Program &program;
  std::unordered_map<const c10::ivalue::Object *, std::string> paths;
  std::vector<Frame> frames;
  std::vector<bool> noGrad; ///< of the `with` blocks that change it, the innermost last
  size_t steps = 0;
};

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_INTERPRETER_H
