// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, functions and launches.
#include "tools/cuda-emulator/DriverSupport.h"
#include "tools/cuda-emulator/Image.h"
#include "tools/cuda-emulator/Memory.h"
#include "tools/cuda-emulator/Mutants.h"
#include "tools/cuda-emulator/Settings.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace shardc::emulator;

namespace {

struct ModuleHandle;

struct FunctionHandle {
  ModuleHandle *module;
  const KernelFacts *facts;
  uint32_t dynamicLimit; ///< bytes of dynamic shared memory that are allowed
};

struct ModuleHandle {
  std::shared_ptr<Image> image;
  std::map<std::string, FunctionHandle> functions;
};

constexpr uint32_t sharedDefault = 49152, sharedMost = 166912;

std::map<ModuleHandle *, std::unique_ptr<ModuleHandle>> &modules() {
  static auto *all = new std::map<ModuleHandle *, std::unique_ptr<ModuleHandle>>;
  return *all;
}

FunctionHandle *functionOf(CUfunction handle) {
  for (auto &[key, module] : modules())
    for (auto &[name, function] : module->functions)
      if (reinterpret_cast<CUfunction>(&function) == handle)
        return &function;
  return nullptr;
}

std::shared_ptr<const CompiledKernel> compiled(const FunctionHandle &function, CUresult &result) {
  std::string error;
  auto kernel = function.module->image->compile(function.facts->name, error);
  if (!kernel)
    result = refuse(CUDA_ERROR_NOT_SUPPORTED, error);
  return kernel;
}

uint32_t staticShared(const CompiledKernel &kernel) {
  uint32_t sum = 0;
  for (const SharedVariable &variable : kernel.shared)
    sum += variable.bytes;
  return sum;
}

/// A launch, with copies of its parameters.
struct Launch {
  std::shared_ptr<const CompiledKernel> kernel;
  uint32_t grid[3], block[3], shared;
  std::vector<std::vector<uint64_t>> params;
  Effects effects;
  std::shared_ptr<Image> image; ///< that mutants are compiled from

  Progress run(int device) {
    if (mutantsAreTried())
      tryMutants(device);
    return runOnce(device) ? Progress::Done : Progress::Failed;
  }

private:
  bool runOnce(int device) {
    Memory &memory = Memory::instance();
    std::vector<const void *> addresses;
    for (const auto &param : params)
      addresses.push_back(param.data());
    memory.beginLaunch(device, &Engine::instance().devices[device]->peers);
    Block &b = theBlock();
    b.device = device;
    b.begin(*kernel, grid, block, shared, addresses.data());
    bool fine = b.run();
    effects = memory.takeTouched();
    return fine;
  }

  /// What this launch does without one of its barriers, waits or range checks.
  void tryMutants(int device) {
    for (const WaitingSite &waiting : kernel->waiting)
      tryMutantOf(kernel->name, waiting.kind, waiting.site, kernel->sites[waiting.site], [&] {
        theBlock().leftOut = waiting.site;
        runOnce(device);
        return theBlock().cameBy;
      });
    for (uint64_t i = 0; i < kernel->rangeChecks; ++i)
      tryMutantOf(kernel->name, "check", i, "range check " + std::to_string(i), [&] {
        settings().dropped = Dropped::Check;
        settings().droppedNumber = counts().checks + i;
        std::string error;
        kernel = image->compileAnew(kernel->name, error);
        if (!kernel)
          return false;
        runOnce(device);
        return counts().reached != 0;
      });
  }
};

} // namespace

