// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Initialization.h"

#include "importers/plan/Plan.h"
#include "support/JsonText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numbers>

using llvm::StringRef;

namespace shardc::plan {
namespace {

struct Distribution {
  llvm::StringLiteral name;
  llvm::StringLiteral keys; ///< that it takes, with a space before and behind each
};

constexpr Distribution distributions[] = {
    {"uniform", " a b "},
    {"normal", " mean std "},
    {"truncated_normal", " mean std a b "},
    {"kaiming_uniform", " a mode nonlinearity "},
    {"kaiming_normal", " a mode nonlinearity "},
    {"xavier_uniform", " gain "},
    {"xavier_normal", " gain "},
    {"constant", " value "},
    {"zeros", " "},
    {"ones", " "},
    {"keep", " "},
};

/// Functions of torch.nn.init whose elements depend on each other.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> unsupported[] = {
    {"orthogonal", "it factorises the whole matrix"},
    {"sparse", "it sorts each column"},
    {"dirac", "it is made for convolutions that keep their input"},
    {"eye", "it is made for matrices that keep their input"},
};

const Distribution *find(StringRef name) {
  auto *found = llvm::find_if(distributions, [&](auto &known) { return known.name == name; });
  return found == std::end(distributions) ? nullptr : found;
}

/// torch.nn.init.calculate_gain; nothing of an unknown name.
std::optional<double> gainOf(StringRef nonlinearity, double slope) {
  return llvm::StringSwitch<std::optional<double>>(nonlinearity)
      .Cases({"linear", "conv1d", "conv2d", "conv3d"}, 1.0)
      .Cases({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"}, 1.0)
      .Case("tanh", 5.0 / 3)
      .Case("relu", std::numbers::sqrt2)
      .Case("leaky_relu", std::sqrt(2 / (1 + slope * slope)))
      .Case("selu", 0.75)
      .Default(std::nullopt);
}

class InitializerValidator {
public:
  InitializerValidator(const Initializer &init, std::string where,
                       std::vector<std::string> &problems)
      : init(init), where(std::move(where)), problems(problems) {}

  void run() {
    const Distribution *known = find(init.distribution);
    if (!known)
      return add("distribution", unknown());
    checkKeys(*known);
    if (init.distribution == "constant" && !init.value)
      add("value", "is what a constant needs: the number that all elements are");
    bool isTruncated = init.distribution == "truncated_normal";
    if (init.std && (*init.std < 0 || (isTruncated && *init.std == 0)))
      add("std", std::string(isTruncated ? "must be positive" : "must not be negative") + ", not " +
                     jsonNumber(*init.std));
    if (init.gain && !(*init.gain >= 0))
      add("gain", "must not be negative, not " + jsonNumber(*init.gain));
    double low = init.a.value_or(isTruncated ? -2 : 0), high = init.b.value_or(isTruncated ? 2 : 1);
    if ((isTruncated && !(low < high)) || (init.distribution == "uniform" && !(low <= high)))
      add("a", "is " + jsonNumber(low) + ", which is not below b, " + jsonNumber(high));
    if (!init.mode.empty() && init.mode != "fan_in" && init.mode != "fan_out")
      add("mode", "is fan_in or fan_out, not '" + init.mode + "'");
    if (!init.nonlinearity.empty() && !gainOf(init.nonlinearity, 0))
      add("nonlinearity", "is one that torch.nn.init.calculate_gain knows, such as relu, "
                          "leaky_relu, tanh, selu or linear, not '" +
                              init.nonlinearity + "'");
  }

private:
  void add(StringRef key, const llvm::Twine &what) {
    problems.push_back((where + "." + key + " " + what).str());
  }

  std::string unknown() const {
    std::vector<std::string> names;
    for (const Distribution &known : distributions)
      names.push_back(known.name.str());
    if (init.distribution.empty())
      return "is missing: it is one of " + llvm::join(names, ", ");
    for (auto &[name, why] : unsupported)
      if (name == init.distribution)
        return "'" + init.distribution + "' is not supported: " + why.str() +
               ", and here each element is made by itself. Export the module with these "
               "parameters and say 'keep', or choose another distribution";
    return "is one of " + llvm::join(names, ", ") + ", not '" + init.distribution +
           "'; did you mean " + nearestNames(init.distribution, names, 1) + "?";
  }

  void checkKeys(const Distribution &known) {
    visitInitializer(init, [&](StringRef key, auto &field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if (field == Field() || known.keys.contains((" " + key + " ").str()))
        return;
      std::string keys = llvm::join(llvm::split(known.keys.trim(), ' '), ", ");
      add(key, "is nothing that '" + init.distribution + "' takes; it takes " +
                   (keys.empty() ? "nothing" : keys));
    });
  }

  const Initializer &init;
  const std::string where;
  std::vector<std::string> &problems;
};

/// torch.nn.init._calculate_fan_in_and_fan_out.
struct Fans {
  explicit Fans(llvm::ArrayRef<int64_t> shape) : in(double(shape[1])), out(double(shape[0])) {
    for (int64_t size : shape.drop_front(2)) {
      in *= double(size);
      out *= double(size);
    }
  }
  double in, out;
};

InitialValues uniform(double low, double high) {
  return {InitialValues::Kind::Uniform, 0, 0, low, high};
}
InitialValues normal(double mean, double deviation) {
  return {InitialValues::Kind::Normal, mean, deviation, 0, 0};
}
InitialValues constant(double value) { return {InitialValues::Kind::Constant, value, 0, 0, 0}; }

} // namespace

std::optional<InitialValues> Initializer::valuesOf(llvm::ArrayRef<int64_t> shape,
                                                   std::string &problem) const {
  StringRef name = distribution;
  if (name == "keep")
    return InitialValues{InitialValues::Kind::Keep, 0, 0, 0, 0};
  if (name == "constant" || name == "zeros" || name == "ones")
    return constant(name == "constant" ? value.value_or(0) : name == "ones" ? 1 : 0);
  if (name == "uniform")
    return uniform(a.value_or(0), b.value_or(1));
  if (name == "normal")
    return normal(mean.value_or(0), std.value_or(1));
  if (name == "truncated_normal")
    return InitialValues{InitialValues::Kind::TruncatedNormal, mean.value_or(0), std.value_or(1),
                         a.value_or(-2), b.value_or(2)};
  if (shape.size() < 2) {
    problem = "has " + std::to_string(shape.size()) + (shape.size() == 1 ? " dim" : " dims") +
              ", but '" + distribution +
              "' goes by the numbers of inputs and outputs, which only tensors of at least two "
              "dims have: give it another entry, before this one";
    return std::nullopt;
  }
  // A tensor without elements may have no inputs.
  if (llvm::is_contained(shape, 0))
    return constant(0);
  const Fans fans(shape);
  double deviation;
  if (name.starts_with("xavier"))
    deviation = gain.value_or(1) * std::sqrt(2 / (fans.in + fans.out));
  else
    deviation = gainOf(nonlinearity.empty() ? "leaky_relu" : StringRef(nonlinearity), a.value_or(0))
                    .value_or(1) /
                std::sqrt(mode == "fan_out" ? fans.out : fans.in);
  double bound = std::sqrt(3.0) * deviation;
  return name.ends_with("uniform") ? uniform(-bound, bound) : normal(0, deviation);
}

void validateInitializers(llvm::ArrayRef<Initializer> initializers,
                          std::vector<std::string> &problems) {
  for (auto [i, init] : llvm::enumerate(initializers))
    InitializerValidator(init, llvm::formatv("init[{0}]", i).str(), problems).run();
}

} // namespace shardc::plan
