// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the metadata strings of a node: where in the user's model and source it comes from.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_METADATA_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_METADATA_H

#include <string_view>

namespace shardc::torch_export {

/// The innermost module's path, "model.layers.0.mlp", of a serialized nn_module_stack
/// ("key,path,class;key,path,class"); empty for the root module or if there is none. A module that
/// is called several times has no "@1" here.
std::string_view modulePath(std::string_view moduleStack);

struct SourceLine {
  std::string_view file;
  unsigned line = 0; // from 1; 0: unknown
};

/// The innermost frame of a Python stack trace that is outside of PyTorch itself, or the innermost
/// of all; the user's line rather than that of torch.nn.functional.
SourceLine sourceLine(std::string_view stackTrace);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_METADATA_H
