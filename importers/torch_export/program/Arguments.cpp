// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the forms of an argument.
#include "importers/torch_export/program/Reader.h"

#include <array>
#include <limits>

namespace shardc::torch_export {
namespace {

// Floats that JSON cannot write come as strings.
std::optional<double> readReal(JsonValue value) {
  if (std::optional<double> number = value.real())
    return number;
  std::optional<std::string_view> text = value.string();
  if (text == "Infinity")
    return std::numeric_limits<double>::infinity();
  if (text == "-Infinity")
    return -std::numeric_limits<double>::infinity();
  if (text == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<int64_t> readInteger(JsonValue value) { return value.integer(); }
std::optional<bool> readBool(JsonValue value) { return value.boolean(); }
std::optional<std::string_view> readString(JsonValue value) { return value.string(); }

std::optional<TensorArg> readTensor(JsonValue value) {
  std::optional<std::string_view> name = value["name"].string();
  if (!name || name->empty())
    return std::nullopt;
  return TensorArg{.name = *name};
}

// {"as_tensor": {...}} or {"as_none": true}.
std::optional<TensorArg> readOptionalTensor(JsonValue value) {
  JsonMember member = unionMember(value);
  if (member.key == "as_none")
    return TensorArg{};
  return member.key == "as_tensor" ? readTensor(member.value) : std::nullopt;
}

std::optional<SymIntArg> readSymInt(JsonValue value) {
  JsonMember member = unionMember(value);
  if (member.key == "as_name") {
    std::optional<std::string_view> name = member.value.string();
    if (name && !name->empty())
      return SymIntArg{*name, 0};
  } else if (member.key == "as_int") {
    if (std::optional<int64_t> number = member.value.integer())
      return SymIntArg{{}, *number};
  }
  return std::nullopt;
}

template <typename T, typename Read>
std::optional<std::vector<T>> readList(JsonValue value, Read read) {
  if (!value.isArray())
    return std::nullopt;
  std::vector<T> list;
  list.reserve(value.size());
  for (JsonValue element : value.elements()) {
    std::optional<T> item = read(element);
    if (!item)
      return std::nullopt;
    list.push_back(std::move(*item));
  }
  return list;
}

// Each function reads one form; false if the value is not of it.
using Read = bool (*)(JsonValue, Argument &);

template <auto read> bool scalar(JsonValue value, Argument &out) {
  auto item = read(value);
  if (item)
    out = std::move(*item);
  return item.has_value();
}

template <typename T, auto read> bool list(JsonValue value, Argument &out) {
  auto items = readList<T>(value, read);
  if (items)
    out = std::move(*items);
  return items.has_value();
}

template <typename Wrapper, typename T, auto read>
bool wrappedList(JsonValue value, Argument &out) {
  auto items = readList<T>(value, read);
  if (items)
    out = Wrapper{std::move(*items)};
  return items.has_value();
}

template <typename Code> bool code(JsonValue value, Argument &out) {
  std::optional<int64_t> number = value.integer();
  if (number)
    out = Code{*number};
  return number.has_value();
}

bool scalarType(JsonValue value, Argument &out) {
  std::optional<int64_t> number = value.integer();
  std::optional<ElementType> type = number ? elementTypeFromExport(*number) : std::nullopt;
  if (type)
    out = ScalarTypeArg{*type};
  return type.has_value();
}

bool device(JsonValue value, Argument &out) {
  std::optional<std::string_view> type = value["type"].string();
  if (type)
    out = DeviceArg{*type, value["index"].integer()};
  return type.has_value();
}

bool complexNumber(JsonValue value, Argument &out) {
  std::optional<double> real = readReal(value["real"]), imag = readReal(value["imag"]);
  if (real && imag)
    out = ComplexArg{*real, *imag};
  return real && imag;
}

// A symbolic bool or float: by name, or a constant.
template <typename ByName, auto constant> bool symbolic(JsonValue value, Argument &out) {
  JsonMember member = unionMember(value);
  if (member.key == "as_name") {
    std::optional<std::string_view> name = member.value.string();
    if (name)
      out = ByName{*name};
    return name.has_value();
  }
  return scalar<constant>(member.value, out);
}

struct Form {
  std::string_view key;
  Read read;
};

constexpr std::array forms = {
    Form{"as_tensor", scalar<readTensor>},
    Form{"as_int", scalar<readInteger>},
    Form{"as_ints", list<int64_t, readInteger>},
    Form{"as_none", [](JsonValue, Argument &out) { return out = NoneArg{}, true; }},
    Form{"as_float", scalar<readReal>},
    Form{"as_scalar_type", scalarType},
    Form{"as_bool", scalar<readBool>},
    Form{"as_tensors", wrappedList<TensorListArg, TensorArg, readTensor>},
    Form{"as_string", scalar<readString>},
    Form{"as_sym_int", scalar<readSymInt>},
    Form{"as_sym_ints", wrappedList<SymIntListArg, SymIntArg, readSymInt>},
    Form{"as_device", device},
    Form{"as_layout", code<LayoutArg>},
    Form{"as_memory_format", code<MemoryFormatArg>},
    Form{"as_optional_tensor", scalar<readOptionalTensor>},
    Form{"as_optional_tensors", wrappedList<TensorListArg, TensorArg, readOptionalTensor>},
    Form{"as_floats", list<double, readReal>},
    Form{"as_bools", list<bool, readBool>},
    Form{"as_strings", list<std::string_view, readString>},
    Form{"as_sym_bool", symbolic<SymBoolArg, readBool>},
    Form{"as_sym_float", symbolic<SymFloatArg, readReal>},
    Form{"as_complex", complexNumber},
};

} // namespace

JsonMember unionMember(JsonValue value) {
  if (!value.isObject() || value.size() != 1)
    return {};
  return *value.members().begin();
}

void Reader::number(Argument &argument) const {
  auto one = [&](TensorArg &tensor) {
    if (!tensor.name.empty())
      tensor.number = tensors->numberOf(tensor.name);
  };
  if (!tensors)
    return;
  if (auto *tensor = std::get_if<TensorArg>(&argument))
    one(*tensor);
  else if (auto *list = std::get_if<TensorListArg>(&argument))
    for (TensorArg &tensor : list->tensors)
      one(tensor);
}

bool Reader::argument(JsonValue value, Argument &out) {
  JsonMember member = unionMember(value);
  if (member.key.empty())
    return fail("an argument is not an object with one member");
  for (const Form &form : forms)
    if (form.key == member.key) {
      if (!form.read(member.value, out))
        return fail("an argument of form " + std::string(form.key) +
                    " has a value of another form");
      number(out);
      return true;
    }
  if (member.key == "as_graph") {
    GraphArg nested;
    auto body = std::make_shared<Graph>();
    if (!string(member.value["name"], nested.name, "the name of a nested graph") ||
        !graph(member.value["graph"], *body))
      return false;
    nested.graph = std::move(body);
    out = std::move(nested);
    return true;
  }
  out = OtherArg{member.key};
  return true;
}

} // namespace shardc::torch_export
