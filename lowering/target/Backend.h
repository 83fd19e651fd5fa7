// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a target is to the compiler. To add one: derive from Backend in a folder of its own under
// lowering/ and register it (lowering/Passes.cpp, or a plugin). Nothing else names targets.
//
// All targets share the way to the planned stage, which asks the target's limits only (Limits.h),
// and the host program (lowering/host/). Of its own a target has how kernels become code, how they
// are launched, which objects the artifact consists of, and what its manifest says about it.

#ifndef SHARDC_LOWERING_TARGET_BACKEND_H
#define SHARDC_LOWERING_TARGET_BACKEND_H

#include "dialects/exec/Exec.h"
#include "lowering/target/Processor.h"
#include "lowering/target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <memory>

namespace mlir {
class ConversionPatternRewriter;
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace shardc::target {

/// The bytes of an object file.
using ObjectCode = llvm::SmallVector<char, 0>;

/// Tables that the objects of a target for a device define, as hidden symbols: arrays of
/// shardrt_device_image and shardrt_kernel (runtime/abi/shardrt_program.h).
constexpr llvm::StringLiteral kImagesSymbol = "shardc_images";
constexpr llvm::StringLiteral kKernelsSymbol = "shardc_kernels";

struct TargetCode {
  /// What the shared object is linked from, besides its tables: the host program and all kernels.
  std::vector<ObjectCode> objects;
  /// Entries of the two tables; a table of 0 entries is not defined.
  uint32_t images = 0, kernels = 0;
};

/// What one `exec.launch` passes to its kernel, as values of LLVM's dialect: a pointer to the first
/// element with the sizes and strides that the type does not say, in order; or a number.
struct LaunchArgument {
  mlir::Value value;
  llvm::SmallVector<mlir::Value> sizes, strides;
};

struct LaunchSite {
  exec::LaunchOp op;
  mlir::Value frame;    // shardrt_frame *
  mlir::Value location; // where in the model: a string that ends with 0
  llvm::ArrayRef<LaunchArgument> arguments;
};

/// How the launches of one module are emitted.
class LaunchLowering {
public:
  virtual ~LaunchLowering() = default;
  /// Emits the launch at the insertion point; the caller erases the op. Fails, with a match
  /// failure, where the kernel has not been lowered.
  virtual mlir::LogicalResult emit(const LaunchSite &site,
                                   mlir::ConversionPatternRewriter &rewriter) = 0;
};

class Backend {
public:
  virtual ~Backend() = default;

  /// "cpu": the word before the colon of `--target`, the device in the IR, the kind in the
  /// manifest.
  virtual llvm::StringRef kind() const = 0;
  /// What a person may write for it: "cpu", "cpu:NAME".
  virtual std::vector<std::string> forms() const = 0;
  /// The target that "KIND:CHIP" names; nothing for `chip` where there is no colon. An error says
  /// what is wrong with the chip, and the nearest names.
  virtual llvm::Expected<Target> resolve(std::optional<llvm::StringRef> chip) const = 0;
  /// Fails where this machine lacks a program that writing code for such a target needs: asked
  /// before anything is compiled.
  virtual llvm::Error checkTools(const Target &) const { return llvm::Error::success(); }
  /// What runs the host program of such a target.
  virtual llvm::Expected<Processor> hostProcessor(const Target &target) const = 0;

  /// Planned to lowered: from kernels of aten ops to what `serialize` takes. Entries and plan
  /// functions stay as they are.
  virtual void buildKernelTail(mlir::OpPassManager &pm) const = 0;
  /// Dialects and implementations of interfaces that these passes need and do not name themselves.
  virtual void registerDialects(mlir::DialectRegistry &registry) const {}
  virtual std::unique_ptr<LaunchLowering> createLaunchLowering(mlir::ModuleOp module) const = 0;

  /// Code for a lowered program. `name` is the model's.
  virtual llvm::Expected<TargetCode> serialize(mlir::ModuleOp lowered, const Target &target,
                                               llvm::StringRef name) const = 0;
  /// What the manifest says under "target", besides the kind (docs/manifest.md).
  virtual llvm::Expected<llvm::json::Object> describe(const Target &target) const = 0;
};

/// Makes a target known to the process; two of one kind are a fatal error. Not while others look.
void registerBackend(std::unique_ptr<Backend> backend);
/// By order of registration.
std::vector<const Backend *> registeredBackends();
/// Null for one that is not registered.
const Backend *findBackend(llvm::StringRef kind);

/// "KIND" or "KIND:CHIP" to a target of a registered backend. An error names the registered ones.
llvm::Expected<Target> resolveTarget(llvm::StringRef spec);

/// The backend of the module's target. No target, or one that is not registered, is an error at the
/// module.
mlir::FailureOr<std::pair<const Backend *, Target>> backendOf(mlir::ModuleOp module);

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_BACKEND_H
