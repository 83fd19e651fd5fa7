// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torchscript/TorchScript.h"

#include "importers/torch_export/import/ProgramImporter.h"
#include "importers/torch_export/import/StoredElements.h"
#include "support/archive/TorchScriptArchive.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;

namespace shardc::torchscript {
namespace {

/// Seconds that the plugin may take; it limits its processor time itself.
constexpr unsigned kMaxSeconds = 1200;
/// Megabytes of memory that it may take beyond a copy of the file: PyTorch's libraries, and
/// stand-ins for tensors.
constexpr unsigned kMaxMegabytes = 32768;

std::span<const std::byte> bytesOf(llvm::MemoryBufferRef file) {
  return std::as_bytes(std::span(file.getBufferStart(), file.getBufferSize()));
}

bool accepts(llvm::MemoryBufferRef file) {
  return ZipArchive::hasMagic(bytesOf(file)) && TorchScriptArchive::accepts(bytesOf(file));
}

/// A file that goes away with this object.
class TemporaryFile {
public:
  TemporaryFile() { failed = bool(llvm::sys::fs::createTemporaryFile("shardc", "out", path)); }
  ~TemporaryFile() {
    if (!failed)
      llvm::sys::fs::remove(path);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

  llvm::SmallString<128> path;
  bool failed = false;
};

std::string pluginPath() {
  if (std::optional<std::string> named = llvm::sys::Process::GetEnv("SHARDC_TORCHSCRIPT"))
    return *named;
  llvm::SmallString<256> path(
      llvm::sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&getImporter)));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "lib", "shardc", "shardc-torchscript");
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return std::string(path);
}

/// "8x64xf32"
std::string describe(const TorchScriptArchive::Input &input) {
  std::string text;
  for (int64_t size : input.sizes)
    text += std::to_string(size) + "x";
  return text.append(factsOf(input.type).irName);
}

/// The program as JSON.
std::optional<std::string> runPlugin(StringRef model, uint64_t modelBytes,
                                     const TorchScriptArchive &archive,
                                     ArrayRef<std::string> inputs, std::string &error) {
  std::string plugin = pluginPath();
  if (!llvm::sys::fs::can_execute(plugin)) {
    error = "reading TorchScript files needs the plugin " + plugin +
            ", which is not there: build it where PyTorch has its headers "
            "(-DSHARDC_TORCHSCRIPT=ON), or export the model with `shardc export`";
    return std::nullopt;
  }
  std::vector<std::string> examples;
  for (auto [position, input] : llvm::enumerate(archive.tracedInputs()))
    examples.push_back(std::to_string(position) + "=" + describe(input));
  std::string path = model.str();
  SmallVector<StringRef> arguments = {plugin, path};
  for (const std::string &input : inputs)
    arguments.append({"--input", input});
  for (const std::string &example : examples)
    arguments.append({"--example", example});
  TemporaryFile output, messages;
  if (output.failed || messages.failed) {
    error = "cannot make a temporary file";
    return std::nullopt;
  }
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(output.path),
                                          StringRef(messages.path)};
  std::string reason;
  int status = llvm::sys::ExecuteAndWait(plugin, arguments, std::nullopt, redirects, kMaxSeconds,
                                         kMaxMegabytes + unsigned(modelBytes >> 20), &reason);
  if (status == 0)
    return output.read();
  error = StringRef(messages.read()).trim().str();
  if (status < 0)
    error = "PyTorch gave up on this file (" + (reason.empty() ? "no reason" : reason) +
            "): it is corrupt, or not one of torch.jit.save" + (error.empty() ? "" : "\n" + error);
  return std::nullopt;
}

/// Messages quote the file: nothing of it reaches a terminal but text, and not too much.
std::string printable(std::string message) {
  constexpr size_t kMaxLength = 4000;
  if (message.size() > kMaxLength)
    message = message.substr(0, kMaxLength) + "...";
  message = llvm::json::fixUTF8(message);
  for (char &c : message)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f)
      c = '?';
  return message;
}

OwningOpRef<ModuleOp> import(llvm::MemoryBufferRef file, const InputOptions &options,
                             MLIRContext *context) {
  context
      ->loadDialect<aten::AtenDialect, dist::DistDialect, arith::ArithDialect, func::FuncDialect>();
  StringRef path = file.getBufferIdentifier();
  std::string error;
  auto fail = [&]() -> OwningOpRef<ModuleOp> {
    emitError(FileLineColLoc::get(context, path, 0, 0)) << printable(error);
    return {};
  };
  std::optional<TorchScriptArchive> archive = TorchScriptArchive::read(bytesOf(file), error);
  if (!archive)
    return fail();
  std::optional<TensorStore> tensors = archive->takeTensors(error);
  if (!tensors)
    return fail();
  uint64_t size = 0;
  if (llvm::sys::fs::file_size(path, size) || size != file.getBufferSize()) {
    error = "a TorchScript model must be given as a file, not through a pipe";
    return fail();
  }
  std::optional<std::string> json = runPlugin(path, size, *archive, options.inputs, error);
  if (!json)
    return fail();
  std::optional<torch_export::ExportedProgram> program = torch_export::parseProgram(*json, error);
  if (!program)
    return fail();
  torch_export::ImportOptions import{path.str(), options.groups, /*isDecomposed=*/false,
                                     options.ops};
  return torch_export::withElements(
      torch_export::importProgram(*program, *tensors, import, context), *tensors,
      options.fixedBuffers);
}

} // namespace

Importer getImporter() {
  return {"a TorchScript archive", accepts, import, /*readsInputSpecs=*/true};
}

} // namespace shardc::torchscript
