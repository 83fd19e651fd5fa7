// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Profile.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace shardc::run {

namespace {

void addRow(ProfileTable &table, const std::string &key, const shardrt_event &event) {
  ProfileRow &row = table[key];
  row.us += event.duration_us;
  row.bytes += event.bytes;
  ++row.count;
}

/// A location is "module path (file:line)".
std::string moduleOf(const char *location) {
  std::string text = location;
  text = text.substr(0, text.find(" ("));
  return text.empty() ? "(no module)" : text;
}

void visit(void *context, const shardrt_event *event) {
  Profile &profile = *static_cast<Profile *>(context);
  if (event->stream == SHARDRT_STREAM_COMM) {
    addRow(profile.collectives, std::string(event->name) + "  " + event->location, *event);
    profile.commUs += event->duration_us;
    return;
  }
  bool waiting = event->stream == SHARDRT_STREAM_WAIT;
  (waiting ? profile.waitUs : profile.computeUs) += event->duration_us;
  if (!waiting) {
    addRow(profile.modules, moduleOf(event->location), *event);
    addRow(profile.ops, event->name, *event);
  }
}

constexpr ProfileTable Profile::*tables[] = {&Profile::modules, &Profile::ops,
                                             &Profile::collectives};
constexpr uint64_t shardrt_memory::*sizes[] = {
    &shardrt_memory::arena_bytes, &shardrt_memory::parameter_bytes, &shardrt_memory::copied_bytes,
    &shardrt_memory::persistent_bytes, &shardrt_memory::scratch_bytes};

template <typename T> void put(std::string &text, const T &value) {
  text.append(reinterpret_cast<const char *>(&value), sizeof value);
}
template <typename T> T take(std::string_view &rest) {
  if (rest.size() < sizeof(T))
    throw std::runtime_error("the profile of another rank cannot be read");
  T value;
  std::memcpy(&value, rest.data(), sizeof value);
  rest.remove_prefix(sizeof value);
  return value;
}

} // namespace

void Profile::add(const shardrt_model *model) {
  shardrt_visit_events(model, visit, this);
  Profile other;
  shardrt_memory_used(model, &other.memory);
  add(other);
}

void Profile::add(const Profile &other) {
  for (auto table : tables)
    for (auto &[name, row] : other.*table) {
      ProfileRow &mine = (this->*table)[name];
      mine.us += row.us;
      mine.count += row.count;
      mine.bytes += row.bytes;
    }
  computeUs += other.computeUs;
  waitUs += other.waitUs;
  commUs += other.commUs;
  for (auto size : sizes)
    memory.*size = std::max(memory.*size, other.memory.*size);
}

std::string Profile::encode() const {
  std::string text;
  for (auto table : tables) {
    put(text, uint64_t((this->*table).size()));
    for (auto &[name, row] : this->*table) {
      put(text, uint64_t(name.size()));
      text += name;
      put(text, row);
    }
  }
  for (double us : {computeUs, waitUs, commUs})
    put(text, us);
  put(text, memory);
  return text;
}

Profile Profile::decode(const std::string &text) {
  Profile out;
  std::string_view rest = text;
  for (auto table : tables)
    for (auto count = take<uint64_t>(rest); count > 0; --count) {
      auto length = take<uint64_t>(rest);
      std::string name(rest.substr(0, size_t(length)));
      rest.remove_prefix(name.size());
      (out.*table)[name] = take<ProfileRow>(rest);
    }
  for (double *us : {&out.computeUs, &out.waitUs, &out.commUs})
    *us = take<double>(rest);
  out.memory = take<shardrt_memory>(rest);
  return out;
}

} // namespace shardc::run
