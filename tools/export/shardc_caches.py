# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lets a DynamicCache of transformers be an argument and a result of a module: its keys and values are tensors of the program.

transformers has such a registration too, under the same names (`key_cache.0`, `value_cache.0`). It makes constants in every cache, and
PyTorch's decompositions fail on these."""
import inspect
import sys

from torch.utils import _pytree as pytree


def flatten(cache):
    """[keys, values], lists with an entry for each layer that has any, and the classes of all layers."""
    full = [layer for layer in cache.layers if layer.keys is not None]
    context = [(type(layer), getattr(layer, "sliding_window", None), layer.keys is not None) for layer in cache.layers]
    return [[layer.keys for layer in full], [layer.values for layer in full]], context


def flatten_with_keys(cache):
    parts, context = flatten(cache)
    return list(zip(map(pytree.MappingKey, ("key_cache", "value_cache")), parts)), context


def unflatten(parts, context):
    cache = sys.modules["transformers.cache_utils"].DynamicCache()
    pairs = zip(*parts)
    for kind, window, is_full in context:
        layer = kind() if window is None else kind(sliding_window=window)
        if is_full:
            layer.keys, layer.values = next(pairs)
            layer.dtype, layer.device = (getattr(layer.keys, name, None) for name in ("dtype", "device"))
            layer.is_initialized = True
            if window is not None:
                layer.cumulative_length = layer.keys.shape[-2]
        cache.layers.append(layer)
    return cache


def register():
    """Does nothing where transformers is not in use."""
    module = sys.modules.get("transformers.cache_utils")
    kind = getattr(module, "DynamicCache", None)
    if kind is None:
        return
    known = pytree.SUPPORTED_NODES.get(kind)
    if known is not None and known.flatten_fn is flatten:
        return
    if known is not None:
        pytree._deregister_pytree_node(kind)
    pytree.register_pytree_node(kind, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys,
                                serialized_type_name=f"{kind.__module__}.{kind.__name__}",
                                to_dumpable_context=lambda context: [[c.__name__, w, f] for c, w, f in context],
                                from_dumpable_context=lambda entries: [(getattr(module, c), w, f) for c, w, f in entries])


def refuse_full_windows(model, args, kwargs):
    """A cache of a sliding window that is full does not say how many tokens came before: its tensors are the same whatever was dropped. So a
    program has to be told the positions, and is not where the forward of `transformers` counts them by itself."""
    module = sys.modules.get("transformers.cache_utils")
    kind, parameters = getattr(module, "DynamicCache", None), inspect.signature(model.forward).parameters
    named, given = {"position_ids", "cache_position"} & set(parameters), {**dict(zip(parameters, args)), **kwargs}
    if kind is None or not named or any(given.get(name) is not None for name in named):
        return
    for name, value in given.items():
        for layer in value.layers if isinstance(value, kind) else ():
            window = getattr(layer, "sliding_window", None)
            if window is not None and layer.keys is not None and layer.keys.shape[-2] >= window - 1:
                raise ValueError(f"the window of {window} tokens of the cache '{name}' is full, so that a program cannot know from it how many tokens "
                                 f"came before: pass {' or '.join(sorted(named))} as well, as a tensor")
