// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A TorchScript file as a program: loaded, its tensors made symbolic and named, its forward run.
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_MODEL_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_MODEL_H

#include <string>
#include <vector>

namespace shardc::torchscript {

struct ImportRequest {
  std::string path;
  /// Inputs of forward, "NAME=8x64xf32" or "2=8x64xf32" by position, "f32" for a 0-dim tensor; or a
  /// value for one that is no tensor: an integer, a float, true, false, none.
  std::vector<std::string> inputs;
  /// The same for inputs that `inputs` says nothing about.
  std::vector<std::string> examples;
};

/// The program as JSON. Throws std::exception; the message names the place in the model where there
/// is one.
std::string importModel(const ImportRequest &request);

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_MODEL_H
