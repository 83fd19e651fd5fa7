// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of an artifact (docs/manifest.md), from a program of the local stage after
// dist-specialize: while its functions still say what their arguments are.
#ifndef SHARDC_LOWERING_ARTIFACT_MANIFEST_H
#define SHARDC_LOWERING_ARTIFACT_MANIFEST_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace shardc::artifact {

/// One function that users can run, and the clones of it.
struct EntryInterface {
  std::string name;
  std::vector<std::string> variants;   ///< functions, by variant number
  std::vector<uint32_t> variantOfRank; ///< kNoVariant for a rank outside the mesh
  /// Argument numbers (of every variant) in the order of shardrt_frame's inputs and parameters.
  std::vector<unsigned> inputArguments, parameterArguments;
  llvm::json::Array inputs, outputs; ///< as in the manifest
};
inline constexpr uint32_t kNoVariant = ~0u;

struct ProgramInterface {
  Mesh mesh;
  std::vector<EntryInterface> entries;
  llvm::json::Array parameters, symbols;
  std::vector<std::string> constants; ///< parameters whose data the artifact carries
  std::string sequenceHash;           ///< of the collectives of all entries, in order
};

/// Reads a specialised module. Fails, after reporting it, where an argument or result does not say
/// its layout.
mlir::FailureOr<ProgramInterface> describeProgram(mlir::ModuleOp module);

/// What the manifest says beyond the interface.
struct ManifestFacts {
  std::string tool, modelName, artifactHash, triple, cpu;
  std::vector<std::string> features; ///< what the machine must have
  std::vector<std::vector<uint64_t>>
      arenaBytes; ///< by entry, then variant; 0 where it depends on symbols
  bool usesBlas = false;
};

std::string buildManifest(const ProgramInterface &program, const ManifestFacts &facts);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_MANIFEST_H
