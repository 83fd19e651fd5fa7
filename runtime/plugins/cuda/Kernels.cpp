// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for the device: the image that fits it, its kernels, and their launches.
#include "runtime/plugins/cuda/Images.h"
#include "runtime/plugins/cuda/Operations.h"

namespace shardc::plugin::cuda {

namespace {

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
  if (Result result = driver.moduleLoad(&module, image.data, 2, names, values)) {
    bool isForm = result == resultInvalidImage || result == resultNoBinary ||
                  result == resultInvalidPtx || result == resultUnsupportedPtx;
    std::string advice = isForm ? adviceOnImage(image, driver.version) : "";
    throw Failure{result == resultOutOfMemory ? SHARDRT_OUT_OF_MEMORY : SHARDRT_INCOMPATIBLE,
                  "loading the program's kernels for sm_" + std::to_string(image.chip) + ": " +
                      driver.describe(result) + (*log ? std::string(": ") + log : "") +
                      (advice.empty() ? "" : "; " + advice)};
  }
  return module;
}

shardrt_status moduleLoad(void *handle, const shardrt_device_image *images, uint32_t count,
                          void **module, char *message) {
  return on(handle, message, [&](Device &device) {
    const shardrt_device_image *best =
        chooseImage(Images(images, count), device.chip(), device.isEmulated());
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
