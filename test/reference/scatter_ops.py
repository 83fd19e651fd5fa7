# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`aten` ops that write at positions, and that sort (see aten_ops.py). A rank that holds nothing adds nothing."""
import torch

from aten_ops import aten


@aten("scatter_add", "self", "index", "src")
def scatter_add(o, a, t):
    if o["self"].numel() == 0:
        return o["self"].clone()
    return torch.scatter_add(o["self"], a["dim"], o["index"], o["src"])


@aten("index_put", "self", "*indices", "values")
def index_put(o, a, t):
    if o["self"].numel() == 0:
        return o["self"].clone()
    at = dict(zip(a["indices_at"], o["indices"]))
    return torch.ops.aten.index_put(o["self"], [at.get(d) for d in range(o["self"].dim())], o["values"], True)


def places_of(self, dims):
    """The number of each element of `self`. Behind the last position of each of `dims` is the number of none."""
    places = torch.arange(self.numel()).reshape(self.shape)
    widths = [w for d in reversed(range(self.dim())) for w in (0, int(d in dims))]
    return torch.nn.functional.pad(places, widths, value=self.numel())


def combine(self, places, values, how):
    """In row-major order of the places."""
    flat = torch.cat([self.flatten(), self.new_zeros(1)])
    places, values = places.flatten(), values.flatten()
    if how == "assign":
        last = torch.full(flat.shape, -1).scatter_reduce(0, places, torch.arange(len(places)), "amax")
        flat = torch.where(last >= 0, torch.cat([values, self.new_zeros(1)])[last], flat)
    else:
        flat = flat.scatter_reduce(0, places, values, how)
    return flat[:-1].reshape(self.shape)


@aten("scatter", "self", "index", "src")
def scatter(o, a, t):
    index = o["index"].long()
    places = places_of(o["self"], [a["dim"]]).gather(a["dim"], index)
    return combine(o["self"], places, o["src"][tuple(map(slice, index.shape))], a["reduce"])


@aten("index_write", "self", "*indices", "values")
def index_write(o, a, t):
    at = dict(zip(a["indices_at"], o["indices"]))
    size = o["self"].shape
    # Negative positions count from the end of self, behind which there is the place of none.
    indices = [torch.where(at[d] < 0, at[d] + size[d], at[d]).long() if d in at else None for d in range(len(size))]
    places = torch.ops.aten.index(places_of(o["self"], list(at)), indices)
    return combine(o["self"], places, o["values"].expand(places.shape), "assign")


for _name in ("cummax", "cummin", "logcumsumexp", "cumprod"):
    def _scan(o, a, t, function=getattr(torch, _name)):
        if o["self"].numel() == 0:
            return torch.empty_like(o["self"], dtype=t[0].dtype)
        result = function(o["self"], a["dim"], **({"dtype": t[0].dtype} if function is torch.cumprod else {}))
        return result if isinstance(result, torch.Tensor) else result[0]
    aten(_name, "self")(_scan)


@aten("sort", "self")
def sort(o, a, t):
    values, indices = torch.sort(o["self"], dim=a["dim"], descending="descending" in a, stable=True)
    count = a.get("count", o["self"].shape[a["dim"]])
    return [values.narrow(a["dim"], 0, count), indices.narrow(a["dim"], 0, count)]
