// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/flight/FlightRecord.h"

#include "support/Json.h"
#include "support/JsonText.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

constexpr const char *format = "shardrt flight record";
constexpr int64_t version = 1;

std::string listText(const FlightMembers &members) {
  std::string text;
  for (uint32_t member : members)
    text += (text.empty() ? "" : ", ") + std::to_string(member);
  return "[" + text + "]";
}

std::string listText(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "\n  " : ",\n  ") + line;
  return "[" + text + "]";
}

class ObjectWriter {
public:
  void add(const char *name, const std::string &value) {
    members += members.empty() ? "\"" : ", \"";
    members += name;
    members += "\": ";
    members += value;
  }
  std::string text() const { return "{" + members + "}"; }

private:
  std::string members;
};

/// Reads members of objects, and remembers the first that is not as it must be.
class FlightReader {
public:
  explicit FlightReader(std::string &problem) : problem(problem) {}

  int64_t number(JsonValue object, const char *key, int64_t least = 0,
                 int64_t most = std::numeric_limits<int64_t>::max()) {
    std::optional<int64_t> value = object[key].integer();
    if (!value || *value < least || *value > most)
      fail(std::string(key) + " must be a whole number of at least " + std::to_string(least));
    return value.value_or(least);
  }
  std::string string(JsonValue object, const char *key) {
    std::optional<std::string_view> value = object[key].string();
    if (!value)
      fail(std::string(key) + " must be a string");
    return std::string(value.value_or(""));
  }
  FlightMembers members(JsonValue object, const char *key, uint32_t worldSize) {
    FlightMembers out;
    for (JsonValue element : object[key].elements()) {
      std::optional<int64_t> member = element.integer();
      if (!member || *member < 0 || *member >= int64_t(worldSize))
        fail(std::string(key) + " must be ranks of the world");
      out.push_back(uint32_t(member.value_or(0)));
    }
    if (out.empty())
      fail(std::string(key) + " must be a list of ranks");
    return out;
  }
  void fail(const std::string &what) {
    if (problem.empty())
      problem = what;
  }

private:
  std::string &problem;
};

} // namespace

std::string FlightRecord::json() const {
  ObjectWriter object;
  object.add("format", jsonString(format));
  object.add("version", std::to_string(version));
  object.add("rank", std::to_string(rank));
  object.add("world_size", std::to_string(worldSize));
  object.add("host", jsonString(host));
  object.add("pid", std::to_string(pid));
  object.add("world", jsonString(world));
  object.add("artifact", jsonString(artifact));
  object.add("artifact_hash", jsonString(artifactHash));
  object.add("run", std::to_string(run));
  object.add("written_us", std::to_string(writtenUs));
  object.add("status", jsonString(status));
  object.add("message", jsonString(message));
  object.add("op", jsonString(op));
  object.add("op_location", jsonString(opLocation));
  std::vector<std::string> lines;
  for (const FlightGroup &group : groups) {
    ObjectWriter one;
    one.add("ranks", listText(group.members));
    one.add("begun", std::to_string(group.begun));
    lines.push_back(one.text());
  }
  object.add("groups", listText(lines));
  lines.clear();
  for (const FlightCollective &c : collectives) {
    ObjectWriter one;
    one.add("run", std::to_string(c.run));
    one.add("name", jsonString(c.name));
    one.add("location", jsonString(c.location));
    one.add("kind", jsonString(c.kind));
    one.add("ranks", listText(c.members));
    one.add("sequence", std::to_string(c.sequence));
    one.add("bytes", std::to_string(c.bytes));
    one.add("begin_us", std::to_string(c.beginUs));
    one.add("end_us", c.endUs ? std::to_string(*c.endUs) : "null");
    one.add("status", jsonString(c.status));
    lines.push_back(one.text());
  }
  object.add("collectives", listText(lines));
  return object.text() + "\n";
}

std::optional<FlightRecord> FlightRecord::parse(std::string_view text, std::string &problem) {
  problem.clear();
  std::optional<JsonDocument> document = JsonDocument::parse(text, problem);
  if (!document) {
    problem = "it is not JSON: " + problem;
    return std::nullopt;
  }
  JsonValue root = document->root();
  if (root["format"].string() != format) {
    problem = "it is no flight record";
    return std::nullopt;
  }
  if (root["version"].integer() != version) {
    problem = "it is a flight record of another version";
    return std::nullopt;
  }
  constexpr int64_t largest = 1 << 20; // ranks; far more than any world has
  FlightReader reader(problem);
  FlightRecord record;
  record.worldSize = uint32_t(reader.number(root, "world_size", 1, largest));
  record.rank = uint32_t(reader.number(root, "rank", 0, largest));
  if (record.rank >= record.worldSize)
    reader.fail("rank " + std::to_string(record.rank) + " is outside of its world");
  record.host = reader.string(root, "host");
  record.pid = reader.number(root, "pid");
  record.world = reader.string(root, "world");
  record.artifact = reader.string(root, "artifact");
  record.artifactHash = reader.string(root, "artifact_hash");
  record.run = uint64_t(reader.number(root, "run"));
  record.writtenUs = reader.number(root, "written_us");
  record.status = reader.string(root, "status");
  record.message = reader.string(root, "message");
  record.op = reader.string(root, "op");
  record.opLocation = reader.string(root, "op_location");
  for (const char *key : {"groups", "collectives"})
    if (!root[key].isArray())
      reader.fail(std::string(key) + " must be a list");
  for (JsonValue group : root["groups"].elements())
    record.groups.push_back({reader.members(group, "ranks", record.worldSize),
                             uint64_t(reader.number(group, "begun"))});
  for (JsonValue value : root["collectives"].elements()) {
    FlightCollective &c = record.collectives.emplace_back();
    c.name = reader.string(value, "name");
    c.location = reader.string(value, "location");
    c.kind = reader.string(value, "kind");
    c.members = reader.members(value, "ranks", record.worldSize);
    c.sequence = uint64_t(reader.number(value, "sequence", 1));
    c.run = uint64_t(reader.number(value, "run"));
    c.bytes = reader.number(value, "bytes");
    c.beginUs = reader.number(value, "begin_us");
    if (!value["end_us"].isNull())
      c.endUs = reader.number(value, "end_us");
    c.status = reader.string(value, "status");
  }
  if (!problem.empty())
    return std::nullopt;
  return record;
}

std::string FlightRecord::write(const std::string &folder) const {
  std::string path = folder + "/rank-" + std::to_string(rank) + ".json";
  std::string temporary = path + ".tmp" + std::to_string(pid);
  auto failed = [&](const char *what) {
    std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return path + ": cannot " + what + ": " + reason;
  };
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return failed("make the folder");
  FILE *file = std::fopen(temporary.c_str(), "w");
  if (!file)
    return failed("create");
  std::string text = json();
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int reason = errno;
  if (std::fclose(file) != 0) {
    reason = good ? errno : reason;
    good = false;
  }
  if (!good) {
    errno = reason;
    return failed("write");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    return failed("rename");
  return "";
}

} // namespace shardc::rt
