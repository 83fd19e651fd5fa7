// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/SimulatePlan.h"

#include "passes/collectives/exported/Contradictions.h"
#include "passes/collectives/exported/PlanFile.h"
#include "support/Json.h"
#include "support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

#include <map>
#include <unordered_map>

using namespace shardc;
using namespace shardc::collectives;
using llvm::StringRef;

std::optional<Plan> shardc::readPlan(StringRef path, const Graph *graph) {
  std::vector<std::string> errors(1);
  auto file = MappedFile::open(path.str(), errors.front());
  if (!file) {
    llvm::WithColor::error() << errors.front() << "\n";
    return std::nullopt;
  }
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  std::optional<Plan> plan;
  if (graph) {
    errors.clear();
    plan = parsePlan(text, *graph, errors);
  } else if (JsonDocument::parse(text, errors.front())) {
    return Plan();
  }
  constexpr size_t mostShown = 50;
  for (size_t i = 0; i != std::min(errors.size(), mostShown); ++i)
    llvm::WithColor::error() << path << (llvm::isDigit(errors[i].front()) ? ":" : ": ") << errors[i]
                             << "\n";
  if (errors.size() > mostShown)
    llvm::WithColor::error() << path << ": and " << errors.size() - mostShown << " more\n";
  return plan;
}

void shardc::remarkOnGroups(const Graph &graph) {
  std::map<std::vector<int64_t>, std::string> named;
  for (GroupId id = 0; id != graph.numGroups(); ++id) {
    const Group &group = graph.group(id);
    if (group.ranks.empty())
      continue;
    auto [first, isNew] = named.try_emplace(group.ranks, group.name);
    if (!isNew)
      llvm::WithColor::remark() << "groups '" << first->second << "' and '" << group.name
                                << "' have the same ranks, but a plan file tells them apart: "
                                   "with --emit their collectives share no bucket. Give them one "
                                   "name to change that\n";
  }
}

bool shardc::canWritePlan(StringRef model, const Graph &graph) {
  std::unordered_map<std::string_view, size_t> uses;
  std::vector<std::string> several;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (++uses[graph.nameOf(node)] == 2)
      several.push_back(graph.nameOf(node));
  if (several.empty())
    return true;
  llvm::WithColor::error() << model << ": several nodes are called " << listNames(several)
                           << ": a plan file, which goes by names, cannot tell them apart\n";
  return false;
}