/// `bytes` is 0 where the caller does not say.
static CUresult loadModule(CUmodule *module, const void *image, size_t bytes) {
  return callInContext([&](Engine &engine, Device &) -> CUresult {
    if (!module || !image)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = engine.unsafeCall("cuModuleLoadData"))
      return error;
    std::string error;
    std::shared_ptr<Image> loaded = Image::load(image, bytes, error);
    if (!loaded)
      return refuse(CUDA_ERROR_INVALID_IMAGE, "cuModuleLoadData: " + error);
    auto made = std::make_unique<ModuleHandle>();
    made->image = loaded;
    for (const KernelFacts &facts : loaded->kernels())
      made->functions[facts.name] = FunctionHandle{made.get(), &facts, sharedDefault};
    *module = reinterpret_cast<CUmodule>(made.get());
    modules()[made.get()] = std::move(made);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return loadModule(module, image, 0);
}

CUresult cuEmulatedModuleLoadBitcode(CUmodule *module, const void *image, size_t bytes) {
  return bytes ? loadModule(module, image, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  return call([&](Engine &) -> CUresult {
    return modules().erase(reinterpret_cast<ModuleHandle *>(module)) ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return callInContext([&](Engine &, Device &) -> CUresult {
    auto found = modules().find(reinterpret_cast<ModuleHandle *>(module));
    if (found == modules().end())
      return CUDA_ERROR_INVALID_HANDLE;
    if (!function || !name)
      return CUDA_ERROR_INVALID_VALUE;
    auto of = found->second->functions.find(name);
    if (of == found->second->functions.end())
      return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(&of->second);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
  return call([&](Engine &) -> CUresult {
    FunctionHandle *function = functionOf(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = CUDA_SUCCESS;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = int(function->facts->maxThreads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      if (auto kernel = compiled(*function, result))
        *value = int(staticShared(*kernel));
      return result;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      if (auto kernel = compiled(*function, result))
        *value = int(kernel->stackBytes);
      return result;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = int(function->dynamicLimit);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 80;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  return call([&](Engine &) -> CUresult {
    FunctionHandle *function = functionOf(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
      return CUDA_SUCCESS;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        uint32_t(value) > sharedMost)
      return CUDA_ERROR_INVALID_VALUE;
    function->dynamicLimit = uint32_t(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        CUstream on, void **params, void **extra) {
  return callOnStream(on, [&](Engine &engine, Stream &stream) -> CUresult {
    FunctionHandle *function = functionOf(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = uint64_t(blockX) * blockY * blockZ;
    if (!gridX || !gridY || !gridZ || !threads || gridX > 0x7fffffff || gridY > 65535 ||
        gridZ > 65535 || blockX > 1024 || blockY > 1024 || blockZ > 64 || threads > maxThreads ||
        threads > function->facts->maxThreads)
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "launch of " + function->facts->name + ": grid " + std::to_string(gridX) +
                        " x " + std::to_string(gridY) + " x " + std::to_string(gridZ) +
                        " of blocks " + std::to_string(blockX) + " x " + std::to_string(blockY) +
                        " x " + std::to_string(blockZ) + " is not allowed (the kernel takes " +
                        std::to_string(function->facts->maxThreads) + " threads)");
    if (extra)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (!params && !function->facts->paramBytes.empty())
      return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    auto kernel = compiled(*function, result);
    if (!kernel)
      return result;
    if (sharedBytes > function->dynamicLimit ||
        sharedBytes + staticShared(*kernel) > std::max(sharedDefault, function->dynamicLimit))
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "launch of " + function->facts->name + ": " + std::to_string(sharedBytes) +
                        " bytes of dynamic and " + std::to_string(staticShared(*kernel)) +
                        " of static shared memory, " + std::to_string(function->dynamicLimit) +
                        " are allowed (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)");
    auto launch = std::make_shared<Launch>();
    launch->kernel = kernel;
    launch->image = function->module->image;
    std::copy_n(std::begin({gridX, gridY, gridZ}), 3, launch->grid);
    std::copy_n(std::begin({blockX, blockY, blockZ}), 3, launch->block);
    launch->shared = sharedBytes;
    for (size_t i = 0; i < function->facts->paramBytes.size(); ++i) {
      uint32_t bytes = function->facts->paramBytes[i];
      std::vector<uint64_t> copy((bytes + 7) / 8);
      std::memcpy(copy.data(), params[i], bytes);
      launch->params.push_back(std::move(copy));
    }
    Work work;
    work.operation.name = "kernel " + kernel->name;
    int device = stream.device;
    work.operation.start = [launch, device]() -> std::function<Progress()> {
      return [launch, device] { return launch->run(device); };
    };
    work.touched = [launch] { return std::move(launch->effects); };
    return engine.enqueue(stream, std::move(work));
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int blockSize,
                                                     size_t sharedBytes) {
  return call([&](Engine &) -> CUresult {
    FunctionHandle *function = functionOf(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || blockSize <= 0 || blockSize > int(maxThreads))
      return CUDA_ERROR_INVALID_VALUE;
    size_t byShared = sharedBytes ? 167936 / (sharedBytes + 1024) : 32;
    *blocks = int(std::min<size_t>({32, 2048 / size_t(blockSize), byShared}));
    return CUDA_SUCCESS;
  });
}
