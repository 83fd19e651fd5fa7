// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Driver.h"

#include <dlfcn.h>
#include <map>
#include <mutex>

namespace shardc::plugin::cuda {

namespace {

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// A name without a folder is looked for beside the plugin first.
std::vector<std::string> placesOf(const char *library) {
  if (!library)
    return {"libcuda.so.1", "libcuda.so"};
  std::string name = library, folder = folderOfPlugin();
  if (name.find('/') != std::string::npos || folder.empty())
    return {name};
  return {folder + "/" + name, name};
}

} // namespace

std::string folderOfPlugin() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&folderOfPlugin), &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::shared_ptr<OpenLibrary> OpenLibrary::open(const std::string &what,
                                               const std::vector<std::string> &names) {
  std::string reasons;
  for (const std::string &name : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return std::shared_ptr<OpenLibrary>(new OpenLibrary(name, handle));
    reasons += std::string("\n  ") + dlerror();
  }
  throw Failure{SHARDRT_NOT_FOUND, what + " cannot be loaded:" + reasons};
}

OpenLibrary::~OpenLibrary() { dlclose(handle); }

void *OpenLibrary::find(const char *symbol) const { return dlsym(handle, symbol); }

std::shared_ptr<const Driver> Driver::load(const char *library) {
  static std::mutex mutex;
  // Drivers stay: they are not made to be unloaded.
  static std::map<std::string, std::shared_ptr<const Driver>> loaded;
  std::lock_guard lock(mutex);
  std::shared_ptr<const Driver> &known = loaded[library ? library : ""];
  if (known)
    return known;
  auto driver = std::make_shared<Driver>();
  driver->library =
      OpenLibrary::open(library ? "the emulated device" : "the driver of CUDA", placesOf(library));
  std::string missing;
  auto find = [&](auto &member, const char *symbol) {
    member =
        reinterpret_cast<std::remove_reference_t<decltype(member)>>(driver->library->find(symbol));
    if (!member)
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
#define SHARDC_CUDA_FIND(member, symbol, parameters) find(driver->member, #symbol);
  SHARDC_CUDA_DRIVER(SHARDC_CUDA_FIND)
#undef SHARDC_CUDA_FIND
  // An old driver says more by its version than by what it lacks.
  if (driver->driverVersion && driver->driverVersion(&driver->version) == resultSuccess &&
      driver->version < oldestDriver)
    throw Failure{SHARDRT_INCOMPATIBLE,
                  driver->library->name + " is a driver for CUDA " + versionText(driver->version) +
                      ", and programs need one for " + versionText(oldestDriver) + " at least"};
  if (!missing.empty())
    throw Failure{SHARDRT_INCOMPATIBLE, driver->library->name + " lacks " + missing};
  driver->loadBitcode = reinterpret_cast<decltype(driver->loadBitcode)>(
      driver->library->find("cuEmulatedModuleLoadBitcode"));
  if (library && !driver->isEmulated())
    throw Failure{SHARDRT_INCOMPATIBLE,
                  driver->library->name + " is no emulated device: it does not take bitcode"};
  driver->check(driver->init(0), "starting the driver");
  return known = driver;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  errorName(result, &name);
  errorText(result, &text);
  return (name ? name : "error " + std::to_string(result)) +
         (text ? " (" + std::string(text) + ")" : "");
}

void Driver::check(Result result, const std::string &what) const {
  if (result == resultSuccess)
    return;
  throw Failure{result == resultOutOfMemory ? SHARDRT_OUT_OF_MEMORY
                : result == resultNoDevice  ? SHARDRT_NOT_FOUND
                                            : SHARDRT_INTERNAL,
                what + ": " + describe(result)};
}

} // namespace shardc::plugin::cuda
