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
#include <optional>

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
        report(
            node,
            "an operator is a mapping with the keys rule, symbol, library, defaults and backward");
      return;
    }
    for (yaml::KeyValueNode &entry : *map) {
      std::string key = text(entry.getKey(), "a key of an operator");
      if (key == "backward")
        readBackward(entry.getValue(), op);
      else if (key == "defaults")
        readDefaults(entry.getValue(), op);
      else if (std::string *field = llvm::StringSwitch<std::string *>(key)
                                        .Case("rule", &op.rule)
                                        .Case("symbol", &op.symbol)
                                        .Case("library", &op.library)
                                        .Default(nullptr))
        *field = text(entry.getValue(), "a text");
      else if (!key.empty())
        report(entry.getKey(),
               "an operator has no '" + key + "'; did you mean " +
                   nearestNames(key, {"rule", "symbol", "library", "backward", "defaults"}, 1) +
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

  /// Numbers, true and false, texts in quotes, and lists of numbers.
  std::optional<CustomArgument> argument(yaml::Node *node) {
    if (auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node)) {
      std::vector<int64_t> integers;
      std::vector<double> reals;
      for (yaml::Node &entry : *list) {
        std::optional<CustomArgument> value = argument(&entry);
        auto *integer = value ? std::get_if<int64_t>(&*value) : nullptr;
        auto *real = value ? std::get_if<double>(&*value) : nullptr;
        if (!integer && !real)
          return std::nullopt;
        if (integer)
          integers.push_back(*integer);
        reals.push_back(integer ? static_cast<double>(*integer) : *real);
      }
      if (integers.size() == reals.size())
        return integers;
      return reals;
    }
    auto *scalar = llvm::dyn_cast_or_null<yaml::ScalarNode>(node);
    if (!scalar)
      return std::nullopt;
    llvm::SmallString<64> storage;
    StringRef raw = scalar->getRawValue(), value = scalar->getValue(storage);
    int64_t integer = 0;
    double real = 0;
    if (raw.starts_with("\"") || raw.starts_with("'"))
      return value.str();
    if (value == "true" || value == "false")
      return value == "true";
    if (!value.getAsInteger(10, integer))
      return integer;
    if (!value.getAsDouble(real))
      return real;
    return std::nullopt;
  }

  void readDefaults(yaml::Node *node, CustomOp &op) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(node);
    if (!map) {
      if (node)
        report(node, "'defaults' is a mapping from names of arguments to values, e.g. {k: 3}");
      return;
    }
    for (yaml::KeyValueNode &entry : *map) {
      std::string name = text(entry.getKey(), "the name of an argument");
      if (std::optional<CustomArgument> value = argument(entry.getValue()); value && !name.empty())
        op.defaults.emplace_back(name, std::move(*value));
      else if (!name.empty())
        report(entry.getKey(),
               "the default of '" + name +
                   "' is a number, true or false, a text in quotes, or a list of numbers");
    }
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
    if (!op.target.empty() && std::any_of(ops.begin(), ops.end(), [&](const CustomOp &other) {
          return other.target == op.target;
        }))
      report(entry.getKey(), "'" + op.target + "' is registered twice");
    ops.push_back(std::move(op));
  }
}

std::vector<CustomOp> loadCustomOps(StringRef path, bool isPlan, std::vector<std::string> &errors) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    errors.push_back("cannot read '" + path.str() + "': " + file.getError().message());
    return {};
  }
  Plan read;
  std::vector<std::string> all;
  parseYaml((*file)->getBuffer(), path, read, all);
  const std::vector<std::string> &mistakes = isPlan ? read.opErrors : all;
  errors.insert(errors.end(), mistakes.begin(), mistakes.end());
  if (!isPlan && mistakes.empty() && read.ops.empty())
    errors.push_back(
        "'" + path.str() +
        "' registers no operators: it is to have a section 'ops' (docs/custom-ops.md)");
  return std::move(read.ops);
}

} // namespace shardc::plan
