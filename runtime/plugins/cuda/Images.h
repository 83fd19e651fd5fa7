// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of a program's images a device runs, and why one of them could not be loaded. Needs no
// driver.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_IMAGES_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_IMAGES_H

#include "runtime/abi/shardrt_program.h"

#include <span>
#include <string>

namespace shardc::plugin::cuda {

using Images = std::span<const shardrt_device_image>;

/// The image that fits a device best; null where none does. `chip`: 90 for sm_90.
const shardrt_device_image *chooseImage(Images images, int chip, bool isEmulated);

/// "sm_80, sm_90 and later (as PTX)".
std::string chipsOf(Images images);

/// The version of CUDA whose assembler made machine code, 13000 for 13.0; 0 where it does not say.
int toolkitOf(const shardrt_device_image &image);

/// "13.0" of 13000.
std::string cudaVersionText(int version);

/// What a person does about an image that the driver, one for this version of CUDA, did not load
/// because of its form; empty where the form says nothing against it.
std::string adviceOnImage(const shardrt_device_image &image, int driverVersion);

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_IMAGES_H
