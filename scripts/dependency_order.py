# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dependency order of the source folders, and what breaks it.

The order is that of the build: CMake reads folders one after the other, and a folder stands where a CMakeLists.txt first
names one of its files. A folder includes headers only of itself and of folders before it, so that no two folders include
each other. Folders that are built with -DSHARDC_COMPILER=OFF include nothing of those that are not.

  dependency_order.py [ROOT]            prints the order; `*` marks the folders that are built without the compiler
  dependency_order.py ROOT --check      prints what breaks it; exit status 1 if anything does
"""
import pathlib
import re
import subprocess
import sys

SOURCES = (".c", ".cpp", ".h", ".hpp", ".td", ".def")
# Folders that are no part of the order: what is in them includes what it likes.
OUTSIDE = ("benchmarks/", "cmake/", "runtime/examples/", "test/")
# Pairs that know nothing of each other, although the second comes first.
APART = [("dialects/dist", "dialects/aten")]


class Folder:
    def __init__(self, place, compiler):
        self.place = place
        self.compiler = compiler  # whether it is built with the compiler only


def commands(text):
    """(name, arguments) of each command of a CMakeLists.txt, in order."""
    text = re.sub(r"#[^\n]*", "", text)
    for name, arguments in re.findall(r"([A-Za-z_]\w*)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
        yield name.lower(), arguments.replace('"', "").split()


def read_order(root, folder=pathlib.PurePosixPath("."), compiler=False, order=None):
    """{folder: Folder} in dependency order, from the CMakeLists.txt of `folder` on."""
    order = {} if order is None else order
    conditions = []
    for name, arguments in commands((root / folder / "CMakeLists.txt").read_text()):
        only = compiler or any(conditions)
        if name == "if":
            conditions.append(arguments == ["SHARDC_COMPILER"])
        elif name in ("else", "elseif"):
            conditions[-1] = False
        elif name == "endif":
            conditions.pop()
        elif name == "add_subdirectory":
            if not f"{folder / arguments[0]}/".startswith(OUTSIDE):
                read_order(root, folder / arguments[0], only, order)
        else:
            for file in (folder / a for a in arguments if "$" not in a):
                if file.suffix in SOURCES and (root / file).exists():
                    order.setdefault(str(file.parent), Folder(len(order), only))
    return order


def normal(path):
    parts = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return pathlib.PurePosixPath(*parts)


def includes(root, file):
    """The project's own files that `file` includes, generated ones too, as paths from the root."""
    for included in re.findall(r'^\s*(?:#\s*include|include)\s+["<]([^">]+)[">]', (root / file).read_text(), re.M):
        for base in ("", str(pathlib.PurePosixPath(file).parent), "runtime/include"):
            path = normal(f"{base}/{included}")
            # A generated header lies in the build tree, under the name of its folder.
            if (root / path).is_file() or path.suffix == ".inc" and (root / path.parent / "CMakeLists.txt").is_file():
                yield str(path)
                break


def violations(root, files):
    """What is wrong with the includes of these files, a line each."""
    order = read_order(root)
    files = [f for f in files if f.endswith(SOURCES) and not f.startswith(OUTSIDE)]
    folder_of = {f: str(pathlib.PurePosixPath(f).parent) for f in files}
    out = [f"{folder}: no CMakeLists.txt names a file of it, so that it has no place in the dependency order"
           for folder in sorted(set(folder_of.values()) - order.keys())]
    for file, folder in folder_of.items():
        for included in includes(root, file):
            other = str(pathlib.PurePosixPath(included).parent)
            if folder == other or folder not in order or other not in order:
                continue
            if order[other].compiler and not order[folder].compiler:
                out.append(f"{file} includes {included}: {folder} is built without the compiler")
            elif order[other].place > order[folder].place:
                out.append(f"{file} includes {included}, which comes later in the dependency order")
            elif (folder, other) in APART:
                out.append(f"{file} includes {included}: {folder} knows nothing of {other}")
    return out


def last_places(order, depth):
    """Folders of that depth in the order of what is last in each."""
    last = {}
    for name, folder in order.items():
        parts = name.split("/")
        if len(parts) >= depth:
            last["/".join(parts[:depth])] = folder.place
    return sorted(last, key=last.get)


def table_problems(root):
    """README's table of folders has a row for each, with its parts, all in dependency order. Tables of other pages may leave
    out some, but have the same order."""
    order = read_order(root)
    folders, parts = last_places(order, 1), last_places(order, 2)
    out = []
    for page in ["README.md", "docs/architecture.md"]:
        text = (root / page).read_text() if (root / page).is_file() else ""
        told = [(name, cell) for name, cell in re.findall(r"^\| `(\w+)/` \|([^|]*)\|", text, re.M) if name in folders]
        complete = page == "README.md"
        rows = [(page, "the folders", [name for name, _ in told], folders)]
        for name, cell in told:
            true = [p.split("/")[1] for p in parts if p.startswith(f"{name}/")]
            rows.append((page, f"in {name}/", [p for p in re.findall(r"`([\w-]+)/?`", cell) if complete or p in true], true))
        out += [f"{page} lists {where} {', '.join(listed) or 'nothing'}; there are, in order: {', '.join(true)}"
                for page, where, listed, true in rows
                if listed != (true if complete else [t for t in true if t in listed])]
    return out


def tracked(root):
    listed = subprocess.run(["git", "ls-files"], cwd=root, text=True, capture_output=True, check=True).stdout.split()
    return [f for f in listed if (root / f).is_file()]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    if "--check" in sys.argv:
        files = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
        problems = violations(root, files) + table_problems(root)
        print("\n".join(problems) or "in order")
        return 1 if problems else 0
    for name, folder in read_order(root).items():
        print(f"{' ' if folder.compiler else '*'} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
