// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Plan.h"
#include "importers/plan/TrainingReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using llvm::StringRef;
namespace yaml = llvm::yaml;

namespace shardc::plan {
namespace {

/// A comma ends a value in YAML's braces, and `[` begins a list: what is left is `S(0`.
constexpr const char *quoteIt =
    "; a placement with a comma must be quoted in YAML, e.g. {tp: \"S(0, blocks = 3)\"}";

/// Whether a line has a comma between parentheses that no quotes protect.
bool hasBareComma(StringRef line) {
  bool quoted = false;
  int depth = 0;
  for (char c : line) {
    if (c == '"' || c == '\'')
      quoted = !quoted;
    else if (!quoted)
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && !quoted && depth > 0)
      return true;
  }
  return false;
}

class PlanReader {
public:
  PlanReader(StringRef text, StringRef file, Plan &plan, std::vector<std::string> &errors)
      : file(file), plan(plan), errors(errors), stream(text, sources, /*ShowColors=*/false) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *self) {
          auto *reader = static_cast<PlanReader *>(self);
          StringRef line = diagnostic.getLineContents();
          reader->errors.push_back(
              reader->file.str() + ":" + std::to_string(diagnostic.getLineNo()) + ": " +
              diagnostic.getMessage().str() + (hasBareComma(line) ? quoteIt : ""));
        },
        this);
  }

  void read() {
    yaml::document_iterator document = stream.begin();
    if (document == stream.end())
      return;
    yaml::Node *root = document->getRoot();
    if (!root || llvm::isa<yaml::NullNode>(root))
      return;
    auto *map = llvm::dyn_cast<yaml::MappingNode>(root);
    if (!map)
      return error(
          root,
          "a plan is a mapping with the keys mesh, inputs, modules, parameters, outputs, ops");
    for (yaml::KeyValueNode &entry : *map)
      readSection(entry);
  }

