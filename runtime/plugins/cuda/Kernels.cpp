// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for the device: the image that fits it, its kernels, and their launches.
#include "runtime/plugins/cuda/Operations.h"

#include <algorithm>
#include <span>

namespace shardc::plugin::cuda {

namespace {

using Images = std::span<const shardrt_device_image>;

std::string chipsOf(Images images) {
  std::vector<std::string> names;
  for (const shardrt_device_image &image : images)
    names.push_back(image.format == SHARDRT_IMAGE_BITCODE
                        ? "the emulated device"
                        : (image.format == SHARDRT_IMAGE_PTX
                               ? "sm_" + std::to_string(image.chip) + " and later (as PTX)"
                               : "sm_" + std::to_string(image.chip)));
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no chip" : text;
}

/// How well an image fits; 0: not at all. Machine code runs on its chip and on later ones of its
/// generation, PTX on all later ones, for which the driver compiles it.
int fitOf(const shardrt_device_image &image, int device, bool emulated) {
  int chip = int(image.chip);
  if (emulated || image.format == SHARDRT_IMAGE_BITCODE)
    return emulated && image.format == SHARDRT_IMAGE_BITCODE;
  if (chip > device)
    return 0;
  if (image.format == SHARDRT_IMAGE_CUBIN)
    return chip / 10 == device / 10 ? 2000 + chip : 0;
  return image.format == SHARDRT_IMAGE_PTX ? 1000 + chip : 0;
}

/// With what the driver's compiler says of PTX that it does not take.
ModuleHandle loadImage(Device &device, const shardrt_device_image &image) {
  const Driver &driver = device.driver();
  ModuleHandle module = nullptr;
  if (image.format == SHARDRT_IMAGE_BITCODE) {
    device.check(driver.loadBitcode(&module, image.data, size_t(image.bytes)),
                 "loading the program's kernels");
    return module;
  }
  char log[2048] = "";
  constexpr int errorLog = 5, errorLogBytes = 6;
  int names[] = {errorLog, errorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(uintptr_t(sizeof log))};
  if (Result result = driver.moduleLoad(&module, image.data, 2, names, values))
    throw Failure{result == resultOutOfMemory ? SHARDRT_OUT_OF_MEMORY : SHARDRT_INCOMPATIBLE,
                  "loading the program's kernels for sm_" + std::to_string(image.chip) + ": " +
                      driver.describe(result) + (*log ? std::string(": ") + log : "")};
  return module;
}

shardrt_status moduleLoad(void *handle, const shardrt_device_image *images, uint32_t count,
                          void **module, char *message) {
  return on(handle, message, [&](Device &device) {
    const shardrt_device_image *best = nullptr;
    int fit = 0;
    for (const shardrt_device_image &image : Images(images, count))
      if (int mine = fitOf(image, device.chip(), device.isEmulated()); mine > fit) {
        best = &image;
        fit = mine;
      }
    if (!best)
      throw Failure{SHARDRT_INCOMPATIBLE,
                    "the program has code for " + chipsOf({images, count}) + "; " +
                        (device.isEmulated() ? std::string("the device is the emulated one")
                                             : "the device " + std::string(device.facts().name) +
                                                   " is sm_" + std::to_string(device.chip()))};
    *module = loadImage(device, *best);
  });
}

void moduleUnload(void *handle, void *module) {
  ignoring(handle, [&](Device &device) {
    device.driver().moduleUnload(static_cast<ModuleHandle>(module));
  });
}

shardrt_status kernelFind(void *handle, void *module, const shardrt_kernel *kernel, void **found,
                          char *message) {
  return on(handle, message, [&](Device &device) {
    FunctionHandle function = nullptr;
    Result result =
        device.driver().moduleFunction(&function, static_cast<ModuleHandle>(module), kernel->name);
    if (result == resultNotFound)
      throw Failure{SHARDRT_BAD_FILE,
                    "the program's code lacks the kernel " + std::string(kernel->name)};
    device.check(result, "finding the kernel " + std::string(kernel->name));
    if (kernel->shared_bytes > 0)
      device.check(
          device.driver().functionSet(function, functionDynamicShared, int(kernel->shared_bytes)),
          std::to_string(kernel->shared_bytes) + " bytes of shared memory for the kernel " +
              kernel->name);
    *found = function;
  });
}

shardrt_status launch(void *handle, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                      uint32_t sharedBytes, const void *const *params, void *stream,
                      char *message) {
  return on(handle, message, [&](Device &device) {
    Result result = device.driver().launch(static_cast<FunctionHandle>(kernel), grid[0], grid[1],
                                           grid[2], block[0], block[1], block[2], sharedBytes,
                                           streamOf(stream), const_cast<void **>(params), nullptr);
    if (result != resultSuccess) // texts are made for failures only
      device.check(result, "launching " + std::to_string(grid[0]) + " x " +
                               std::to_string(grid[1]) + " x " + std::to_string(grid[2]) +
                               " blocks of " + std::to_string(block[0] * block[1] * block[2]) +
                               " threads");
  });
}

shardrt_status gemm(void *handle, const shardrt_gemm *gemm, void *stream, char *message) {
  return on(handle, message, [&](Device &device) { runGemm(device, *gemm, streamOf(stream)); });
}

} // namespace

void addKernels(shardrt_device_plugin &table) {
  table.module_load = moduleLoad;
  table.module_unload = moduleUnload;
  table.kernel_find = kernelFind;
  table.launch = launch;
  table.gemm = gemm;
}

} // namespace shardc::plugin::cuda
