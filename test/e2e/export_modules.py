# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Importing this imports what an export imports only when it runs, which is more than a thousand modules: scripts that are forked afterwards find
them there. It exports a module without random numbers, so that these are as in a new process."""
import io

import torch
import torch._decomp.decompositions  # noqa: F401
import torch.export
import tqdm

tqdm.tqdm.monitor_interval = 0  # no thread that watches progress bars: processes are forked from this one


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        return torch.relu(torch.nn.functional.linear(x, self.weight)).sum(0)


program = torch.export.export(Small(), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
torch.export.save(program.run_decompositions(), io.BytesIO())
