# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a PyTorch module to a .pt2 file in the form that shardc compiles best.

The factory is `package.module:function` (or `file.py:function`). It returns
(module, args), (module, args, kwargs), or a module alone when --args names a safetensors
file with one tensor per argument. Everything that has a good kernel of its own (attention,
norms, linear, ...) is kept whole; the rest is decomposed to core ATen.

  python -m shardc_export mymodel.py:build -o model.pt2
  python -m shardc_export mymodel.py:build -o model.pt2 \\
      --dynamic input_ids:0=batch --dynamic input_ids:1=seq:2:512
"""
import argparse
import contextlib
import fnmatch
import importlib
import importlib.util
import inspect
import logging
import pathlib
import sys
import warnings

import torch
from torch.utils import _pytree as pytree

import shardc_caches
import shardc_dropouts
import shardc_grad_modes
import shardc_meta
import shardc_states
import shardc_trace

# Composite operators that stay whole: shardc has sharding rules and kernels for them, and their
# decompositions would have to be recognised again.
COMPOSITES = (
    "linear.default", "matmul.default", "scaled_dot_product_attention.default",
    "layer_norm.default", "rms_norm.default", "group_norm.default", "silu.default",
    "gelu.default", "embedding.default", "conv2d.default",
    "softmax.int", "log_softmax.int", "transpose.int", "split.Tensor",
    # Their derivatives at a kink, or where the function has no value of its own, are not those of what they are decomposed to.
    "sinc.default", "hardsigmoid.default", "hardswish.default", "sgn.default",
    # It would become an alias, which gradients pass.
    "detach.default",
    # As a root of the variance it would have no derivative where that is 0; PyTorch's is 0 there.
    "std.correction", "std_mean.correction",
    # A repetition is a view, and others are lookups along one dim after the other; borders are slices.
    "pad.default",
    "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec", "_upsample_nearest_exact1d.vec",
    "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec", "upsample_linear1d.vec", "upsample_bilinear2d.vec",
    "upsample_trilinear3d.vec", "upsample_bicubic2d.vec",
    # Windows of an image, of which ranks with rows of it exchange boundary rows. As rows at computed indices all would have to be everywhere.
    "im2col.default", "col2im.default",
    # Losses have derivatives of 0 at targets that are ignored, also where all are, and at probabilities of 0; what they are
    # decomposed to has derivatives there that are no numbers.
    "cross_entropy_loss.default", "nll_loss_nd.default", "binary_cross_entropy.default",
    "binary_cross_entropy_with_logits.default", "huber_loss.default", "kl_div.default", "l1_loss.default",
    "smooth_l1_loss.default",
    # They would become ops that have no other use, or a view that is none of a part.
    "bilinear.default", "cdist.default", "pdist.default", "diag.default", "stft.default", "istft.default",
    # A row of minus infinity has a derivative of 0; what it is decomposed to has none that is a number.
    "_safe_softmax.default",
    # Of numbers below -6 the branch that is not taken would be the logarithm of 0, whose derivative is no number.
    "special_log_ndtr.default",
    # As full_like they would not depend on what they overwrite, whose gradient is zero.
    "fill.Scalar", "fill.Tensor", "zero.default",
)

# Operators that PyTorch's default decompositions leave, and that it can write as others.
DECOMPOSED = (
    "upsample_nearest2d.vec", "upsample_bilinear2d.vec", "upsample_bilinear2d.default",
)


def overload(name):
    packet, kind = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), kind)


def roll(self, shifts, dims=()):
    """Parts that change places, which ranks with shards exchange at the boundaries; as rows at computed indices all of them would
    have to be everywhere. Parts of sizes that are not known are those indices."""
    sizes = [self.shape[dim] for dim in dims] if dims else self.shape
    if any(not isinstance(number, int) for number in (*sizes, *shifts)):
        return torch._decomp.decomposition_table[torch.ops.aten.roll.default](self, shifts, dims)
    if not dims:
        return roll(self.flatten(), shifts, (0,)).view(self.shape)
    rolled = self
    for shift, dim, size in zip(shifts, dims, sizes):
        if size and shift % size:
            kept = size - shift % size
            rolled = torch.cat((rolled.narrow(dim, kept, size - kept), rolled.narrow(dim, 0, kept)), dim)
    return self.clone() if rolled is self else rolled


def composite_table():
    """The decompositions to run: PyTorch's default ones less the composites that stay, and some more."""
    table = torch.export.default_decompositions()
    table[torch.ops.aten.roll.default] = roll
    table.update(torch._decomp.get_decompositions([overload(name) for name in DECOMPOSED]))
    for name in COMPOSITES:
        table.pop(overload(name), None)
    return table


def load_factory(spec):
    place, separator, name = spec.rpartition(":")
    if not separator or not place or not name:
        raise ValueError(f"factory '{spec}' is not of the form module:function")
    if place.endswith(".py"):
        path = pathlib.Path(place).resolve()
        module_spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(module_spec)
        sys.path.insert(0, str(path.parent))
        sys.modules[path.stem] = module
        module_spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(place)
    if not hasattr(module, name):
        raise ValueError(f"'{place}' has no function '{name}'")
    return getattr(module, name)


