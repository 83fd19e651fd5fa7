# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All families of random calls."""
import attention_cases
import elementwise_cases
import fourier_cases
import grouped_cases
import image_cases
import neighborhood_cases
import pytorch_cases
import scatter_cases

FAMILIES = (pytorch_cases.FAMILIES + elementwise_cases.FAMILIES + image_cases.FAMILIES + scatter_cases.FAMILIES
            + attention_cases.FAMILIES + fourier_cases.FAMILIES + grouped_cases.FAMILIES + neighborhood_cases.FAMILIES)
