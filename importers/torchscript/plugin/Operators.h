// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Execution of single operators: on symbolic tensors, where they are recorded, or on known values.
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_OPERATORS_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_OPERATORS_H

#include "importers/torchscript/plugin/Program.h"

#include <torch/csrc/jit/ir/ir.h>

namespace shardc::torchscript {

/// Tensors of at most so many elements are computed with where their values are known.
constexpr int64_t maxKnownElements = 64;

/// Runs the operator of `node` on `arguments` and records it in `program` where tensors are
/// symbolic. Throws c10::Error where it cannot be run.
std::vector<c10::IValue> runOperator(const torch::jit::Node &node,
                                     std::vector<c10::IValue> arguments, Program &program,
                                     const Place &place);

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_OPERATORS_H