private:
  std::string place(yaml::Node *node) {
    auto [line, column] = sources.getLineAndColumn(node->getSourceRange().Start);
    return file.str() + ":" + std::to_string(line);
  }
  void error(yaml::Node *node, const llvm::Twine &what) {
    errors.push_back(place(node) + ": " + what.str());
  }

  /// The text of a scalar; the error is reported here.
  std::optional<std::string> scalar(yaml::Node *node, StringRef what) {
    llvm::SmallString<64> storage;
    if (auto *text = llvm::dyn_cast_or_null<yaml::ScalarNode>(node))
      return text->getValue(storage).trim().str();
    if (node)
      error(node, "expected " + what + " here");
    return std::nullopt;
  }

  void readSection(yaml::KeyValueNode &entry) {
    std::optional<std::string> key = scalar(entry.getKey(), "the name of a section");
    if (!key)
      return;
    yaml::Node *value = entry.getValue();
    if (*key == "mesh")
      return readMesh(value);
    if (*key == "meshes")
      return readMeshes(value);
    if (*key == "tp_axis") {
      plan.tpAxis = scalar(value, "the name of a mesh axis").value_or("");
      return;
    }
    if (*key == "random") {
      plan.random = scalar(value, "the mode of random numbers").value_or("");
      return;
    }
    if (*key == "recompute")
      return readRecompute(value);
    if (*key == "reshard_after_forward")
      return readReshard(value);
    if (*key == "train") {
      auto report = [this](yaml::Node *node, const llvm::Twine &what) { error(node, what); };
      if (!plan.training)
        plan.training.emplace();
      return readTraining(value, report, *plan.training);
    }
    if (*key == "ops") {
      size_t before = errors.size();
      auto report = [this](yaml::Node *node, const llvm::Twine &what) { error(node, what); };
      readCustomOps(
          value, file, report, [this](yaml::Node *node) { return place(node); }, plan.ops);
      plan.opErrors.insert(plan.opErrors.end(), errors.begin() + static_cast<long>(before),
                           errors.end());
      return;
    }
    auto section = llvm::StringSwitch<std::optional<Section>>(*key)
                       .Case("inputs", Section::Input)
                       .Case("outputs", Section::Output)
                       .Case("parameters", Section::Parameter)
                       .Cases({"modules", "tp_plan", "base_model_tp_plan"}, Section::Module)
                       .Cases({"ep_plan", "base_model_ep_plan"}, Section::Module)
                       .Default(std::nullopt);
    if (!section) {
      std::vector<std::string> known = {"mesh",      "meshes",     "inputs",
                                        "outputs",   "parameters", "modules",
                                        "tp_plan",   "tp_axis",    "base_model_tp_plan",
                                        "recompute", "train",      "reshard_after_forward",
                                        "random",    "ep_plan",    "base_model_ep_plan",
                                        "ops"};
      return error(entry.getKey(), "unknown section '" + *key + "'; did you mean " +
                                       nearestNames(*key, known, 1) + "?");
    }
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(value);
    if (!map) {
      if (value && !llvm::isa<yaml::NullNode>(value))
        error(value, "section '" + *key + "' is a mapping from names to placements or styles");
      return;
    }
    size_t before = plan.rules.size();
    for (yaml::KeyValueNode &rule : *map)
      readRule(*section, rule);
    bool isOfExperts = StringRef(*key).ends_with("ep_plan");
    for (Rule &rule : llvm::drop_begin(plan.rules, before)) {
      rule.isPasted = isOfExperts || StringRef(*key).ends_with("tp_plan");
      rule.isOfExperts = isOfExperts;
    }
  }

  /// `[4, 5]` of a list as it is written; nothing after an error.
  std::optional<std::string> listText(yaml::SequenceNode *list) {
    std::string text;
    bool complete = true;
    for (yaml::Node &item : *list) {
      std::optional<std::string> rank = scalar(&item, "a rank");
      complete &= rank.has_value();
      text += (text.empty() ? "" : ",") + rank.value_or("");
    }
    return complete ? std::optional("[" + text + "]") : std::nullopt;
  }

  /// `dp=2,tp=2,devices=[3,2,1,0]` of a mapping, or the text that is there.
  std::optional<std::string> meshText(yaml::Node *value) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(value);
    if (!map)
      return scalar(value, "a mesh, e.g. {dp: 2, tp: 4}");
    std::string text;
    bool complete = true;
    for (yaml::KeyValueNode &axis : *map) {
      std::optional<std::string> name = scalar(axis.getKey(), "the name of an axis");
      auto *list =
          name == "devices" ? llvm::dyn_cast_or_null<yaml::SequenceNode>(axis.getValue()) : nullptr;
      std::optional<std::string> size =
          list ? listText(list) : scalar(axis.getValue(), "the size of an axis");
      complete &= name && size;
      if (name && size)
        text += (text.empty() ? "" : ",") + *name + "=" + *size;
    }
    return complete ? std::optional(text) : std::nullopt;
  }

  /// A list of patterns, or one.
  void readRecompute(yaml::Node *value) {
    auto add = [&](yaml::Node *node) {
      if (std::optional<std::string> pattern =
              scalar(node, "the path of a module or a pattern, e.g. \"model.layers.*\""))
        plan.recompute.push_back({*pattern, place(node)});
    };
    auto *list = llvm::dyn_cast_or_null<yaml::SequenceNode>(value);
    if (!list)
      return add(value);
    for (yaml::Node &entry : *list)
      add(&entry);
  }

  void readReshard(yaml::Node *value) {
    std::optional<std::string> text = scalar(value, "true, false or auto");
    if (!text)
      return;
    if (*text != "true" && *text != "false" && *text != "auto")
      return error(value, "reshard_after_forward is true, false or auto, not '" + *text + "'");
    plan.reshardAfterForward = *text == "auto" ? std::nullopt : std::optional(*text == "true");
  }

  void readMesh(yaml::Node *value) {
    if (std::optional<std::string> text = meshText(value))
      parseMesh(*text, place(value), plan.mesh, errors);
  }

  void readMeshes(yaml::Node *value) {
    auto *map = llvm::dyn_cast_or_null<yaml::MappingNode>(value);
    if (!map) {
      if (value && !llvm::isa<yaml::NullNode>(value))
        error(value, "section 'meshes' is a mapping from names to meshes, e.g. readers: {io: 2, "
                     "devices: [4, 5]}");
      return;
    }
    for (yaml::KeyValueNode &entry : *map) {
      std::optional<std::string> name = scalar(entry.getKey(), "the name of a mesh");
      std::string where = place(entry.getKey());
      std::optional<std::string> text = meshText(entry.getValue());
      if (name && text)
        parseNamedMesh(*name + ":" + *text, where, plan, errors);
    }
  }

  void readRule(Section section, yaml::KeyValueNode &entry) {
    std::optional<std::string> pattern = scalar(entry.getKey(), "a name or pattern");
    yaml::Node *value = entry.getValue();
    if (!pattern || !value)
      return;
    Rule rule{section, *pattern, std::nullopt, {}, false, place(entry.getKey())};
    if (auto *map = llvm::dyn_cast<yaml::MappingNode>(value)) {
      std::string text;
      bool isCut = false, complete = true;
      for (yaml::KeyValueNode &axis : *map) {
        if (isCut) // what follows the comma reads as another axis: no mistake of its own
          continue;
        std::optional<std::string> name = scalar(axis.getKey(), "the name of a mesh axis");
        std::optional<std::string> placement = scalar(axis.getValue(), "a placement, e.g. S(0)");
        if (placement && StringRef(*placement).count('(') > StringRef(*placement).count(')')) {
          error(axis.getValue(), "'" + *placement + "' for axis '" + name.value_or("") + "' of '" +
                                     *pattern + "' is cut at a comma" + quoteIt);
          isCut = true;
        }
        complete &= name && placement;
        if (name && placement)
          text += (text.empty() ? "" : ",") + *name + ":" + *placement;
      }
      if (!isCut && complete)
        parseRuleValue(text, rule, errors);
    } else if (std::optional<std::string> text =
                   scalar(value, "a style or placements, e.g. colwise or {tp: S(0)}")) {
      parseRuleValue(*text, rule, errors);
    }
    plan.rules.push_back(std::move(rule));
  }

  StringRef file;
  Plan &plan;
  std::vector<std::string> &errors;
  llvm::SourceMgr sources;
  yaml::Stream stream;
};

} // namespace

void parseYaml(StringRef text, StringRef file, Plan &plan, std::vector<std::string> &errors) {
  PlanReader(text, file, plan, errors).read();
}

} // namespace shardc::plan
