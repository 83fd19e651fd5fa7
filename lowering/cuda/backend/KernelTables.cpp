// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of images and kernels of runtime/abi/shardrt_program.h, as constants of an object for
// the host.

#include "lowering/cuda/backend/DeviceCode.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/host/HostCode.h"
#include "runtime/abi/shardrt_program.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace shardc::cuda {
namespace {

// The structs below are written field by field in the header's order.
static_assert(sizeof(shardrt_device_image) == 2 * 8 + 2 * 4);
static_assert(sizeof(shardrt_kernel) == 2 * 8 + 6 * 4);

/// Where debuggers and NVIDIA's tools look for code of devices.
constexpr StringLiteral kImageSection = ".nv_fatbin";

class Tables {
public:
  Tables() : module("kernels", context), pointer(PointerType::get(context, 0)) {}

  void addImages(ArrayRef<Image> images);
  void addKernels(ArrayRef<KernelFacts> kernels);
  Module &result() { return module; }

private:
  Constant *i32(uint32_t value) { return ConstantInt::get(Type::getInt32Ty(context), value); }
  Constant *i64(uint64_t value) { return ConstantInt::get(Type::getInt64Ty(context), value); }
  GlobalVariable *constant(Constant *value) {
    return new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                              GlobalValue::PrivateLinkage, value);
  }
  Constant *string(StringRef text) { return constant(ConstantDataArray::getString(context, text)); }
  void define(StringRef name, ArrayRef<Constant *> entries);

  LLVMContext context;
  Module module;
  PointerType *pointer;
};

void Tables::define(StringRef name, ArrayRef<Constant *> entries) {
  if (entries.empty())
    return;
  auto *type = ArrayType::get(entries.front()->getType(), entries.size());
  auto *table = new GlobalVariable(module, type, /*isConstant=*/true, GlobalValue::ExternalLinkage,
                                   ConstantArray::get(type, entries), name);
  table->setVisibility(GlobalValue::HiddenVisibility);
}

void Tables::addImages(ArrayRef<Image> images) {
  SmallVector<Constant *> entries;
  for (const Image &image : images) {
    StringRef bytes(image.bytes.data(), image.bytes.size());
    GlobalVariable *data =
        constant(ConstantDataArray::getString(context, bytes, /*AddNull=*/false));
    data->setSection(kImageSection);
    data->setAlignment(Align(16));
    entries.push_back(ConstantStruct::getAnon(
        context, {data, i64(bytes.size()), i32(image.format), i32(image.chip)}));
  }
  define(target::kImagesSymbol, entries);
}

void Tables::addKernels(ArrayRef<KernelFacts> kernels) {
  SmallVector<Constant *> entries;
  for (const KernelFacts &kernel : kernels) {
    Constant *messages = ConstantPointerNull::get(pointer);
    if (!kernel.messages.empty()) {
      SmallVector<Constant *> list;
      for (const std::string &message : kernel.messages)
        list.push_back(string(message));
      messages = constant(ConstantArray::get(ArrayType::get(pointer, list.size()), list));
    }
    Constant *block = ConstantDataArray::get(context, ArrayRef<uint32_t>(kernel.block));
    entries.push_back(ConstantStruct::getAnon(
        context, {string(kernel.name), messages, i32(kernel.messages.size()), i32(kernel.params),
                  block, i32(kernel.sharedBytes)}));
  }
  define(target::kKernelsSymbol, entries);
}

} // namespace

Expected<target::ObjectCode> emitTables(mlir::gpu::GPUModuleOp kernels, ArrayRef<Image> images,
                                        const target::Processor &processor) {
  Tables tables;
  tables.addImages(images);
  tables.addKernels(readKernelFacts(kernels));
  return host::emitObject(tables.result(), processor);
}

} // namespace shardc::cuda
