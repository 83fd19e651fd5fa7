// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc export`: runs the Python helper where PyTorch is installed; its options are the helper's
// own.
#include "tools/shardc/Commands.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

cl::OptionCategory category("Options of shardc export");
cl::SubCommand command("export", "export a PyTorch model to .pt2 (needs Python with PyTorch)");
cl::list<std::string> arguments(
    cl::ConsumeAfter,
    cl::desc("MODULE:FUNCTION -o OUT.pt2 [options]; --help after MODULE:FUNCTION lists them"),
    cl::sub(command), cl::cat(category));
cl::opt<std::string> factory(cl::Positional, cl::desc("MODULE:FUNCTION"), cl::sub(command),
                             cl::cat(category));

/// SHARDC_PYTHON, else the project's virtual environment, else python3 on the PATH.
std::string findPython() {
  if (std::optional<std::string> chosen = sys::Process::GetEnv("SHARDC_PYTHON"))
    return *chosen;
  if (sys::fs::can_execute(SHARDC_VENV_PYTHON))
    return SHARDC_VENV_PYTHON;
  if (ErrorOr<std::string> found = sys::findProgramByName("python3"))
    return *found;
  return "";
}

int run(const char *argv0) {
  std::string python = findPython();
  if (python.empty()) {
    WithColor::error() << "no Python was found; set SHARDC_PYTHON to one that has PyTorch\n";
    return 1;
  }
  static int anchor;
  SmallString<256> script(sys::fs::getMainExecutable(argv0, &anchor));
  sys::path::remove_filename(script);
  sys::path::append(script, "..", "share", "shardc", "shardc_export.py");
  if (!sys::fs::exists(script)) {
    WithColor::error() << "the export helper is missing: " << script << "\n";
    return 1;
  }
  SmallVector<StringRef> command = {python, script, factory};
  command.append(arguments.begin(), arguments.end());
  std::string message;
  int status = sys::ExecuteAndWait(python, command, std::nullopt, {}, 0, 0, &message);
  if (status < 0)
    WithColor::error() << "could not run " << python << ": " << message << "\n";
  return status < 0 ? 1 : status;
}

} // namespace

shardc::Command shardc::exportCommand() {
  return {&command, &category,
          R"(  shardc export mymodel.py:build -o model.pt2
)",
          run, /*runsPasses=*/false};
}
