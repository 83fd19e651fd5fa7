// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A target that no other file knows: registered here, with limits, passes, launches, objects and a
// manifest entry of its own. Its kernels are scalar loops on one thread, made by MLIR's passes, and
// each launch calls a function of an object that the target adds to the artifact.

#include "lowering/Passes.h"
#include "lowering/artifact/Compile.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/HostCode.h"
#include "lowering/linalg/Passes.h"
#include "lowering/target/Backend.h"
#include "pipeline/Pipeline.h"
#include "runtime/abi/shardrt_program.h"
#include "tools/Registration.h"

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vector>

using namespace mlir;
using namespace shardc;

namespace {

constexpr int64_t kAlignment = 256, kMostElements = 16;
constexpr llvm::StringLiteral kHook = "toy_before_launch";

/// A call as on CPUs, and before it one of the function that `kHook` points to.
class HookedCalls : public target::LaunchLowering {
public:
  explicit HookedCalls(ModuleOp module) : module(module) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(b, module.getLoc(), LLVM::LLVMPointerType::get(b.getContext()),
                           /*isConstant=*/true, LLVM::Linkage::External, kHook, Attribute());
  }

  LogicalResult emit(const target::LaunchSite &site, ConversionPatternRewriter &b) override {
    exec::LaunchOp op = site.op;
    Location loc = op.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value hook =
        LLVM::LoadOp::create(b, loc, pointer, LLVM::AddressOfOp::create(b, loc, pointer, kHook));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer});
    LLVM::CallOp::create(b, loc, type, ValueRange{hook, site.frame});
    SmallVector<Value> operands{site.frame, site.location};
    for (const target::LaunchArgument &argument : site.arguments)
      operands.push_back(argument.value);
    LLVM::CallOp::create(b, loc, module.lookupSymbol<LLVM::LLVMFuncOp>(op.getKernel()), operands);
    return success();
  }

private:
  ModuleOp module;
};

/// `kHook` and its function, which counts in the field of the frame for random numbers.
void defineHook(llvm::Module &code) {
  llvm::LLVMContext &context = code.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "count", &code);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", function));
  llvm::Value *field = b.CreateConstGEP1_64(b.getInt8Ty(), function->getArg(0),
                                            offsetof(shardrt_frame, seed_offset));
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), field), b.getInt64(1)), field);
  b.CreateRetVoid();
  auto *hook = new llvm::GlobalVariable(code, pointer, /*isConstant=*/true,
                                        llvm::GlobalValue::ExternalLinkage, function, kHook);
  hook->setVisibility(llvm::GlobalValue::HiddenVisibility);
}

class ToyTarget : public target::Backend {
public:
  StringRef kind() const override { return "toy"; }
  std::vector<std::string> forms() const override { return {"toy:WORD"}; }

  llvm::Expected<target::Target> resolve(std::optional<StringRef> chip) const override {
    target::Target result{"toy", {}, {{"word", chip.value_or("none").str()}}};
    result.limits.vectorBytes = 16;
    result.limits.bufferAlignment = kAlignment;
    result.limits.temporaryElements = kMostElements;
    return result;
  }

  llvm::Expected<target::Processor> hostProcessor(const target::Target &) const override {
    return target::resolveProcessor("x86-64-v2");
  }

  void buildKernelTail(OpPassManager &pm) const override {
    pm.addNestedPass<func::FuncOp>(createAtenToLinalg());
    pm.addPass(bufferization::createOneShotBufferizePass());
    pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
    cpu::buildLlvmPipeline(pm);
  }

  void registerDialects(DialectRegistry &registry) const override {
    arith::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
  }

  std::unique_ptr<target::LaunchLowering> createLaunchLowering(ModuleOp module) const override {
    return std::make_unique<HookedCalls>(module);
  }

  llvm::Expected<target::TargetCode> serialize(ModuleOp lowered, const target::Target &target,
                                               StringRef name) const override {
    llvm::Expected<target::Processor> processor = hostProcessor(target);
    if (!processor)
      return processor.takeError();
    llvm::Expected<target::ObjectCode> host = host::emitObject(lowered, *processor, name);
    if (!host)
      return host.takeError();
    llvm::LLVMContext context;
    llvm::Module code("hook", context);
    defineHook(code);
    llvm::Expected<target::ObjectCode> hook = host::emitObject(code, *processor);
    if (!hook)
      return hook.takeError();
    target::TargetCode result;
    result.objects.push_back(std::move(*host));
    result.objects.push_back(std::move(*hook));
    return result;
  }

  llvm::Expected<llvm::json::Object> describe(const target::Target &target) const override {
    return llvm::json::Object{{"word", target.property("word")}};
  }
};

/// All of a program that the test looks at, and its one entry.
struct Program {
  void *library = nullptr;
  const shardrt_manifest *manifest = nullptr;

  ~Program() {
    if (library)
      dlclose(library);
  }
  std::string json() const { return {manifest->json, size_t(manifest->json_bytes)}; }
  const shardrt_variant &variant() const { return manifest->program->entries[0].variants[0]; }
};

constexpr int64_t kRows = 7, kColumns = 37;

