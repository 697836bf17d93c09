"""A matrix product with its operands, at each precision the matmul probe knows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cluster import RankContext

if TYPE_CHECKING:
    import torch


class UnsupportedError(Exception):
    """This device cannot multiply at this precision; the message says why in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """out (m, n) = A (m, k) x B (k, n). `run` issues it on the device and returns `out`."""

    dtype: str
    shape: tuple[int, int, int]
    out: torch.Tensor
    run: Callable[[], torch.Tensor]


def make_product(context: RankContext, dtype: str, shape: tuple[int, int, int], seed: int) -> Product:
    """Normally distributed operands on the rank's device, the same on each rank. Raises UnsupportedError."""
    import torch

    why = refusal(context, dtype)
    if why:
        raise UnsupportedError(why)
    m, n, k = shape
    generator = torch.Generator(device=context.device).manual_seed(seed)
    a = torch.randn(m, k, device=context.device, generator=generator)
    b = torch.randn(n, k, device=context.device, generator=generator)
    if dtype == "fp8":
        return _fp8_product(context, shape, a, b)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
    left, right = a.to(kind), b.to(kind).t()
    out = torch.empty(m, n, dtype=kind, device=context.device)
    return Product(dtype=dtype, shape=shape, out=out, run=lambda: torch.mm(left, right, out=out))


def _fp8_product(context: RankContext, shape: tuple[int, int, int], a: torch.Tensor, b: torch.Tensor) -> Product:
    """8-bit operands with a 4-bit exponent and scale 1, bf16 result, by the only call torch has for it."""
    import torch

    kind = torch.float8_e4m3fnuz if _is_mi300(context) else torch.float8_e4m3fn
    left, right = a.to(kind), b.to(kind).t()
    one = torch.ones((), device=context.device)
    out = torch.empty(shape[0], shape[1], dtype=torch.bfloat16, device=context.device)

    def run() -> torch.Tensor:
        torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, out=out)
        return out

    return Product(dtype="fp8", shape=shape, out=out, run=run)


def refusal(context: RankContext, dtype: str) -> str | None:
    """Why this device has no such product, or None. A dtype that would be emulated is refused."""
    if not context.on_cuda:
        return f"{dtype} needs an accelerator" if dtype in ("tf32", "fp8") else None
    import torch

    if torch.version.hip:
        has_fp8 = _gfx(context).startswith(("gfx94", "gfx95", "gfx12"))
        return None if dtype != "fp8" or has_fp8 else f"{_gfx(context)} has no fp8"
    have = torch.cuda.get_device_capability(context.device)
    need = {"bf16": (8, 0), "tf32": (8, 0), "fp16": (7, 0), "fp8": (8, 9)}.get(dtype, (0, 0))
    return (
        None if have >= need else f"{dtype} needs compute capability {need[0]}.{need[1]}, this is {have[0]}.{have[1]}"
    )


def _is_mi300(context: RankContext) -> bool:
    import torch

    return bool(context.on_cuda and torch.version.hip) and _gfx(context).startswith("gfx94")


def _gfx(context: RankContext) -> str:
    import torch

    return str(getattr(torch.cuda.get_device_properties(context.device), "gcnArchName", "unknown"))


@contextlib.contextmanager
def float32_precision(dtype: str) -> Iterator[None]:
    """Within: fp32 products in full precision, or through TF32 where that is what is measured."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def different_bits(one: torch.Tensor, other: torch.Tensor) -> int:
    """Elements that differ in any bit: unlike ==, this sees NaN and the sign of zero."""
    import torch

    as_integers = torch.int32 if one.element_size() == 4 else torch.int16
    return int((one.view(as_integers) != other.view(as_integers)).sum())


def nonfinite(tensor: torch.Tensor) -> int:
    """NaN or infinite elements."""
    return int((~tensor.isfinite()).sum())
