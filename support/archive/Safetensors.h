// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The safetensors format: u64 length of the header, JSON header, tensor bytes without holes.
#ifndef SHARDC_SUPPORT_ARCHIVE_SAFETENSORS_H
#define SHARDC_SUPPORT_ARCHIVE_SAFETENSORS_H

#include "support/archive/TensorStore.h"

namespace shardc {

/// Reads the header and checks it: known element types, shapes that agree with the offsets, data
/// that cover the file exactly once. The storages point into `bytes`. Tensors come in the order of
/// their data.
std::optional<TensorStore> readSafetensors(std::span<const std::byte> bytes, std::string &error);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_SAFETENSORS_H
