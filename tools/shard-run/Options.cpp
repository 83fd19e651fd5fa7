// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Options.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string_view>

namespace shardc::run {

const char *helpText() {
  return R"(OVERVIEW: runs a program that shardc has compiled. Its ranks are threads of this process, or
processes: those of a launcher (mpirun, srun, torchrun), or of --processes.

USAGE: shard-run [options] MODEL.so

OPTIONS:
  -n, --ranks N          number of ranks, which must be the number that the program was compiled for
                         (the default)
  --processes            start a process for each rank, on this machine
  --weights FILE         read the parameters from FILE: a .pt2 archive, a safetensors file, a state
                         dict of torch.save, or a checkpoint
  --inputs FILE...       read the inputs from these files: safetensors (by name), NAME=FILE.npy, or
                         FILE.npy (for the first of the entry's inputs that has no file yet)
  --outputs FILE         write the outputs to FILE, as safetensors
  --entry NAME           run the entry point NAME (default: the first)
  --steps K              run K times on the same inputs (default 1); printed times leave out the first
  --batches FILE...      train: run the entry that makes a step on one batch of these files after the
                         other, which are as those of --inputs with one dim of batches more, the first
  --lr X                 the learning rate of a training, at its peak
  --schedule constant|linear|cosine  what becomes of it (default constant), with --steps K in all
  --warmup N             let it grow in the first N steps (default 0)
  --final-lr X           where it falls to (default 0)
  --log FILE             write a JSON line for each step of a training (default: to standard output,
                         or a line of progress where standard error is a terminal)
  --save FILE            write a checkpoint at the end, a safetensors file with parameters and states
  --save-sharded DIR     write it as a folder instead, in which each rank writes its own part
  --save-every N         and after every N steps of a training; %s in the path stands for the step
  --resume FILE|DIR      go on from a checkpoint, of any mesh
  --init                 let the program make its parameters, as init: of its plan says, instead of --weights
  --seed N               begin the random numbers of the program with this seed (default 0, or that
                         of the checkpoint)
  --local                read and write each rank's own shards; %r in a path stands for the rank
  --threads N            number of compute threads of each rank (default: cores / ranks of a host)
  --device N|emulated    the device of a program for one: its number, or the emulated one (default: the
                         rank's number on its host, modulo the number of devices)
  --timeout SECONDS      fail if a collective takes longer than this (default 600)
  --no-overlap           run collectives where they are waited for, without a communication thread
  --check                find mistakes of the compiler: run each step twice, with memory that is
                         filled otherwise, and fail with a list, by op and module, of what is
                         computed from memory that nothing has written or returned unwritten
  --trace FILE           write a Chrome trace of the steps after the first: a lane for each rank and
                         stream, and beside it what the compiler predicted
  --profile              print times by module, op and collective
  --progress             print on standard error what the program is doing
  --format text|json     print the summary on standard output in this form (default text)
  --flight-record DIR    when a run fails, each rank leaves a file in DIR: where it was, and its last
                         collectives
  --postmortem DIR       print what the files in such a folder say together, and exit
  --manifest             print the program's manifest (JSON) and exit
  --help                 print this text and exit
  --version              print the version and exit

ENVIRONMENT:
  SHARDRT_LOG=error|warning|info|debug    which messages the runtime prints on standard error
  SHARDRT_BLAS=PATH|none                  which library multiplies matrices
  SHARDRT_COMMUNICATOR=auto|local|mpi|gloo  how ranks that are processes communicate
  SHARDRT_LINK=LATENCY_US,GB_PER_S        collectives take as long as on such a link between ranks
  SHARDRT_FLIGHT_DIR=DIR                  as --flight-record DIR

EXAMPLES:
  shard-run -n 4 model.so --weights model.pt2 --inputs in.safetensors --outputs out.safetensors
  shard-run model.so --weights w.safetensors --inputs ids.npy mask=mask.npy --steps 20 --profile
  shard-run model.so --local --inputs in.%r.safetensors --outputs out.%r.safetensors
  SHARDRT_LINK=20,12.5 shard-run model.so --weights w.safetensors --inputs x.npy --trace t.json
  shard-run step.so --weights model.pt2 --batches text.safetensors --steps 300 --lr 1e-3 --save c.safetensors
  shard-run step.so --init --seed 7 --batches text.safetensors --steps 300 --lr 1e-3
  shard-run -n 4 --processes model.so --weights w.safetensors --inputs x.npy --flight-record records
  shard-run --postmortem records
  mpirun -n 4 shard-run model.so --weights w.safetensors --inputs x.npy --outputs out.safetensors
  torchrun --no-python --nproc-per-node 4 shard-run model.so --weights w.safetensors --inputs x.npy

Inputs are needed by rank 0 only, which also writes the outputs and prints; with --local each rank has
its own. The exit status is 0 only if every rank succeeded.
)";
}

namespace {

class Arguments {
public:
  Arguments(int argc, char **argv) : words(argv + 1, argv + argc) {}

  bool done() const { return at >= words.size(); }
  std::string next() { return words[at++]; }
  bool nextIsValue() const { return !done() && (words[at].size() < 2 || words[at].front() != '-'); }
  std::string value(const std::string &option) {
    if (!done())
      return next();
    problems.push_back(option + " needs a value");
    lacksValue = true;
    return "";
  }
  /// A whole number of at least `least`; it is that where the text is none.
  int number(const std::string &option, int least) {
    std::string text = value(option);
    char *end = nullptr;
    long number = std::strtol(text.c_str(), &end, 10);
    if (!text.empty() && !*end && number >= least && number <= std::numeric_limits<int>::max())
      return int(number);
    if (!lacksValue)
      problems.push_back(option + " needs a whole number of at least " + std::to_string(least) +
                         ", not '" + text + "'");
    return least;
  }
  int64_t wholeNumber(const std::string &option) {
    std::string text = value(option);
    char *end = nullptr;
    errno = 0;
    long long number = std::strtoll(text.c_str(), &end, 10);
    if (!text.empty() && !*end && errno == 0)
      return number;
    if (!lacksValue)
      problems.push_back(option + " needs a whole number of 64 bits, not '" + text + "'");
    return 0;
  }
  double seconds(const std::string &option) {
    return real(option, "a positive number of seconds", [](double x) { return x > 0; });
  }
  double rate(const std::string &option) {
    return real(option, "a number that is not negative", [](double x) { return x >= 0; });
  }
  double real(const std::string &option, const char *what, bool (*fits)(double)) {
    std::string text = value(option);
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && !*end && std::isfinite(value) && fits(value))
      return value;
    if (!lacksValue)
      problems.push_back(option + " needs " + what + ", not '" + text + "'");
    return 1;
  }
  /// Adds this value and the words behind it that are no options.
  void values(const std::string &option, std::vector<std::string> &to) {
    to.push_back(value(option));
    while (nextIsValue())
      to.push_back(next());
  }
  /// Splits --option=value in two words.
  void splitAssignment() {
    std::string &word = words[at];
    size_t equals = word.find('=');
    if (word.rfind("--", 0) != 0 || equals == std::string::npos)
      return;
    words.insert(words.begin() + ptrdiff_t(at) + 1, word.substr(equals + 1));
    words[at].resize(equals);
  }

  std::vector<std::string> problems;

private:
  std::vector<std::string> words;
  size_t at = 0;
  bool lacksValue = false; // of the last option: there is nothing behind it
};

} // namespace

namespace {

/// Adds what does not go together.
void checkTraining(const Options &options, std::vector<std::string> &problems) {
  if (!options.resume.empty() && !options.weights.empty())
    problems.push_back(
        "--weights and --resume exclude each other: the checkpoint has the parameters");
  for (auto &[path, option] :
       {std::pair(&options.weights, "--weights"), std::pair(&options.resume, "--resume")})
    if (std::filesystem::path file(*path); file.filename() == "index.json")
      problems.push_back(std::string(option) + " " + *path +
                         " is the index of a checkpoint of several files: give its folder, " +
                         (file.has_parent_path() ? file.parent_path().string() : "."));
  if (options.init)
    for (auto &[path, option] :
         {std::pair(&options.weights, "--weights"), std::pair(&options.resume, "--resume")})
      if (!path->empty())
        problems.push_back("--init and " + std::string(option) +
                           " exclude each other: both say what the parameters begin with");
  if (options.saveEvery > 0 && options.save.empty())
    problems.push_back("--save-every needs --save FILE or --save-sharded DIR");
  if (options.batches.empty()) {
    if (options.learningRate || options.schedule.warmup > 0 || options.schedule.final > 0 ||
        options.schedule.shape != Schedule::Shape::Constant || !options.log.empty() ||
        options.saveEvery > 0)
      problems.push_back("--lr, --schedule, --warmup, --final-lr, --log and --save-every are of a "
                         "training: give its --batches");
    return;
  }
  if (!options.inputs.empty())
    problems.push_back("--inputs and --batches exclude each other");
  if (options.local)
    problems.push_back("--batches has whole batches, which rank 0 reads: leave out --local");
  if (!options.learningRate)
    problems.push_back("--batches needs the learning rate: give --lr X");
  if (options.schedule.warmup > options.steps)
    problems.push_back("--warmup is " + std::to_string(options.schedule.warmup) +
                       ", but there are " + std::to_string(options.steps) + " --steps");
}

} // namespace

Options parseOptions(int argc, char **argv) {
  Options options;
  Arguments arguments(argc, argv);
  std::vector<std::string> &problems = arguments.problems;
  bool isUnknown = false; // then nobody knows which of the words behind is its value
  while (!arguments.done()) {
    arguments.splitAssignment();
    std::string word = arguments.next();
    if (word == "-n" || word == "--ranks")
      options.ranks = arguments.number(word, 1);
    else if (word == "--weights")
      options.weights = arguments.value(word);
    else if (word == "--inputs" || word == "--input")
      arguments.values(word, options.inputs);
    else if (word == "--batches")
      arguments.values(word, options.batches);
    else if (word == "--lr")
      options.learningRate = arguments.rate(word);
    else if (word == "--final-lr")
      options.schedule.final = arguments.rate(word);
    else if (word == "--warmup")
      options.schedule.warmup = arguments.number(word, 0);
    else if (word == "--schedule") {
      std::string name = arguments.value(word);
      std::optional<Schedule::Shape> shape = Schedule::shapeNamed(name);
      if (!shape)
        problems.push_back("--schedule must be constant, linear or cosine, not '" + name + "'");
      options.schedule.shape = shape.value_or(Schedule::Shape::Constant);
    } else if (word == "--log")
      options.log = arguments.value(word);
    else if (word == "--save" || word == "--save-sharded") {
      if (!options.save.empty() && options.savesSharded != (word == "--save-sharded"))
        problems.push_back("--save and --save-sharded exclude each other");
      options.save = arguments.value(word);
      options.savesSharded = word == "--save-sharded";
    } else if (word == "--save-every")
      options.saveEvery = arguments.number(word, 1);
    else if (word == "--resume")
      options.resume = arguments.value(word);
    else if (word == "--seed")
      options.seed = arguments.wholeNumber(word);
    else if (word == "--init")
      options.init = true;
    else if (word == "--outputs" || word == "--output")
      options.outputs = arguments.value(word);
    else if (word == "--entry")
      options.entry = arguments.value(word);
    else if (word == "--steps")
      options.steps = arguments.number(word, 1);
    else if (word == "--trace")
      options.trace = arguments.value(word);
    else if (word == "--timeout")
      options.timeout = arguments.seconds(word);
    else if (word == "--threads")
      options.threads = arguments.number(word, 1);
    else if (word == "--device")
      options.device = arguments.value(word);
    else if (word == "--processes")
      options.processes = true;
    else if (word == "--flight-record")
      options.flightRecord = arguments.value(word);
    else if (word == "--postmortem")
      options.postmortem = arguments.value(word);
    else if (word == "--format") {
      std::string format = arguments.value(word);
      if (format != "text" && format != "json")
        problems.push_back("--format must be text or json, not '" + format + "'");
      options.json = format == "json";
    } else if (word == "--profile")
      options.profile = true;
    else if (word == "--progress")
      options.progress = true;
    else if (word == "--check")
      options.check = true;
    else if (word == "--local")
      options.local = true;
    else if (word == "--no-overlap")
      options.overlap = false;
    else if (word == "--manifest")
      options.manifest = true;
    else if (word == "--help" || word == "-h")
      options.help = true;
    else if (word == "--version")
      options.version = true;
    else if (word.size() > 1 && word.front() == '-') {
      problems.push_back("unknown option " + word + " (see shard-run --help)");
      isUnknown = true;
    } else if (options.artifact.empty())
      options.artifact = word;
    else if (!isUnknown)
      problems.push_back("unexpected argument " + word + ": the program is " + options.artifact +
                         " already");
  }
  bool runs = !options.help && !options.version && options.postmortem.empty();
  if (options.artifact.empty() && runs && !isUnknown)
    problems.push_back("no program is given; write it before --inputs (see shard-run --help)");
  checkTraining(options, problems);
  if (options.local)
    for (const std::string &path : options.inputs)
      if (path.find("%r") == std::string::npos)
        problems.push_back("--local: the path " + path + " must contain %r, the rank");
  if (options.local && !options.outputs.empty() && options.outputs.find("%r") == std::string::npos)
    problems.push_back("--local: the path " + options.outputs + " must contain %r, the rank");
  if (!problems.empty())
    throw UsageError(lines(problems));
  return options;
}

std::string lines(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += (all.empty() ? "" : "\n  ") + text;
  return all;
}

std::string pathOfRank(const std::string &path, int rank) {
  std::string out = path;
  for (size_t at = out.find("%r"); at != std::string::npos; at = out.find("%r", at))
    out.replace(at, 2, std::to_string(rank));
  return out;
}

} // namespace shardc::run
