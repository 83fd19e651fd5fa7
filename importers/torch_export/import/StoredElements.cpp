// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/StoredElements.h"

#include "dialects/aten/KnownElements.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

#include <cstring>

using namespace mlir;

namespace shardc::torch_export {

/// Larger masks are not looked at.
constexpr int64_t kMostElements = int64_t(1) << 26;

/// In row-major order.
static std::vector<char> readBytes(const StoredTensor &tensor) {
  size_t width = byteWidth(tensor.type);
  std::vector<char> bytes(size_t(tensor.elements()) * width);
  SmallVector<int64_t> index(tensor.sizes.size(), 0);
  for (size_t at = 0; at < bytes.size(); at += width) {
    int64_t element = tensor.offset;
    for (auto [position, stride] : llvm::zip_equal(index, tensor.strides))
      element += position * stride;
    std::memcpy(bytes.data() + at, tensor.storage.data() + size_t(element) * width, width);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.sizes[d])
        break;
      index[d] = 0;
    }
  }
  return bytes;
}

DenseElementsAttr readElements(const StoredTensor &tensor, RankedTensorType type) {
  if (!tensor.hasData() || !type.hasStaticShape() || tensor.elements() != type.getNumElements())
    return {};
  std::vector<char> bytes = readBytes(tensor);
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> flags;
    for (char byte : bytes)
      flags.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(flags));
  }
  bool splat = false;
  if (!DenseElementsAttr::isValidRawBuffer(type, bytes, splat))
    return {};
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

/// Whether a mask, or coordinates that it is computed of, may have this type.
static bool mayBeOfMask(RankedTensorType type) {
  if (!type.hasStaticShape() || type.getNumElements() > kMostElements)
    return false;
  Type element = type.getElementType();
  if (element.isInteger(1) || element.isSignlessInteger(32) || element.isSignlessInteger(64))
    return true;
  ArrayRef<int64_t> shape = type.getShape();
  return isa<FloatType>(element) && shape.size() >= 2 && shape.back() == shape[shape.size() - 2];
}

namespace {

/// The stored tensors of a function's arguments.
class Arguments {
public:
  Arguments(func::FuncOp function, const TensorStore &store) : function(function), store(store) {
    // What is written back is another one in the next run.
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto kind = function.getResultAttrOfType<StringAttr>(i, dist::kKindAttr);
      if (kind && kind.getValue().ends_with("_mutation"))
        for (StringRef name : dist::getNames(function.getResultAttrDict(i)))
          written.insert(name);
    }
  }

  /// Makes constants of the buffers that match; an error where there are none.
  LogicalResult fix(StringRef pattern) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return function.emitError("--fixed-buffer ")
             << pattern << ": " << llvm::toString(glob.takeError());
    bool isAny = false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      SmallVector<StringRef> names = namesOf(i);
      if ((kindOf(i) != "buffer" && kindOf(i) != "constant") ||
          llvm::none_of(names, [&](StringRef name) { return glob->match(name); }))
        continue;
      isAny = true;
      if (isWritten(i))
        return function.emitError("--fixed-buffer ")
               << pattern << ": the model updates the buffer '" << names.front() << "'";
      function.setArgAttr(i, dist::kKindAttr, StringAttr::get(function.getContext(), "constant"));
    }
    if (!isAny)
      return function.emitError("--fixed-buffer ") << pattern << ": the model has no such buffer";
    return success();
  }

  void attachElements() {
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      SmallVector<StringRef> names = namesOf(number);
      if (kindOf(number) != "constant" || !type || names.empty() || !mayBeOfMask(type) ||
          isWritten(number))
        continue;
      const StoredTensor *stored = store.find(std::string_view(names.front()));
      if (DenseElementsAttr elements = stored ? readElements(*stored, type) : DenseElementsAttr())
        function.setArgAttr(number, aten::kElementsAttr, elements);
    }
  }

private:
  SmallVector<StringRef> namesOf(unsigned number) {
    return dist::getNames(function.getArgAttrDict(number));
  }
  StringRef kindOf(unsigned number) {
    auto kind = function.getArgAttrOfType<StringAttr>(number, dist::kKindAttr);
    return kind ? kind.getValue() : StringRef();
  }
  bool isWritten(unsigned number) {
    return llvm::any_of(namesOf(number), [&](StringRef name) { return written.contains(name); });
  }

  func::FuncOp function;
  const TensorStore &store;
  llvm::StringSet<> written;
};

} // namespace

OwningOpRef<ModuleOp> withElements(OwningOpRef<ModuleOp> module, const TensorStore &store,
                                   ArrayRef<std::string> fixedBuffers) {
  if (!module)
    return module;
  for (auto function : module->getOps<func::FuncOp>()) {
    Arguments arguments(function, store);
    for (const std::string &pattern : fixedBuffers)
      if (failed(arguments.fix(pattern)))
        return {};
    arguments.attachElements();
  }
  return module;
}

} // namespace shardc::torch_export
