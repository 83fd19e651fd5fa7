// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program says about itself: collected from a module of the local stage, before lowering
// forgets it, and written into the artifact's manifest (docs/manifest.md) and tables.

#ifndef SHARDC_LOWERING_ARTIFACT_DESCRIPTION_H
#define SHARDC_LOWERING_ARTIFACT_DESCRIPTION_H

#include "passes/collectives/Predict.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardc::artifact {

/// Bytes (row-major, the whole tensor) of a constant of the model, which is part of the artifact;
/// nothing for one that it does not have.
using ConstantData = std::function<std::optional<llvm::ArrayRef<char>>(llvm::StringRef name)>;

struct TensorDescription {
  std::vector<std::string> names; // the first is its own, the others are tied to it
  int32_t type = 0;               // shardrt_type
  llvm::json::Array shape;        // numbers and expressions of the manifest
  std::string layout;
  std::string mesh; // of an input or output on another mesh than the program's: its name
  std::string kind; // of an output: "user" or "state"
};

struct ParameterDescription : TensorDescription {
  bool isMutable = false;
  std::optional<double> initial;         // of a state: what each element is before the first run
  bool isSaved = true;                   // of a state: it is in checkpoints
  bool isConstant = false;               // its bytes are to be part of the artifact
  std::optional<std::vector<char>> data; // of a constant that the compiler made: its bytes
  std::optional<llvm::ArrayRef<char>> constant;
};

struct EntryDescription {
  std::string name;
  std::vector<TensorDescription> inputs, outputs;
  std::vector<std::string> variants; // functions
  std::vector<uint32_t>
      variantOfRank; // index into variants, SHARDRT_NO_VARIANT outside of the mesh
  std::optional<Prediction> predicted;
  bool readsParameters = true; // false: it has parameters and only writes them
};

struct ProgramDescription {
  std::string name;
  /// Of the functions' sequences of collectives, from the form that all ranks share; empty where
  /// nobody has verified them.
  std::string sequenceHashes;
  int64_t worldSize = 1;
  llvm::json::Object mesh;
  llvm::json::Array meshes; // further ones, that inputs and outputs are on
  llvm::json::Array symbols, constraints;
  std::vector<ParameterDescription> parameters;
  std::vector<EntryDescription> entries;
  /// The entries of training and the names of what they take and return; empty where there are
  /// none.
  llvm::json::Object training;
};

/// Also numbers the parameters: `exec.index` of an argument is its place among all parameters of
/// the program. All errors are reported. What is known only when the artifact is written, its name
/// and the bytes of constants, is left open.
mlir::FailureOr<ProgramDescription> describeProgram(mlir::ModuleOp module);

/// As `exec-describe-program` leaves it at the module, as `exec.program`.
mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context, const ProgramDescription &program);
/// Fails, with an error at the module, where the attribute is missing or has another form.
mlir::FailureOr<ProgramDescription> readDescription(mlir::ModuleOp module);

/// What a rank needs memory for, in bytes.
struct MemoryFacts {
  int64_t parameters = 0, states = 0, caller = 0, arena = 0;
};

/// What is only known after lowering.
struct CompiledFacts {
  /// As the manifest has it: what the backend says, and the kind.
  llvm::json::Object target;
  std::string tool;
  std::string artifactHash, sequenceHash;
  bool usesBlas = false;
  /// By function: 0 where symbols decide.
  std::function<int64_t(llvm::StringRef variant)> arenaBytes;
  /// By function; nothing where symbols decide.
  std::function<std::optional<MemoryFacts>(llvm::StringRef variant)> memory;
};
std::string manifestJson(const ProgramDescription &program, const CompiledFacts &facts);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_DESCRIPTION_H
