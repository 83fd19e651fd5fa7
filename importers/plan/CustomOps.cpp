// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/CustomOps.h"

#include "importers/plan/Plan.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/YAMLParser.h"

#include <algorithm>

using llvm::StringRef;
namespace yaml = llvm::yaml;

namespace shardc::plan {
namespace {

using Report = llvm::function_ref<void(yaml::Node *, const llvm::Twine &)>;

class CustomOpReader {
public:
  CustomOpReader(StringRef file, Report report) : file(file), report(report) {}

  /// `geometry::knn` as `geometry.knn.default`; empty after an error.
  std::string target(yaml::Node *node) {
    std::string name = text(node, "the name of an operator, e.g. \"mylib::myop\"");
    auto [space, rest] = StringRef(name).split("::");
    if (name.empty())
      return "";
    if (space.empty() || rest.empty() || rest.contains(':')) {
      report(node, "an operator is named as PyTorch does, e.g. mylib::myop, not '" + name + "'");
      return "";
    }
    return (space + "." + rest + (rest.contains('.') ? "" : ".default")).str();
  }

  void fields(yaml::Node *node, CustomOp &op) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(node);
    if (!map) {
      if (node)
        report(node, "an operator is a mapping with the keys rule, symbol, library and backward");
      return;
    }
    for (yaml::KeyValueNode &entry : *map) {
      std::string key = text(entry.getKey(), "a key of an operator");
      if (key == "backward")
        readBackward(entry.getValue(), op);
      else if (std::string *field = llvm::StringSwitch<std::string *>(key)
                                        .Case("rule", &op.rule)
                                        .Case("symbol", &op.symbol)
                                        .Case("library", &op.library)
                                        .Default(nullptr))
        *field = text(entry.getValue(), "a text");
      else if (!key.empty())
        report(entry.getKey(), "an operator has no '" + key + "'; did you mean " +
                                   nearestNames(key, {"rule", "symbol", "library", "backward"}, 1) +
                                   "?");
    }
    if (op.rule.empty())
      report(map, "'" + op.target + "' has no 'rule'");
    if (op.symbol.empty())
      report(map, "'" + op.target + "' has no 'symbol'");
    if (op.library.empty())
      report(map, "'" + op.target + "' has no 'library', the file that has its function");
    else
      checkLibrary(map, op);
  }

private:
  std::string text(yaml::Node *node, StringRef what) {
    llvm::SmallString<64> storage;
    if (auto *scalar = llvm::dyn_cast_or_null<yaml::ScalarNode>(node))
      return scalar->getValue(storage).trim().str();
    if (auto *block = llvm::dyn_cast_or_null<yaml::BlockScalarNode>(node))
      return block->getValue().trim().str();
    if (node)
      report(node, "expected " + what + " here");
    return "";
  }

  /// A function, or a list of them.
  void readBackward(yaml::Node *node, CustomOp &op) {
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list)
      return readFunction(node, op);
    for (yaml::Node &entry : *list)
      readFunction(&entry, op);
  }

  void readFunction(yaml::Node *node, CustomOp &op) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(node);
    if (!map) {
      if (node)
        report(node, "'backward' is a mapping with the keys rule and symbol, or a list of them");
      return;
    }
    CustomFunction function;
    for (yaml::KeyValueNode &entry : *map) {
      std::string key = text(entry.getKey(), "a key of 'backward'");
      if (key == "rule")
        function.rule = text(entry.getValue(), "a text");
      else if (key == "symbol")
        function.symbol = text(entry.getValue(), "a text");
      else if (!key.empty())
        report(entry.getKey(), "'backward' has no '" + key + "'; it has rule and symbol");
    }
    if (function.rule.empty() || function.symbol.empty())
      report(map, "the 'backward' of '" + op.target + "' needs both 'rule' and 'symbol'");
    op.backward.push_back(std::move(function));
  }

  /// Relative to the file that names it.
  void checkLibrary(yaml::Node *node, CustomOp &op) {
    if (!llvm::sys::path::is_absolute(op.library)) {
      llvm::SmallString<128> path(llvm::sys::path::parent_path(file));
      llvm::sys::path::append(path, op.library);
      op.library = path.str().str();
    }
    if (!llvm::sys::fs::is_regular_file(op.library))
      report(node, "there is no file '" + op.library + "' for the function of '" + op.target + "'");
  }

  StringRef file;
  Report report;
};

} // namespace

void readCustomOps(yaml::Node *section, StringRef file, Report report,
                   llvm::function_ref<std::string(yaml::Node *)> placeOf,
                   std::vector<CustomOp> &ops) {
  auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(section);
  if (!map) {
    if (section && !llvm::isa<yaml::NullNode>(section))
      report(section, "section 'ops' is a mapping from names of operators to what they are");
    return;
  }
  CustomOpReader reader(file, report);
  for (yaml::KeyValueNode &entry : *map) {
    CustomOp op;
    op.origin = placeOf(entry.getKey());
    op.target = reader.target(entry.getKey());
    reader.fields(entry.getValue(), op);
    if (std::any_of(ops.begin(), ops.end(),
                    [&](const CustomOp &other) { return other.target == op.target; }))
      report(entry.getKey(), "'" + op.target + "' is registered twice");
    ops.push_back(std::move(op));
  }
}

std::vector<CustomOp> loadCustomOps(StringRef path, std::vector<std::string> &errors) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    errors.push_back("cannot read '" + path.str() + "': " + file.getError().message());
    return {};
  }
  Plan read;
  std::vector<std::string> all;
  parseYaml((*file)->getBuffer(), path, read, all);
  errors.insert(errors.end(), read.opErrors.begin(), read.opErrors.end());
  return std::move(read.ops);
}

} // namespace shardc::plan
