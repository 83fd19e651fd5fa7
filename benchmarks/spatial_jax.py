# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of spatial_graphs.py in JAX, for least_bytes_jax.py. Where there are several ways to write one, all are here, and the best counts."""
import jax
import jax.numpy as jnp
import numpy
from jax import lax

DIMS = {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW"), 5: ("NCHWD", "OIHWD", "NCHWD")}


def tuple_of(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def conv(padding=0, stride=1, dilation=1, groups=1):
    def function(x, w):
        count = x.ndim - 2
        pads = [(p, p) for p in tuple_of(padding, count)]
        return lax.conv_general_dilated(x, w, tuple_of(stride, count), pads, rhs_dilation=tuple_of(dilation, count), feature_group_count=groups,
                                        dimension_numbers=DIMS[x.ndim])
    return function


def transposed(padding=0, stride=1, output_padding=0):
    """PyTorch's: the derivative of a convolution by its image."""
    def function(x, w):
        count = x.ndim - 2
        pads = [(k - 1 - padding, k - 1 - padding + output_padding) for k in w.shape[2:]]
        flipped = jnp.flip(w, tuple(range(2, x.ndim))).swapaxes(0, 1)
        return lax.conv_general_dilated(x, flipped, (1,) * count, pads, lhs_dilation=(stride,) * count, dimension_numbers=DIMS[x.ndim])
    return function


def up(size, kernel, stride, padding):
    """What PyTorch's ceil_mode adds at the end."""
    windows = -(-(size + 2 * padding - kernel) // stride) + 1
    windows -= (windows - 1) * stride >= size + padding
    return max(0, (windows - 1) * stride + kernel - size - 2 * padding)


def window(x, first, combine, kernel, stride, padding, ceil_mode):
    count = x.ndim - 2
    pads = [(0, 0), (0, 0), *((padding, padding + (up(size, kernel, stride, padding) if ceil_mode else 0)) for size in x.shape[2:])]
    return lax.reduce_window(x, first, combine, (1, 1) + (kernel,) * count, (1, 1) + (stride,) * count, pads)


def mean_pool(kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    def function(x):
        arguments = kernel, stride or kernel, padding, ceil_mode
        total = window(x, 0.0, lax.add, *arguments)
        if count_include_pad and not ceil_mode:
            return total / kernel ** (x.ndim - 2)
        with jax.ensure_compile_time_eval():
            counts = numpy.asarray(window(jnp.ones((1, 1, *x.shape[2:])), 0.0, lax.add, *arguments))
        return total / counts
    return function


def max_pool(kernel, stride=None, padding=0, ceil_mode=False):
    return lambda x: window(x, -jnp.inf, lax.max, kernel, stride or kernel, padding, ceil_mode)


def adaptive(parts, reduce):
    """In equal parts, of a view; otherwise part by part."""
    def function(x):
        size = x.shape[2]
        if size % parts == 0:
            return reduce(x.reshape(*x.shape[:2], parts, size // parts), 3)
        return jnp.stack([reduce(x[:, :, i * size // parts:-(-(i + 1) * size // parts)], 2) for i in range(parts)], 2)
    return function


def resize(method, scale=None, size=None):
    def function(x):
        sizes = [s * scale for s in x.shape[2:]] if scale else [size] * (x.ndim - 2)
        return jax.image.resize(x, (*x.shape[:2], *sizes), method, antialias=False)
    return function


def join(pair, x, dim):
    """In turn."""
    return jnp.stack(pair, dim + 1).reshape(*x.shape[:dim], 2 * x.shape[dim], *x.shape[dim + 1:])


def by_slices(x, dim, by):
    """The element before or after each, and that at the end again."""
    size = x.shape[dim]
    end, kept = (0, (0, size - 1)) if by < 0 else (size - 1, (1, size))
    parts = lax.slice_in_dim(x, end, end + 1, axis=dim), lax.slice_in_dim(x, *kept, axis=dim)
    return jnp.concatenate(parts if by < 0 else parts[::-1], dim)


def by_pads(x, dim, by):
    """The same by a pad that is cut on the other side."""
    moved = shift(x, dim, by)
    at = lax.broadcasted_iota(jnp.int32, x.shape, dim)
    return jnp.where(at == (0 if by < 0 else x.shape[dim] - 1), x, moved)


def shift(x, dim, by):
    return lax.pad(x, jnp.float32(0), [((1, -1, 0) if by < 0 else (-1, 1, 0)) if d == dim else (0, 0, 0) for d in range(x.ndim)])


def twice(neighbour):
    def function(x):
        for dim in range(2, x.ndim):
            before, after = neighbour(x, dim, -1), neighbour(x, dim, 1)
            x = join([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], x, dim)
        return x
    return function


def cubic(neighbour):
    """Each new element is made of four."""
    a = -0.75

    def weight(t):
        t = abs(t)
        return ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else ((t - 5) * t + 8) * t * a - 4 * a

    def function(x):
        for dim in range(2, x.ndim):
            before, after = neighbour(x, dim, -1), neighbour(x, dim, 1)
            row = [neighbour(before, dim, -1), before, x, after, neighbour(after, dim, 1)]
            x = join([sum(weight(i - 1.75) * row[i] for i in range(4)), sum(weight(i - 1.25) * row[i + 1] for i in range(4))], x, dim)
        return x
    return function


def lookup(size):
    return lambda x: x[:, :, (numpy.arange(size) * x.shape[2]) // size]


def corners(x):
    where = numpy.linspace(0, x.shape[2] - 1, 9)
    low = numpy.minimum(where.astype(int), x.shape[2] - 2)
    part = (where - low).astype("float32")
    return x[:, :, low] * (1 - part) + x[:, :, low + 1] * part


def pad(mode, *widths):
    def function(x):
        pairs = [(widths[2 * i], widths[2 * i + 1]) for i in range(len(widths) // 2)][::-1]
        return jnp.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs, mode=mode)
    return function


def standard(axes, groups=None):
    def function(x, *affine):
        y = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]) if groups else x
        at = axes(y)
        y = y - y.mean(at, keepdims=True)
        y = (y * lax.rsqrt((y * y).mean(at, keepdims=True) + 1e-5)).reshape(x.shape)
        return y * affine[0][:, None] + affine[1][:, None] if affine else y
    return function


def laplacian(x):
    return jnp.roll(x, 1, 2) + jnp.roll(x, -1, 2) + jnp.roll(x, 1, 3) + jnp.roll(x, -1, 3) - 4 * x


def laplacian_of_padded(x):
    x = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="wrap")
    return x[:, :, 2:, 1:-1] + x[:, :, :-2, 1:-1] + x[:, :, 1:-1, 2:] + x[:, :, 1:-1, :-2] - 4 * x[:, :, 1:-1, 1:-1]


def low_frequencies(x):
    spectrum = jnp.fft.rfft(x)
    return jnp.fft.irfft(jnp.zeros_like(spectrum).at[:, :, :2].set(spectrum[:, :, :2]), n=x.shape[2])


def unfold_and_fold(x):
    """By shifted slices of a padded image, whose 9 form a patch."""
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = x.shape[2:]
    patches = jnp.stack([padded[:, :, i:i + height, j:j + width] for i in range(3) for j in range(3)], 2)
    whole = patches.reshape(x.shape[0], -1, height, width)
    patches = jax.nn.softmax(whole, 1).reshape(patches.shape)
    result = jnp.zeros_like(padded)
    for i in range(3):
        for j in range(3):
            result = result.at[:, :, i:i + height, j:j + width].add(patches[:, :, 3 * i + j])
    return result[:, :, 1:-1, 1:-1]


def shifted_patches(x):
    """The same by shifts, and back by shifts."""
    def moved(y, i, j):
        for dim, by in ((2, i), (3, j)):
            y = shift(y, dim, by) if by else y
        return y
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    patches = jnp.stack([moved(x, i, j) for i, j in steps], 2)
    patches = jnp.exp(patches - patches.max((1, 2), keepdims=True))
    patches = patches / patches.sum((1, 2), keepdims=True)
    return sum(moved(patches[:, :, n], -i, -j) for n, (i, j) in enumerate(steps))


def around(x, w):
    """A circular convolution by rolls."""
    return sum(jnp.einsum("nih,oi->noh", jnp.roll(x, 1 - k, 2), w[:, :, k]) for k in range(3))


def pairs_of_two(x, w):
    """A transposed convolution of 2 by 2 is a product."""
    return jnp.einsum("nih,iok->nohk", x, w).reshape(x.shape[0], w.shape[1], -1)


def spatial(y):
    return tuple(range(2, y.ndim))


def two_convolutions(x, v, w):
    return conv(1)(jnp.tanh(conv(1)(x, v)), w)


CONV_3, UP, TWICE = conv(1), transposed(1, 2), (twice(by_slices), twice(by_pads))
INSTANCE, BATCH, GROUP = standard(spatial), standard(lambda y: (0, *spatial(y))), standard(lambda y: tuple(range(2, y.ndim)), 2)
FUNCTIONS = {
    "convolution of 3": CONV_3, "convolution of 5": conv(2), "convolution of 5, dilated": conv(4, 1, 2), "convolution of 4": conv(1),
    "convolution of 3, stride 2": conv(1, 2), "convolution of 5, stride 3": conv(2, 3), "convolution without padding": conv(),
    "convolution of patches": conv(0, 4), "convolution of 1": conv(), "convolution in groups": conv(1, groups=2),
    "convolution to fewer channels": CONV_3, "convolution, halo wider than a shard": conv(7), "two convolutions": two_convolutions,
    "two consumers": lambda x, v, w: conv(1)(x, v) + conv(2, 1, 2)(x, w),
    "convolution and pool": lambda x, w: mean_pool(2)(conv(1)(x, w)),
    "transposed, of 2 by 2": (transposed(0, 2), pairs_of_two), "transposed, of 3": transposed(1), "transposed, of 4 by 2": UP,
    "transposed, of 3 by 2, one more": transposed(1, 2, 1), "transposed to fewer channels": UP,
    "mean pool of 2": mean_pool(2), "mean pool of 3 by 2": mean_pool(3, 2, 1),
    "mean pool of 3 by 2, without the padding": mean_pool(3, 2, 1, count_include_pad=False), "mean pool of 3 by 2, up": mean_pool(3, 2, ceil_mode=True),
    "mean pool of 5": mean_pool(5, 1, 2), "mean pool of 5 by 5": mean_pool(5), "max pool of 2": max_pool(2), "max pool of 3 by 2": max_pool(3, 2, 1),
    "max pool of 3 by 2, up": max_pool(3, 2, ceil_mode=True), "max pool of 5": max_pool(5, 1, 2),
    "adaptive mean to 1": lambda x: x.mean(2, keepdims=True), "adaptive max to 1": lambda x: x.max(2, keepdims=True),
    "adaptive mean to 6": adaptive(6, jnp.mean), "adaptive max to 4": adaptive(4, jnp.max),
    "unfold": lambda x: jnp.stack([x[:, :, i:x.shape[2] - 2 + i] for i in range(3)], 3),
    "nearest, twice as long": (lambda x: jnp.repeat(x, 2, 2), resize("nearest", 2)), "nearest, to 23": (lookup(23), resize("nearest", size=23)),
    "nearest, half as long": (lambda x: x[:, :, :2 * (x.shape[2] // 2):2], lambda x: lookup(x.shape[2] // 2)(x)),
    "linear, twice as long": (*TWICE, resize("linear", 2)), "linear, to 9, corners": corners, "area, to 6": adaptive(6, jnp.mean),
    "zeros": pad("constant", 2, 1), "reflected": pad("reflect", 2, 1), "replicated": pad("edge", 2, 1), "circular": pad("wrap", 2, 1),
    "circular convolution": (around, lambda x, w: conv()(pad("wrap", 1, 1)(x), w)),
    "roll": lambda x: jnp.roll(x, 2, 2), "flip": lambda x: jnp.flip(x, 2), "differences": lambda x: x[:, :, 1:] - x[:, :, :-1],
    "central differences": lambda x: (x[:, :, 2:] - x[:, :, :-2]) / 2, "cumulative sum": lambda x: x.cumsum(2),
    "mean": lambda x: x.mean(2), "variance": lambda x: x.var(2, ddof=1), "layer norm": standard(lambda y: (1, 2)), "group norm": GROUP,
    "instance norm": INSTANCE, "batch norm": BATCH, "batch norm with weights": BATCH, "softmax": lambda x: jax.nn.softmax(x, 2),
    "low frequencies": low_frequencies,
    "image, convolution of 3 x 3": CONV_3, "image, convolution of 5 x 3, stride 2": conv((2, 1), 2), "image, transposed, of 4 x 4 by 2": UP,
    "image, max pool of 3 by 2": max_pool(3, 2, 1), "image, bilinear, twice as large": (*TWICE, resize("linear", 2)),
    "image, bicubic, twice as large": (cubic(by_slices), cubic(by_pads), resize("cubic", 2)), "image, unfold and fold": (shifted_patches, unfold_and_fold),
    "image, laplacian": (laplacian, laplacian_of_padded), "image, instance norm": INSTANCE,
    "image, spectral product of rows": lambda x, w: jnp.fft.ifft(jnp.fft.fft(x, axis=2) * jnp.fft.fft(w), axis=2).real,
    "image, columns, convolution of 3 x 3": CONV_3, "image, columns, convolution of 3 x 5": conv((1, 2)),
    "volume, convolution of 3 x 3 x 3": CONV_3,
    "corners, convolution of 3 x 3": CONV_3, "corners, transposed, of 4 x 4 by 2": UP, "corners, mean pool of 3 by 2": mean_pool(3, 2, 1),
    "corners, max pool of 3 by 2": max_pool(3, 2, 1), "corners, bilinear, twice as large": (*TWICE, resize("linear", 2)),
    "corners, reflected": pad("reflect", 1, 1, 1, 1), "corners, laplacian": (laplacian, laplacian_of_padded), "corners, group norm": GROUP,
    "data x domain, convolution of 3 x 3": CONV_3, "data x domain, max pool of 3 by 2": max_pool(3, 2, 1), "data x domain, batch norm": BATCH,
}
