// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/Constants.h"

#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shardc {
namespace {

/// Elements of a strided view in row-major order.
std::vector<char> denseBytes(const StoredTensor &tensor) {
  size_t width = byteWidth(tensor.type);
  std::vector<char> bytes(tensor.elements() * width);
  if (bytes.empty())
    return bytes;
  const char *storage = reinterpret_cast<const char *>(tensor.storage.data());
  SmallVector<int64_t> index(tensor.sizes.size(), 0);
  int64_t at = tensor.offset;
  for (char *out = bytes.data(), *end = out + bytes.size(); out != end; out += width) {
    std::memcpy(out, storage + at * width, width);
    for (size_t dim = index.size(); dim-- > 0;) {
      at += tensor.strides[dim];
      if (++index[dim] < tensor.sizes[dim])
        break;
      at -= tensor.strides[dim] * tensor.sizes[dim];
      index[dim] = 0;
    }
  }
  return bytes;
}

} // namespace

LogicalResult EmbeddedConstants::open(StringRef model, ModuleOp module) {
  SmallVector<std::pair<Location, SmallVector<StringRef>>> needed;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto kind = function.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
      if (kind && kind.getValue() == "constant")
        needed.push_back(
            {function.getArgument(i).getLoc(), dist::getNames(function.getArgAttrDict(i))});
    }
  if (needed.empty())
    return success();
  std::string error;
  std::optional<TensorStore> store = TensorStore::open(model.str(), error);
  if (!store)
    return module.emitError(
               "the program has constants, but the file with their data cannot be read: ")
           << error;
  LogicalResult result = success();
  for (auto &[location, names] : needed) {
    const StoredTensor *tensor = nullptr;
    for (StringRef name : names)
      if (!tensor)
        tensor = store->find(std::string_view(name));
    if (!tensor || !tensor->hasData()) {
      result = emitError(location) << "the constant '" << (names.empty() ? "" : names.front())
                                   << "' has no data in '" << model
                                   << "': it was on the device meta when the model was exported. "
                                      "Build the model outside of it, with shardc export --meta, "
                                      "which keeps the values of buffers";
      continue;
    }
    dense.try_emplace(names.front().str(), denseBytes(*tensor));
  }
  return result;
}

std::optional<ArrayRef<char>> EmbeddedConstants::find(StringRef name) const {
  auto it = dense.find(std::string_view(name));
  if (it == dense.end())
    return std::nullopt;
  return ArrayRef<char>(it->second);
}

} // namespace shardc
