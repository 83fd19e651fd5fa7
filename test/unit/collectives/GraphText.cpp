// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/collectives/GraphText.h"

#include <istream>
#include <map>
#include <sstream>

using namespace shardc;
using namespace shardc::collectives;

static void readNode(std::istringstream &line, Graph &graph) {
  static const std::map<std::string, NodeClass> classes = {
      {"compute", NodeClass::Compute}, {"inplace", NodeClass::InPlace}, {"alias", NodeClass::Alias},
      {"empty", NodeClass::Empty},     {"sym", NodeClass::Scalar},      {"wait", NodeClass::Wait}};
  std::string name, kind, reduction, number;
  int64_t group = -1;
  uint32_t outBuffers = 0, counts[4] = {};
  line >> name >> kind >> number >> group >> reduction >> outBuffers >> counts[0] >> counts[1] >>
      counts[2] >> counts[3];
  std::vector<ValueId> ids(counts[0] + counts[1] + counts[2] + counts[3]);
  for (ValueId &id : ids)
    line >> id;
  std::span<const ValueId> operands(ids.data(), counts[0] + counts[1]);
  std::span<const ValueId> results(ids.data() + operands.size(), counts[2] + counts[3]);
  if (auto it = classes.find(kind); it != classes.end()) {
    graph.addNode(it->second, name, operands, results, std::stod(number));
    return;
  }
  CollectiveInfo info;
  info.kind = shardc::cost::parseCollectiveKind(kind).value();
  info.group = static_cast<GroupId>(group);
  info.reduction = reduction == "-" ? "" : reduction;
  info.outBuffers = outBuffers;
  graph.addCollective(info, name, operands, results);
}

std::optional<Graph> shardc::collectives::test::readGraph(std::istream &in, std::string &error) {
  Graph graph;
  std::string text;
  std::getline(in, text);
  while (std::getline(in, text)) {
    std::istringstream line(text);
    char tag = 0;
    line >> tag;
    if (tag == 'G') {
      Group group;
      line >> group.name >> group.size;
      graph.addGroup(group);
    } else if (tag == 'V') {
      uint64_t bytes = 0;
      uint32_t type = 0;
      line >> bytes >> type;
      graph.addTensor(bytes, type);
    } else if (tag == 'S') {
      graph.addScalar();
    } else if (tag == 'N') {
      readNode(line, graph);
    } else if (tag == 'I' || tag == 'O') {
      size_t count = 0;
      line >> count;
      for (ValueId id = 0; count-- && line >> id;)
        tag == 'I' ? graph.addInput(id) : graph.addOutput(id);
    }
  }
  std::vector<std::string> errors;
  if (!graph.finalize(errors)) {
    for (const std::string &message : errors)
      error += message + "\n";
    return std::nullopt;
  }
  return graph;
}
