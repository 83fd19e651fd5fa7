// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/TorchExport.h"

#include "importers/torch_export/import/ProgramImporter.h"
#include "importers/torch_export/import/StoredElements.h"
#include "support/archive/Pt2Archive.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

std::span<const std::byte> bytesOf(llvm::MemoryBufferRef file) {
  return std::as_bytes(std::span(file.getBufferStart(), file.getBufferSize()));
}

bool accepts(llvm::MemoryBufferRef file) { return ZipArchive::hasMagic(bytesOf(file)); }

OwningOpRef<ModuleOp> import(llvm::MemoryBufferRef file, const InputOptions &options,
                             MLIRContext *context) {
  context
      ->loadDialect<aten::AtenDialect, dist::DistDialect, arith::ArithDialect, func::FuncDialect>();
  std::string error;
  auto fail = [&]() -> OwningOpRef<ModuleOp> {
    emitError(FileLineColLoc::get(context, file.getBufferIdentifier(), 0, 0)) << error;
    return {};
  };
  std::optional<Pt2Archive> archive = Pt2Archive::read(bytesOf(file), error);
  if (!archive)
    return fail();
  std::optional<TensorStore> tensors = archive->takeTensors(error);
  if (!tensors)
    return fail();
  std::optional<std::string_view> json = archive->programJson(error);
  if (!json)
    return fail();
  std::optional<ExportedProgram> program = parseProgram(*json, error);
  if (!program)
    return fail();
  ImportOptions import{file.getBufferIdentifier().str(), options.groups, archive->isDecomposed(),
                       options.ops};
  return withElements(importProgram(*program, *tensors, import, context), *tensors,
                      options.fixedBuffers);
}

} // namespace

Importer getImporter() { return {"a torch.export archive", accepts, import}; }

} // namespace shardc::torch_export
