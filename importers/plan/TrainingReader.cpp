// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/TrainingReader.h"

#include "importers/plan/Plan.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <cmath>

using llvm::StringRef;
namespace yaml = llvm::yaml;

namespace shardc::plan {
namespace {

/// Keys that stand elsewhere, with what is said of them.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> elsewhere[] = {
    {"random", "it is a key of the plan itself, beside 'train'"},
};

class TrainingReader {
public:
  using Report = llvm::function_ref<void(yaml::Node *, const llvm::Twine &)>;
  explicit TrainingReader(Report report) : report(report) {}

  /// Calls `read(key, node)`, which says whether it knows the key, for each entry of a mapping.
  template <typename Read>
  void readMapping(yaml::Node *node, StringRef what, const std::vector<std::string> &keys,
                   Read read) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(node);
    if (!map) {
      if (node && !llvm::isa<yaml::NullNode>(node))
        report(node, what + " is a mapping, e.g. {" + keys.front() + ": ...}");
      return;
    }
    for (yaml::KeyValueNode &entry : *map) {
      std::optional<std::string> key = scalar(entry.getKey(), "the name of a key");
      if (!key || read(*key, entry.getValue()))
        continue;
      auto *known = llvm::find_if(elsewhere, [&](auto &pair) { return pair.first == *key; });
      if (known != std::end(elsewhere))
        report(entry.getKey(), what + " has no key '" + *key + "': " + known->second);
      else
        report(entry.getKey(), what + " has no key '" + *key + "'; did you mean " +
                                   nearestNames(*key, keys, 1) + "?");
    }
  }

  void read(yaml::Node *node, std::string &field) {
    if (std::optional<std::string> text = scalar(node, "a name"))
      field = *text;
  }
  void read(yaml::Node *node, int64_t &field) {
    std::optional<std::string> text = scalar(node, "a whole number");
    if (text && StringRef(*text).getAsInteger(10, field))
      report(node, "expected a whole number here, not '" + *text + "'");
  }
  void read(yaml::Node *node, std::optional<double> &field) {
    if (std::optional<double> number = readNumber(node))
      field = number;
  }
  void read(yaml::Node *node, std::optional<bool> &field) {
    std::optional<std::string> text = scalar(node, "true or false");
    if (!text)
      return;
    if (*text != "true" && *text != "false")
      return report(node, "expected true or false here, not '" + *text + "'");
    field = *text == "true";
  }
  void read(yaml::Node *node, std::optional<std::array<double, 2>> &field) {
    std::vector<double> numbers;
    size_t count = 0;
    if (auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node))
      for (yaml::Node &item : *list) {
        ++count;
        if (std::optional<double> number = readNumber(&item))
          numbers.push_back(*number);
      }
    if (count != 2)
      return report(node, "expected two numbers here, e.g. [0.9, 0.999]");
    if (numbers.size() == 2)
      field = {numbers[0], numbers[1]};
  }
  /// A list, or its only item.
  void read(yaml::Node *node, std::vector<std::string> &field) {
    field.clear();
    auto add = [&](yaml::Node *item) {
      if (std::optional<std::string> text = scalar(item, "a name or pattern"))
        field.push_back(*text);
    };
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list)
      return add(node);
    for (yaml::Node &item : *list)
      add(&item);
  }
  /// A name, or a mapping with the name and numbers.
  void read(yaml::Node *node, Optimizer &optimizer) {
    if (llvm::isa_and_nonnull<yaml::ScalarNode>(node))
      return read(node, optimizer.name);
    std::vector<std::string> keys = {"name", "groups"};
    addKeys(optimizer.numbers, keys);
    readMapping(node, "the optimizer", keys, [&](StringRef key, yaml::Node *value) {
      if (key == "name")
        read(value, optimizer.name);
      else if (key == "groups")
        readGroups(value, optimizer.groups);
      else
        return readNumbers(key, value, optimizer.numbers);
      return true;
    });
  }
  void read(yaml::Node *node, std::vector<Initializer> &initializers) {
    initializers.clear();
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list) {
      if (node)
        report(node, "init is a list, e.g. [{parameters: \"*.weight\", distribution: normal, std: "
                     "0.02}]");
      return;
    }
    for (yaml::Node &item : *list)
      readInitializer(&item, initializers.emplace_back());
  }

  void read(yaml::Node *node, std::optional<int64_t> &field) {
    int64_t number = field.value_or(0);
    read(node, number);
    field = number;
  }
  /// The type that is computed in, or a mapping.
  void read(yaml::Node *node, std::optional<Precision> &field) {
    if (!field)
      field.emplace();
    if (llvm::isa_and_nonnull<yaml::ScalarNode>(node))
      return read(node, field->compute);
    readMapping(node, "the precision", {"compute", "masters", "reduce", "loss_scale"},
                [&](StringRef key, yaml::Node *value) {
                  if (key == "compute")
                    read(value, field->compute);
                  else if (key == "masters")
                    read(value, field->masters);
                  else if (key == "reduce")
                    read(value, field->reduce);
                  else if (key == "loss_scale")
                    read(value, field->lossScale);
                  else
                    return false;
                  return true;
                });
  }
  /// off, dynamic, a number that stays, or a mapping with the numbers of one that changes.
  void read(yaml::Node *node, LossScale &scale) {
    bool isWord = llvm::isa_and_nonnull<yaml::ScalarNode>(node);
    // Numbers of several flags add up.
    if (isWord || scale.kind != LossScale::Kind::Dynamic)
      scale = LossScale();
    if (isWord) {
      std::string text = *scalar(node, "a scale");
      double number = 0;
      if (text == "off" || text == "dynamic")
        scale.kind = text == "off" ? LossScale::Kind::Off : LossScale::Kind::Dynamic;
      else if (StringRef(text).getAsDouble(number) || !std::isfinite(number))
        report(node, "expected off, dynamic, a number or a mapping here, not '" + text + "'");
      else
        scale.kind = LossScale::Kind::Fixed, scale.fixed = number;
      return;
    }
    scale.kind = LossScale::Kind::Dynamic;
    std::vector<std::string> keys;
    visitLossScale(scale, [&](StringRef key, auto &) { keys.push_back(key.str()); });
    readMapping(node, "the loss scale", keys, [&](StringRef key, yaml::Node *value) {
      return readField(key, value, [&](auto take) { visitLossScale(scale, take); });
    });
  }