/// The square of a softmax by rows: one kernel, unless a row is too long for a temporary.
constexpr const char *kModel = R"(module attributes {dist.mesh = #dist.mesh<["tp" = 1]>} {
  func.func @forward(%x: tensor<7x37xf32> {dist.kind = "input", dist.name = "x"})
      -> (tensor<7x37xf32> {dist.name = "y"}) {
    %0 = aten.softmax %x dim 1 : (tensor<7x37xf32>) -> tensor<7x37xf32>
    %1 = aten.mul %0, %0 : (tensor<7x37xf32>, tensor<7x37xf32>) -> tensor<7x37xf32>
    return %1 : tensor<7x37xf32>
  }
  })";

class ToyTargetTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    registerTargets();
    target::registerBackend(std::make_unique<ToyTarget>());
  }

  void compile(const std::string &target, Program &program) {
    DialectRegistry registry;
    registerAllDialects(registry);
    MLIRContext context(registry);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kModel, &context);
    ASSERT_TRUE(module);
    llvm::SmallString<128> folder;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("toy-target", folder));
    std::string path = (folder + "/model.so").str();
    PipelineOptions options;
    options.target = target;
    options.keepCollectives = true;
    PassManager passes(&context, ModuleOp::getOperationName());
    buildPipeline(passes, options, Stage::Local, Stage::Lowered);
    bool compiled = succeeded(passes.run(*module)) &&
                    succeeded(writeArtifact(*module, ArtifactOptions(), path));
    if (compiled)
      program.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    llvm::sys::fs::remove_directories(folder);
    ASSERT_TRUE(compiled);
    ASSERT_TRUE(program.library) << dlerror();
    auto query =
        reinterpret_cast<const shardrt_manifest *(*)()>(dlsym(program.library, "shardrt_query"));
    ASSERT_TRUE(query);
    program.manifest = query();
  }

  /// Runs the entry, and compares with a computation in double precision. Returns what is in
  /// `seed_offset` behind it.
  uint64_t run(const Program &program) {
    shardrt_services services{};
    services.struct_bytes = sizeof services;
    services.mark = [](void *, uint32_t) {};
    services.parallel_for = [](void *, void (*body)(void *, int64_t, int64_t), void *argument,
                               int64_t count, int64_t) { body(argument, 0, count); };
    std::vector<float> x(kRows * kColumns), y(x.size(), NAN);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float((i * 31) % 17) / 4 - 2;
    // Aligned as the runtime aligns arenas.
    size_t bytes = size_t(program.variant().arena_bytes);
    std::vector<uint8_t> memory(bytes + SHARDRT_ARENA_ALIGNMENT, 0xff);
    auto base = reinterpret_cast<uintptr_t>(memory.data());
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data()};
    shardrt_frame frame{};
    frame.services = &services;
    frame.arena = memory.data() + (SHARDRT_ARENA_ALIGNMENT - base % SHARDRT_ARENA_ALIGNMENT);
    frame.arena_bytes = bytes;
    frame.inputs = inputs;
    frame.outputs = outputs;
    frame.world = frame.threads = 1;
    EXPECT_EQ(program.variant().run(&frame), 0);
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < kColumns; ++i)
        sum += std::exp(double(x[row * kColumns + i]));
      for (int64_t i = 0; i < kColumns; ++i) {
        double share = std::exp(double(x[row * kColumns + i])) / sum;
        EXPECT_NEAR(y[row * kColumns + i], share * share, 1e-7) << row << ", " << i;
      }
    }
    return frame.seed_offset;
  }
};

TEST_F(ToyTargetTest, IsNamedWhereOthersAre) {
  std::string message = llvm::toString(target::resolveTarget("gpu").takeError());
  EXPECT_EQ(message, "unknown target 'gpu'; use 'cpu', 'cpu:NAME', 'cuda', 'cuda:sm_80,sm_90,...', "
                     "'cuda:emulated' or 'toy:WORD'");
  auto resolved = target::resolveTarget("toy:hello");
  ASSERT_TRUE(bool(resolved));
  EXPECT_EQ(resolved->property("word"), "hello");
}

TEST_F(ToyTargetTest, CompilesAndRuns) {
  Program toy;
  ASSERT_NO_FATAL_FAILURE(compile("toy:hello", toy));
  EXPECT_NE(toy.json().find(R"("target":{"kind":"toy","word":"hello"})"), std::string::npos)
      << toy.json();
  // Two kernels, each of which called the function of the target's own object.
  EXPECT_EQ(run(toy), 2u);
  // What is between them: 7 x 37 floats, up to the next multiple of the alignment.
  EXPECT_EQ(toy.variant().arena_bytes, 5u * kAlignment);
}

TEST_F(ToyTargetTest, ChangesNothingForOthers) {
  Program cpu;
  ASSERT_NO_FATAL_FAILURE(compile("cpu:x86-64-v2", cpu));
  EXPECT_NE(cpu.json().find(R"("kind":"cpu")"), std::string::npos);
  EXPECT_EQ(cpu.json().find("toy"), std::string::npos);
  EXPECT_EQ(run(cpu), 0u);
  EXPECT_EQ(cpu.variant().arena_bytes, 0u); // one kernel
}

} // namespace
