# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that two .cpp files of one target define, each for itself.

Scripts build several files of a target as one (CMAKE_UNITY_BUILD), where a name of an unnamed namespace, or one that is
`static`, would be defined twice. Functions may overload each other, and aliases and macros may be repeated as they are. Names
of two namespaces are apart, but not from those of the global one, which sees others by `using`. Files that a CMakeLists.txt
gives to shardc_compile_alone, or options of their own, keep their names to themselves.

  unique_names.py [ROOT]        prints what is wrong, else `unique`; exit status 1 if anything is

Code is read as clang-format writes it: what stands in a namespace begins in the first column.
"""
import collections
import itertools
import pathlib
import re
import sys

import dependency_order

# Commands of CMake that say something of files, and add them to no target.
NO_TARGET = ("set_source_files_properties", "set_property", "shardc_compile_alone", "shardc_optimize_files")
# A definition. `form` is what has to differ where there are several: the types of a function's parameters, else what it is.
Name = collections.namedtuple("Name", "file namespace name form")

COMMENT_OR_LITERAL = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                                r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
SPECIFIERS = re.compile(r"(?:(?:static|inline|constexpr|constinit|const|thread_local|extern|\[\[.*?\]\]) )+")
TYPE = re.compile(r"(?:struct|class|union|enum class|enum)\b(?: \[\[.*?\]\]| alignas\(\w+\))?(?: (\w+))?(?: final)?(?: ?:(?!:).*)?$")
BUILT_IN = {"auto", "bool", "char", "const", "double", "float", "int", "long", "short", "unsigned", "void"}


def targets(root, folder=pathlib.PurePosixPath("."), found=None):
    """{(folder, target): [.cpp file, ...]} from the CMakeLists.txt of `folder` on."""
    found = {} if found is None else found
    commands = list(dependency_order.commands((root / folder / "CMakeLists.txt").read_text()))
    alone = {a for name, arguments in commands for a in arguments
             if name == "shardc_compile_alone" or name == "set_source_files_properties" and "COMPILE_OPTIONS" in arguments}
    for name, arguments in commands:
        if name == "add_subdirectory":
            if not f"{folder / arguments[0]}/".startswith(dependency_order.OUTSIDE):
                targets(root, folder / arguments[0], found)
        elif name not in NO_TARGET:
            files = [str(folder / a) for a in arguments if a.endswith(".cpp") and "$" not in a and a not in alone]
            if files:
                found.setdefault((str(folder), arguments[0]), []).extend(files)
    return found


def find_outside(text, pattern):
    """The first match that is in no brackets; the bracket itself where the pattern is one."""
    depth = 0
    for match in re.finditer(rf"(?P<operator>operator ?[^\w\s(]+|->|(?<!template) <[<=]?|(?<= )>[>=]?)|(?P<wanted>{pattern})"
                             r"|[<(\[{]|[>)\]}]", text):
        if depth == 0 and match["wanted"]:
            return match
        if not match["operator"]:
            depth += 1 if match[0] in "<([{" else -1 if match[0] in ">)]}" else 0
    return None


def split(text):
    """At the commas that are in no brackets."""
    parts = []
    while match := find_outside(text, ","):
        parts.append(text[:match.start()].strip())
        text = text[match.end():]
    return [p for p in (*parts, text.strip()) if p]


def closed(text):
    """`text` begins behind a bracket: what is in it, and what comes after it."""
    match = find_outside(text, r"[>)\]}]")
    return (text[:match.start()], text[match.end():].strip()) if match else (text, "")


def parameter_type(text):
    """The type of a parameter that may have a name and a default; without namespaces that `using` may stand for."""
    default = find_outside(text, "=")
    text = text[:default.start()] if default else text
    text = re.sub(r"\b(?:llvm|mlir|shardc|std)::", "", text.strip())
    named = re.fullmatch(r"(.*[^\s:]) ?(?<=[ &*])(\w+) ?((?:\[\w*\])*)", text)
    if named and named[2] not in BUILT_IN and named[1] not in ("const", "struct", "typename"):
        text = named[1] + named[3]
    text = re.sub(r" ?([<>,*&()\[\]]) ?", r"\1", text)
    return text if text.endswith(("*", "&")) else text.removeprefix("const ")


def makes_variable(argument):
    """Whether this is a value that a variable is made of, and not a parameter of a function."""
    return bool(re.search(r'^[a-z]\w*$|^\d|"|\)$', argument)) and argument not in BUILT_IN


def definitions(statement):
    """(name, form) of each thing that a statement of a namespace defines."""
    end = find_outside(statement, "[{;]")
    has_body = end and end[0] == "{"
    head = " ".join(statement[:end.start()].split()) if end else ""
    templates = []
    while match := re.match(r"template ?<", head):
        parameters, head = closed(head[match.end():])
        templates += [re.split(r"[ .]", re.sub(r" ?=.*", "", p))[-1] for p in split(parameters)]
    head = SPECIFIERS.sub("", head, count=1) if SPECIFIERS.match(head) else head
    if alias := re.match(r"using (\w+) ?= ?(.*)", head):
        return [(alias[1], f"using {alias[2]}")]
    if re.match(r"(?:asm|friend|namespace|static_assert|template|typedef|using)\b", head):
        return []
    if has_body and re.match(r"(?:class|enum|struct|union)\b[^()]*$", re.sub(r"alignas\(\w+\)", "", head)):
        kind = TYPE.match(head)
        names = re.findall(r"[{,]\s*(\w+)", statement) if re.match(r"enum (?!class)", head) else []
        return [(name, "type") for name in (kind and kind[1], *names) if name]
    operator = re.search(r"(?:^|[ *&])(operator ?(?:\(\)|[^\s(]+)) ?\(", head)
    value = None if operator else find_outside(head, "=")
    head = head[:value.start()] if value else head
    bracket = operator or find_outside(head, r"\(")
    if not bracket:
        parts = split(statement.rstrip("; \n"))
        found = (re.search(r"(?<!::)\b(\w+)\s*(?:\[[^=]*\]\s*)?(?:[={].*)?$", part, re.S) for part in (head, *parts[1:]))
        return [(variable[1], "variable") for variable in found if variable] if " " in head or "*" in head else []
    name = operator[1] if operator else next(iter(re.findall(r"(?<!::)\b(\w+) ?$", head[:bracket.start()])), "")
    if not name or not head[:bracket.start()].replace(name, "", 1).strip():
        return []
    parameters = split(closed(head[bracket.end():])[0])
    if not has_body or value:
        return [(name, "variable")] if any(map(makes_variable, parameters)) else []
    types = [parameter_type(p) for p in parameters if p != "void"]
    for i, parameter in enumerate(templates):
        types = [re.sub(rf"\b{re.escape(parameter)}\b", f"${i}", t) for t in types]
    return [(name, f"({', '.join(types)})")]


def names(root, file):
    """What a .cpp file defines in namespaces, under names that say no class or namespace."""
    text = COMMENT_OR_LITERAL.sub(lambda m: " " if m[0][0] == "/" else '""', (root / file).read_text())
    macros = {}
    for undefined, name, body in re.findall(r"^[ \t]*#[ \t]*(?:(undef)|define)[ \t]+(\w+)((?:\\\n|[^\n])*)", text, re.M):
        macros.pop(name, None)
        if not undefined:
            macros[name] = " ".join(body.split())
    yield from (Name(file, (), name, f"#define {body}") for name, body in macros.items())
    namespaces, statement, depth = [], "", 0
    for line in re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M).split("\n"):
        line = line.rstrip()
        if not line or (not statement and re.fullmatch(r"[A-Z_0-9]+\([^;]*\)", line)):
            continue
        if not statement and (opened := re.fullmatch(r'(?:inline )?(?:namespace|extern "") ?([\w:]*) ?\{', line)):
            namespaces.append([part for part in opened[1].split("::") if part])
        elif not statement and line[0] == "}":
            del namespaces[-1:]
        else:
            statement += f"{line}\n"
            depth += line.count("{") - line.count("}")
            if depth == 0 and line[-1] in ";}":
                namespace = tuple(itertools.chain(*namespaces))
                yield from (Name(file, namespace, *defined) for defined in definitions(statement))
                statement = ""


def clash(a, b):
    if a.file == b.file or (a.namespace != b.namespace and a.namespace and b.namespace):
        return False
    if a.form[0] == b.form[0] == "(":
        return a.form == b.form
    return a.form != b.form or not a.form.startswith(("using", "#define"))


def problems(root):
    """What keeps files of a target from being built as one, a line each."""
    out = []
    for (_, target), files in targets(root).items():
        defined = collections.defaultdict(list)
        for file in files:
            for name in names(root, file):
                defined[name.name].append(name)
            if len(files) > 1 and re.search("^using namespace llvm;", (root / file).read_text(), re.M):
                out.append(f"{file}: `using namespace llvm` makes names of MLIR ambiguous in other files of {target}: "
                           "scripts build several files of a target as one; name what is used, or call shardc_compile_alone")
        for name, places in defined.items():
            for a, b in itertools.combinations(places, 2):
                if clash(a, b):
                    what = name + a.form if a.form[0] == b.form[0] == "(" else name
                    out.append(f"{b.file}: {a.file} of {target} defines {what} too: scripts build several files of a target "
                               "as one; give one of them another name, or share one definition")
    return out


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = problems(root)
    print("\n".join(found) or "unique")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
