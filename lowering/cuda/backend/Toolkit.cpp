// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/Toolkit.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace shardc::cuda {
namespace {

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

std::string variable(StringRef name) { return sys::Process::GetEnv(name).value_or(""); }

/// How the wheels get where they are found, in the versions that the set-up installs. What they
/// depend on is not needed.
constexpr const char *kInstallWheels =
    "'" SHARDC_VENV "/bin/pip install --no-deps " SHARDC_CUDA_WHEELS "'";

/// Folders of the wheels that NVIDIA publishes: their place depends on the version of CUDA.
std::vector<std::string> wheelFolders() {
  std::vector<std::string> folders;
  std::error_code error;
  std::string lib = SHARDC_VENV "/lib";
  for (sys::fs::directory_iterator python(lib, error), end; !error && python != end;
       python.increment(error)) {
    std::error_code missing;
    std::string packages = python->path() + "/site-packages/nvidia";
    for (sys::fs::directory_iterator folder(packages, missing); !missing && folder != end;
         folder.increment(missing))
      folders.push_back(folder->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Toolkits in the order of preference, with the file of each at `file`.
std::vector<std::string> candidates(StringRef file) {
  std::vector<std::string> paths;
  auto add = [&](const Twine &root) { paths.push_back((root + "/" + file).str()); };
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = variable(name); !root.empty())
      add(root);
  if (file == "bin/ptxas")
    if (ErrorOr<std::string> program = sys::findProgramByName("ptxas"))
      paths.push_back(*program);
  if (StringRef(SHARDC_CUDA_ROOT) != "")
    add(SHARDC_CUDA_ROOT);
  for (const std::string &folder : wheelFolders())
    add(folder);
  return paths;
}

} // namespace

Expected<std::string> findPtxas() {
  if (std::string chosen = variable("SHARDC_PTXAS"); !chosen.empty()) {
    if (sys::fs::can_execute(chosen))
      return chosen;
    return makeError("SHARDC_PTXAS is '" + chosen + "', which is no program that can be run");
  }
  for (const std::string &path : candidates("bin/ptxas"))
    if (sys::fs::can_execute(path))
      return path;
  return makeError(
      "compiling for a CUDA chip needs NVIDIA's assembler ptxas, which is not in $CUDA_HOME/bin, "
      "PATH, the toolkit that shardc was built with, or " SHARDC_VENV
      ". Install the CUDA toolkit (12.8 or later for sm_100), or run " +
      Twine(kInstallWheels) +
      ", or name the program in SHARDC_PTXAS. --target=cuda:emulated needs none");
}

Expected<std::string> findLibdevice() {
  if (std::string chosen = variable("SHARDC_LIBDEVICE"); !chosen.empty()) {
    if (sys::fs::exists(chosen))
      return chosen;
    return makeError("SHARDC_LIBDEVICE is '" + chosen + "', which does not exist");
  }
  std::vector<std::string> paths = candidates("nvvm/libdevice/libdevice.10.bc");
  // Beside the ptxas that is used, for one that was found by PATH.
  if (Expected<std::string> ptxas = findPtxas()) {
    SmallString<128> real;
    if (!sys::fs::real_path(*ptxas, real)) {
      sys::path::remove_filename(real);
      paths.push_back((real + "/../nvvm/libdevice/libdevice.10.bc").str());
    }
  } else {
    consumeError(ptxas.takeError());
  }
  for (const std::string &path : paths)
    if (sys::fs::exists(path))
      return path;
  return std::string();
}

std::string libdeviceAdvice() {
  return (Twine("Install the CUDA toolkit, or run ") + kInstallWheels +
          ", or name the file libdevice.10.bc in SHARDC_LIBDEVICE")
      .str();
}

Expected<target::ObjectCode> assemble(StringRef ptx, const Chip &chip, StringRef ptxas) {
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("shardc-ptxas", folder))
    return makeError("cannot make a temporary directory: " + error.message());
  struct Cleanup {
    StringRef folder;
    ~Cleanup() { sys::fs::remove_directories(folder); }
  } cleanup{folder};
  std::string source = (folder + "/kernels.ptx").str(), result = (folder + "/kernels.cubin").str(),
              log = (folder + "/log").str();
  std::error_code error;
  raw_fd_ostream stream(source, error);
  if (!error) {
    stream << ptx;
    stream.close();
    error = stream.error();
  }
  stream.clear_error();
  if (error)
    return makeError("cannot write " + source + ": " + error.message());
  std::string arch = "-arch=" + chip.name(), message;
  StringRef arguments[] = {ptxas, arch, "-O3", source, "-o", result};
  int status = sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                   {StringRef(""), StringRef(log), StringRef(log)},
                                   /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status == 0) {
    if (auto bytes = MemoryBuffer::getFile(result, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false))
      return target::ObjectCode((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
    return makeError(ptxas + " wrote no code for " + chip.name());
  }
  if (auto text = MemoryBuffer::getFile(log))
    message += (*text)->getBuffer().trim();
  return makeError(ptxas + " failed for " + chip.name() + ": " + message);
}

} // namespace shardc::cuda