def parse_dynamic(specs):
    """["ids:0=batch:1:64"] -> {"ids": {0: Dim("batch", min=1, max=64)}}; equal names are one Dim. "x:2=4*tiles" is a multiple of it."""
    dims, shapes = {}, {}
    for spec in specs:
        try:
            place, symbol = spec.split("=")
            argument, dim = place.rsplit(":", 1)
            name, *bounds = symbol.split(":")
            *times, name = name.split("*")
            bounds = dict(zip(("min", "max"), map(int, bounds)))
            dim, (times,) = int(dim), [*map(int, times)] or [1]
            if not name.isidentifier() or times < 1:
                raise ValueError
        except ValueError:
            raise ValueError(f"--dynamic '{spec}' is not of the form ARG:DIM=[N*]NAME[:MIN[:MAX]]") from None
        if name not in dims or bounds:
            dims[name] = torch.export.Dim(name, **bounds)
        shapes.setdefault(argument, {})[dim] = name, times
    return {a: {d: dims[n] if times == 1 else times * dims[n] for d, (n, times) in s.items()} for a, s in shapes.items()}


def dynamic_shapes(model, args, kwargs, dynamic):
    """The dynamic dims as torch.export wants them: in the structure of the bound arguments. An argument
    inside a list or dict is named with dots, `pair.0`, and `*` stands for any characters."""
    if not dynamic:
        return None
    bound = dict(inspect.signature(model.forward).bind(*args, **kwargs).arguments)
    names = []

    def dims(path, value):
        kind = pytree._get_node_type(value)
        if kind in pytree.SUPPORTED_NODES:  # a registered class, such as a cache, is a list of its parts to torch.export
            parts, _ = pytree.SUPPORTED_NODES[kind].flatten_with_keys_fn(value)
            return [below((*path, key), part) for key, part in parts]
        steps = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))) for key in path)
        names.append(".".join(map(str, steps)))
        found = [shape for pattern, shape in dynamic.items() if fnmatch.fnmatchcase(names[-1], pattern)]
        return {dim: size for shape in found for dim, size in shape.items()} or None

    def below(path, value):
        return pytree.tree_map_with_path(lambda inner, leaf: dims((*path, *inner), leaf), value,
                                         is_leaf=lambda part: pytree._get_node_type(part) not in pytree.BUILTIN_TYPES)

    shapes = below((), bound)
    unknown = [pattern for pattern in dynamic if not fnmatch.filter(names, pattern)]
    if unknown:
        raise ValueError(f"--dynamic names {unknown}, but the arguments are {names}")
    return shapes


def export(model, args=(), kwargs=None, dynamic=(), form="composite", train=False, strict=False):
    """Exports `model` in inference mode, or in training mode; `form` is composite, core (core ATen) or training (PyTorch's
    name for what it has not decomposed yet, in either mode). `strict` is the way that torch.export takes first."""
    kwargs = dict(kwargs or {})
    model = model.train(train)
    shardc_caches.register()
    shardc_caches.refuse_full_windows(model, args, kwargs)
    shapes = dynamic_shapes(model, args, kwargs, parse_dynamic(dynamic))
    with shardc_states.kept(model) as tensors:
        program = shardc_trace.trace(model, tuple(args), kwargs, shapes, strict)
        shardc_states.make_buffers(program, tensors)
    shardc_dropouts.unify(program)
    shardc_grad_modes.detach_as_autograd(program)
    if form == "composite":
        return program.run_decompositions(composite_table())
    return program.run_decompositions() if form == "core" else program


def hide_warnings():
    """Hides what PyTorch and Python warn of about themselves, which the model's author cannot change; all else is shown."""
    inside, show = (str(pathlib.Path(logging.__file__).parents[1]), str(pathlib.Path(torch.__file__).parent)), warnings.showwarning
    warnings.showwarning = lambda *args, **kwargs: None if str(args[2]).startswith(inside) else show(*args, **kwargs)
    logging.getLogger("torch").setLevel(logging.ERROR)


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="shardc export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factory", metavar="MODULE:FUNCTION", help="function that builds the model")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.pt2")
    parser.add_argument("--args", metavar="FILE.safetensors", help="example arguments, by name")
    parser.add_argument("--dynamic", action="append", default=[], metavar="ARG:DIM=[N*]NAME[:MIN[:MAX]]",
                        help="a dimension that stays symbolic, or is N times a symbol; equal names are equal sizes")
    parser.add_argument("--form", choices=("composite", "core", "training"), default="composite")
    parser.add_argument("--train", action="store_true",
                        help="in training mode: with dropout, and with the batch's own statistics in batch norm")
    parser.add_argument("--meta", action="store_true",
                        help="without weights: parameters have no values, and take no memory when the factory runs")
    parser.add_argument("--strict", action="store_true",
                        help="let torch.export read the bytecode of the forward (strict) first, and run it (non-strict) where that "
                             "fails; without the option it is the other way round")
    parser.add_argument("--seed", type=int, default=0, help="seed set before the factory runs")
    options = parser.parse_args(argv)
    hide_warnings()
    if not options.output.endswith(".pt2"):
        parser.error("the output's name must end in .pt2")
    try:
        torch.manual_seed(options.seed)
        factory = load_factory(options.factory)
        with shardc_meta.parameters_on_meta() if options.meta else contextlib.nullcontext():
            built = factory()
        model, args, kwargs = (*built, {}, {})[:3] if isinstance(built, tuple) else (built, (), {})
        if options.args:
            args, kwargs = (), importlib.import_module("safetensors.torch").load_file(options.args)
        def exporter(*call):
            return export(*call, options.dynamic, options.form, options.train, options.strict)
        program = shardc_meta.export(exporter, model, args, kwargs)
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"shardc export: error: {error}", file=sys.stderr)
        return 1
    shardc_meta.save(program, options.output, options.form != "training")
    calls = sum(node.op == "call_function" for node in program.graph.nodes)
    print(f"{options.output}: {calls} operations, {len(program.state_dict)} parameters and buffers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
