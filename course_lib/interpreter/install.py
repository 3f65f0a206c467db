"""Apply the course's changes to Triton's interpreter, once, and record those that cannot be made.

The patched functions are private and have changed between releases. If one is missing, the course
works without that change: :func:`losses` names it, and ``course doctor`` shows it.
"""

from __future__ import annotations

_losses: list[str] | None = None


def install() -> None:
    """Patch the interpreter of the Triton in this process. Another call does nothing."""
    global _losses
    if _losses is not None:
        return
    from course_lib.interpreter import (
        arguments,
        casts,
        hints,
        hooks,
        language,
        libdevice,
        lock,
        meaning,
        missing,
        numerics,
        numpy_versions,
        operations,
        reductions,
        rewriting,
        schedule,
        shared_types,
        timing,
        undefined,
    )

    _losses = []
    for loss, patch in (
        # This comes first: the other changes use the functions that it replaces.
        ("a kernel takes twice as long", shared_types.share_types),
        (
            (
                "loops, conditions, `and`, `or` and `not` mean what Python means, not what Triton"
                " means"
            ),
            rewriting.rewrite_kernels,
        ),
        (
            "a shape or a global constant on the left of a block makes no block",
            meaning.let_constexprs_meet_tensors,
        ),
        (
            "a function of constants is given tuples of Python's, and values of a running kernel",
            meaning.calculate_with_constants,
        ),
        ("a float argument has no type", arguments.type_numbers),
        (
            (
                "fp32 to bf16 is truncated instead of rounded to nearest even, and other casts"
                " give NaN"
            ),
            casts.cast_as_a_gpu,
        ),
        (
            "bf16 arithmetic works on bit patterns: convert to fp32 right after the load",
            numerics.compute_bf16_by_value,
        ),
        (
            "tl.maximum and tl.minimum pass a NaN on, where a GPU returns the number",
            numerics.prefer_numbers_to_nan,
        ),
        (
            "division by zero, tl.fma, tl.clamp, tl.dot and others give NumPy's values",
            operations.compute_as_compiled,
        ),
        ("a promise of tl.multiple_of that is not kept is not noticed", hints.check_hints),
        ("libdevice's functions give None", libdevice.compute_libdevice),
        (
            "an operation that the interpreter has not fails without a word of why",
            missing.say_what_is_missing,
        ),
        (
            "masked lanes without a value hold 0, where a GPU leaves them undefined",
            undefined.leave_undefined,
        ),
        (
            "half-precision sums are exact, and custom reductions take 0.2 s a program",
            reductions.reduce_as_a_tree,
        ),
        ("triton.autotune and do_bench fail without a GPU", timing.use_the_hosts_clock),
        ("an access outside a tensor is not noticed before it happens", hooks.patch),
        (
            "loops over a runtime bound raise with NumPy 2.5 and newer",
            numpy_versions.let_one_element_be_an_index,
        ),
        ("kernels whose programs wait for one another hang", schedule.interleave_waiting_programs),
        ("kernels that call jitted helpers take half as long again", language.patch_language_once),
        ("a widget moved while a cell runs a kernel can break that cell", lock.serialise_launches),
    ):
        try:
            patch()
        except (AttributeError, ImportError) as moved:
            _losses.append(f"{loss} (Triton changed: {moved})")


def losses() -> list[str]:
    """Return what this Triton's interpreter still does wrong because a change could not be made;
    empty if all were made."""
    return list(_losses or ())