private:
  /// Reads the field of this name among those that `visit` shows; false if there is none.
  template <typename Visit> bool readField(StringRef key, yaml::Node *value, Visit visit) {
    bool isKnown = false;
    visit([&](StringRef name, auto &field) {
      if (name != key)
        return;
      isKnown = true;
      read(value, field);
    });
    return isKnown;
  }

  void readInitializer(yaml::Node *node, Initializer &init) {
    std::vector<std::string> keys = {"parameters", "distribution"};
    visitInitializer(init, [&](StringRef key, auto &) { keys.push_back(key.str()); });
    readMapping(node, "an entry of init", keys, [&](StringRef key, yaml::Node *value) {
      if (key == "parameters")
        read(value, init.parameters);
      else if (key == "distribution")
        read(value, init.distribution);
      else
        return readField(key, value, [&](auto take) { visitInitializer(init, take); });
      return true;
    });
    // PyTorch's name.
    if (init.distribution == "trunc_normal")
      init.distribution = "truncated_normal";
    if (init.parameters.empty())
      report(node,
             "an entry of init needs the patterns of its parameters: parameters: \"*.weight\"");
  }

  std::optional<std::string> scalar(yaml::Node *node, StringRef what) {
    llvm::SmallString<64> storage;
    if (auto *text = llvm::dyn_cast_or_null<yaml::ScalarNode>(node))
      return text->getValue(storage).trim().str();
    if (node)
      report(node, "expected " + what + " here");
    return std::nullopt;
  }

  std::optional<double> readNumber(yaml::Node *node) {
    std::optional<std::string> text = scalar(node, "a number");
    double number = 0;
    if (!text)
      return std::nullopt;
    if (StringRef(*text).getAsDouble(number) || !std::isfinite(number)) {
      report(node, "expected a number here, not '" + *text + "'");
      return std::nullopt;
    }
    return number;
  }

  static void addKeys(const OptimizerNumbers &numbers, std::vector<std::string> &keys) {
    visitNumbers(numbers, [&](StringRef key, auto &) { keys.push_back(key.str()); });
  }

  bool readNumbers(StringRef key, yaml::Node *value, OptimizerNumbers &numbers) {
    return readField(key, value, [&](auto take) { visitNumbers(numbers, take); });
  }

  void readGroups(yaml::Node *node, std::vector<ParameterGroup> &groups) {
    groups.clear();
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(node);
    if (!list) {
      if (node)
        report(node, "groups is a list, e.g. [{parameters: \"*.bias\", weight_decay: 0}]");
      return;
    }
    for (yaml::Node &item : *list) {
      ParameterGroup &group = groups.emplace_back();
      std::vector<std::string> keys = {"parameters"};
      addKeys(group.numbers, keys);
      readMapping(&item, "a group", keys, [&](StringRef key, yaml::Node *value) {
        if (key == "parameters")
          read(value, group.parameters);
        else
          return readNumbers(key, value, group.numbers);
        return true;
      });
      if (group.parameters.empty())
        report(&item, "a group needs the patterns of its parameters: parameters: \"*.bias\"");
    }
  }

  Report report;
};

} // namespace

void readTraining(yaml::Node *section, TrainingReader::Report report, Training &training) {
  TrainingReader reader(report);
  std::vector<std::string> keys;
  visitTraining(training, [&](StringRef key, auto &) { keys.push_back(key.str()); });
  reader.readMapping(section, "section 'train'", keys, [&](StringRef key, yaml::Node *value) {
    bool isKnown = false;
    visitTraining(training, [&](StringRef name, auto &field) {
      if (name != key)
        return;
      isKnown = true;
      reader.read(value, field);
    });
    return isKnown;
  });
}

void parseTraining(StringRef text, StringRef origin, Training &training,
                   std::vector<std::string> &errors) {
  llvm::SourceMgr sources;
  auto add = [&](const llvm::Twine &what) { errors.push_back((origin + ": " + what).str()); };
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic &diagnostic, void *context) {
        (*static_cast<decltype(add) *>(context))(diagnostic.getMessage());
      },
      &add);
  yaml::Stream stream(text, sources, /*ShowColors=*/false);
  yaml::document_iterator document = stream.begin();
  if (document == stream.end())
    return;
  if (yaml::Node *root = document->getRoot())
    readTraining(root, [&](yaml::Node *, const llvm::Twine &what) { add(what); }, training);
}

void parseTrainSpec(StringRef spec, Training &training, std::vector<std::string> &errors) {
  auto [key, value] = spec.split('=');
  std::string origin = ("--train " + spec).str();
  if (key.trim().empty() || value.trim().empty()) {
    errors.push_back(origin + ": expected a key of the section 'train' and its value, e.g. zero=1");
    return;
  }
  llvm::SmallVector<StringRef> path;
  key.trim().split(path, '.');
  std::string text = value.str();
  for (StringRef step : llvm::reverse(path))
    text = ("{" + step + ": " + text + "}").str();
  parseTraining(text, origin, training, errors);
}

} // namespace shardc::plan
