// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/plugins/cuda/Images.h"

#include <cstdlib>
#include <string_view>

namespace shardc::plugin::cuda {

namespace {

/// How well an image fits; 0: not at all. Machine code runs on its chip and on later ones of its
/// generation, PTX on all later ones, for which the driver compiles it.
int fitOf(const shardrt_device_image &image, int device, bool isEmulated) {
  int chip = int(image.chip);
  if (isEmulated || image.format == SHARDRT_IMAGE_BITCODE)
    return isEmulated && image.format == SHARDRT_IMAGE_BITCODE;
  if (chip > device)
    return 0;
  if (image.format == SHARDRT_IMAGE_CUBIN)
    return chip / 10 == device / 10 ? 2000 + chip : 0;
  return image.format == SHARDRT_IMAGE_PTX ? 1000 + chip : 0;
}

std::string_view textOf(const shardrt_device_image &image) {
  return {static_cast<const char *>(image.data), size_t(image.bytes)};
}

/// "M.N" behind the first `key`, as M * 1000 + N * 10; 0 where there is none.
int versionBehind(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos)
    return 0;
  // Digits and a point: what stands behind them ends the number.
  std::string number(text.substr(at + key.size(), 8));
  char *end = nullptr;
  long major = std::strtol(number.c_str(), &end, 10);
  long minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
  return int(major * 1000 + minor * 10);
}

} // namespace

const shardrt_device_image *chooseImage(Images images, int chip, bool isEmulated) {
  const shardrt_device_image *best = nullptr;
  int fit = 0;
  for (const shardrt_device_image &image : images)
    if (int mine = fitOf(image, chip, isEmulated); mine > fit) {
      best = &image;
      fit = mine;
    }
  return best;
}

std::string chipsOf(Images images) {
  std::string text;
  for (const shardrt_device_image &image : images) {
    std::string name = "sm_" + std::to_string(image.chip);
    if (image.format == SHARDRT_IMAGE_BITCODE)
      name = "the emulated device";
    else if (image.format == SHARDRT_IMAGE_PTX)
      name += " and later (as PTX)";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "no chip" : text;
}

/// ptxas writes its name and release into a note.
int toolkitOf(const shardrt_device_image &image) {
  if (image.format != SHARDRT_IMAGE_CUBIN)
    return 0;
  return versionBehind(textOf(image), "Cuda compilation tools, release ");
}

std::string cudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string adviceOnImage(const shardrt_device_image &image, int driverVersion) {
  std::string driver = "the driver is one for CUDA " + cudaVersionText(driverVersion);
  if (image.format == SHARDRT_IMAGE_PTX) {
    int version = versionBehind(textOf(image), ".version ");
    return "it is PTX" + (version ? " " + cudaVersionText(version) : std::string()) + ", and " +
           driver +
           ": if the driver is too old for it, install a newer one, or compile the "
           "program for the device's own chip";
  }
  // Drivers take machine code of all versions of CUDA with their major number, and of older ones.
  int toolkit = toolkitOf(image);
  if (toolkit == 0 || toolkit / 1000 <= driverVersion / 1000)
    return "";
  std::string major = std::to_string(toolkit / 1000);
  return "its machine code was made by ptxas of CUDA " + cudaVersionText(toolkit) + ", and " +
         driver + ": install a driver for CUDA " + major +
         ", or compile the program again with a ptxas of CUDA " +
         std::to_string(driverVersion / 1000) + " (shardc takes the one that SHARDC_PTXAS names)";
}

} // namespace shardc::plugin::cuda
