// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/Contradictions.h"

using namespace shardc;
using namespace shardc::collectives;

std::string shardc::collectives::listNames(const std::vector<std::string> &names) {
  constexpr size_t mostListed = 5;
  std::string text;
  for (size_t i = 0; i != names.size() && i != mostListed; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > mostListed)
    text += " and " + std::to_string(names.size() - mostListed) + " more";
  return text;
}

std::vector<std::string> shardc::collectives::contradictions(const Graph &graph,
                                                             const Durations &durations) {
  std::vector<std::string> collectives, free;
  size_t kernels = 0, timed = 0;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    kernels += graph.isKernel(node);
    auto given = durations.find(graph.nameOf(node));
    if (given == durations.end())
      continue;
    if (graph.isKernel(node))
      ++timed;
    else if (graph.isCollective(node))
      collectives.push_back(graph.nameOf(node));
    else if (given->second > 0)
      free.push_back(graph.nameOf(node));
  }
  std::vector<std::string> errors;
  if (!collectives.empty())
    errors.push_back("has durations of collectives, " + listNames(collectives) +
                     ": how long these take is said by --topology; leave them out, or describe a "
                     "machine on which they take as long");
  if (!free.empty())
    errors.push_back("has durations of views, waits, allocations or sizes, " + listNames(free) +
                     ": these are free; leave them out");
  if (!durations.empty() && timed == 0 && kernels != 0)
    errors.push_back("names no kernel of the graph: is it of another graph?");
  return errors;
}
