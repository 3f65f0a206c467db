"""Puts the course's changes into Triton's interpreter, once, and says which of them could not be made.

The hooks are private and have moved between releases. A hook that is gone costs one truth, not the course: it is
named by :func:`losses`, and ``course doctor`` shows it.
"""

from __future__ import annotations

_losses: list[str] | None = None


def install() -> None:
    """Patch the interpreter of the Triton in this process. Safe to call again."""
    global _losses
    if _losses is not None:
        return
    from course_lib.interpreter import hooks, language, lock, numerics, numpy_versions, reductions, schedule, timing

    _losses = []
    for what, patch in (
        ("fp32 to bf16 is truncated instead of rounded to nearest even", numerics.round_bf16_to_nearest),
        ("bf16 arithmetic works on bit patterns: convert to fp32 right after the load", numerics.compute_bf16_by_value),
        ("tl.maximum and tl.minimum pass a NaN on, where a GPU returns the number", numerics.prefer_numbers_to_nan),
        ("half-precision sums are exact, and custom reductions take 0.2 s a program", reductions.reduce_as_a_tree),
        ("triton.autotune and do_bench fail without a GPU", timing.use_the_hosts_clock),
        ("an access outside a tensor is not noticed before it happens", hooks.patch),
        ("loops over a runtime bound raise with NumPy 2.5 and newer", numpy_versions.let_one_element_be_an_index),
        ("kernels whose programs wait for one another hang", schedule.interleave_waiting_programs),
        ("kernels that call jitted helpers take half as long again", language.patch_language_once),
        ("a widget moved while a cell runs a kernel can break that cell", lock.serialise_launches),
    ):
        try:
            patch()
        except (AttributeError, ImportError) as moved:
            _losses.append(f"{what} (Triton changed: {moved})")


def losses() -> list[str]:
    """What this Triton's interpreter keeps getting wrong because a hook moved; empty when all is well."""
    return list(_losses or ())
