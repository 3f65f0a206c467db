"""What the grader promises: every cause is one that some test sees, every known bug has its
mutants, every right way a variant."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from course_lib import catalog
from course_lib.catalog import mutants
from course_lib.exercises import find_parts
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.plans import make_plans
from course_lib.launching.faults import FaultKind, Group

HERE = Path(__file__).parent.parent
VARIANTS = {
    f"ex{exercise.id}_{file.stem}"
    for exercise in catalog.exercises().values()
    for file in exercise.list_right_ways()
}
EVERY = {f"{exercise.id}/{entry['id']}": entry for exercise, entry in mutants.list_mutants()}
# causes that no wrong solution has by itself, and the test that hands in what has them
ELSEWHERE = {
    "crash": "grading/test_bad_input.py::test_a_crash_ends_the_child_and_not_the_course",
    "below_the_floor": (
        "grading/test_timed_launches.py::test_too_slow_on_a_gpu_is_a_fail_with_the_time"
    ),
    "not_in_the_sandbox": (
        "grading/test_functions.py::test_what_the_system_refuses_is_told_as_what_it_is"
    ),
    "output_flood": "grading/test_bad_input.py::test_a_kernel_that_prints_without_end_is_cut_short",
}

# each bug, and the mutants that have it: one for each exercise in which it can live
BUGS = {
    "padded lanes in the variance": (
        "05a/unmasked_variance 07a/unmasked_variance 08a/unmasked_variance"
    ),
    "padded lanes in c1": "11a/c2_taken_out_before_c1 11a/padded_lanes_loaded_as_1",
    "padded lanes counted": "05b/padding_counted 05b/padding_is_an_element",
    "wrong `other`": (
        """06a/other_is_one 05a/other_is_one 07a/other_is_one 08a/other_is_one 02b/other_is_one 09a/other_is_one
        11a/padded_lanes_loaded_as_1 11b/other_is_one 13a/other_is_one 13b/other_is_one 16a/lanes_left_to_chance"""  # noqa: E501
    ),
    "no load mask": (
        """00a/no_load_mask 06a/no_mask 05a/no_load_mask 05b/no_load_mask 07a/no_load_mask 07a/no_load_mask_for_w
        08a/no_row_mask_at_the_load 02b/no_load_mask 09a/no_load_mask 11a/no_column_mask_at_the_load 11b/no_load_mask
        12a/rows_for_buffers 13a/no_load_mask 13b/no_load_mask 16a/no_load_mask"""  # noqa: E501
    ),
    "no store mask": (
        """00a/no_store_mask 07a/no_store_mask 08a/columns_past_N_stored 02b/no_store_mask 09a/no_store_mask
        11a/no_store_mask 11b/no_store_mask 12a/no_column_mask 13a/stored_without_a_mask 13b/stored_without_a_mask"""  # noqa: E501
    ),
    "no row mask": (
        """08a/rows_past_M_stored 08a/statistics_past_M_stored 08a/no_row_mask_at_the_load 11a/rows_past_M
        13a/row_M_and_after 13a/the_next_chunks_rows_too 13a/stage_two_without_a_row_mask 13b/rows_past_M"""  # noqa: E501
    ),
    "divided by BLOCK": (
        """05a/mean_of_all_lanes 05a/variance_divided_by_block 05b/divided_by_block 07a/divide_by_all_lanes
        07a/variance_divided_by_block 08a/divide_by_block 02b/divide_by_block 09a/divide_by_block 11a/c2_divided_by_block
        11b/c1_divided_by_block 16a/divided_by_block"""  # noqa: E501
    ),
    "only N <= BLOCK": (
        "00a/one_program_only 06a/first_block_only 05a/first_block_only 05b/first_block_only"
        " 07a/first_block_only"
    ),
    "eps outside the root": (
        """01a/eps_outside_the_root 02a/eps_outside_the_root 07a/eps_outside_the_root 08a/eps_outside_the_root
        02b/eps_outside_the_root 09a/eps_outside_the_root 16a/eps_outside_the_root"""  # noqa: E501
    ),
    "eps missing": "01a/no_eps 02a/no_eps 07a/no_eps 08a/no_eps 02b/no_eps 09a/no_eps 16a/no_eps",
    "eps hard-coded": (
        """01a/eps_1e-5 02a/eps_1e-6 07a/eps_1e-5 08a/eps_1e-5 02b/eps_1e-6 09a/eps_1e-6 14a/eps_hard_coded
        14a/statistics_anew_with_a_fixed_eps 16a/eps_1e-5"""  # noqa: E501
    ),
    "unbiased variance": (
        """01a/unbiased_variance 01a/std_as_it_comes 02a/divided_by_N_minus_1 10a/divided_by_N_minus_1
        03a/two_pass_unbiased 03a/one_pass_unbiased 04a/unbiased 05a/unbiased 05b/unbiased 07a/unbiased 08a/unbiased 16a/unbiased"""  # noqa: E501
    ),
    "1/N forgotten in the variance": (
        """01a/variance_not_divided 02a/not_divided 03a/sum_for_mean_of_squares 04a/M2_returned
        05a/variance_not_divided 05b/M2_saved 07a/variance_not_divided 08a/variance_not_divided 02b/not_divided 09a/not_divided 16a/M2_for_variance"""  # noqa: E501
    ),
    "1/N forgotten in c1 or c2": (
        """10a/c1_not_divided 10a/neither_divided 10b/c1_not_divided 11a/c1_not_divided 11a/c2_not_divided
        11a/neither_divided 11b/c1_not_divided"""  # noqa: E501
    ),
    "one pass": (
        """01a/one_pass 03a/two_pass_that_is_one_pass 04a/sums_of_squares_in_disguise 04b/by_raw_sums_of_squares 05a/one_pass
        05b/one_pass 07a/one_pass 08a/one_pass 16a/raw_squares"""  # noqa: E501
    ),
    "accumulator in half precision": (
        """01a/half_precision 02a/squares_in_half_precision 10a/half_precision 10b/half_precision
        10c/half_precision_rows 03a/mean_of_half_precision 04a/state_in_half_precision 06a/accumulators_in_fp16 05a/half_precision_sum
        05b/half_precision_lanes 07a/half_precision_sum 08a/half_precision_squares 02b/squares_in_half_precision
        09a/squares_in_half_precision 11a/products_in_half_precision 11b/products_in_half_precision"""  # noqa: E501
    ),
    "32-bit row offset": (
        """06a/row_in_32_bits 05a/row_in_32_bits 05b/row_in_32_bits 07a/row_in_32_bits 08a/row_in_32_bits
        02b/row_in_32_bits 09a/row_in_32_bits 11a/row_in_32_bits 11b/row_in_32_bits 12a/row_in_32_bits 13a/row_in_32_bits
        13b/row_in_32_bits"""  # noqa: E501
    ),
    "stride taken for N, or for another's": (
        """06a/stride_taken_for_N 05a/stride_taken_for_N 05b/stride_taken_for_N
        07a/stride_taken_for_N 08a/stride_taken_for_N 02b/stride_taken_for_N 09a/stride_taken_for_N 07a/one_stride_for_both
        08a/one_stride_for_both 09a/one_stride_for_all 11a/xs_stride_ignored 11a/dx_by_the_stride_of_x 11b/xs_stride_ignored
        13b/dx_by_the_stride_of_x 14a/strides_of_x_ignored 16a/stride_taken_for_the_chunks"""  # noqa: E501
    ),
    "dy's stride ignored": (
        """11a/dys_row_stride_ignored 11b/one_stride_for_all 13a/one_stride_for_both 13b/dys_row_stride_ignored
        14a/strides_of_dy_ignored"""  # noqa: E501
    ),
    "dy's column stride ignored": (
        """11a/dys_column_stride_ignored 11b/dys_column_stride_ignored 12a/dys_column_stride_ignored
        13a/dys_column_stride_ignored 13b/dys_column_stride_ignored"""
    ),
    "no lock": (
        """12a/no_lock 12a/taken_but_not_waited_for 12a/lock_taken_by_load_and_store 13a/every_chunk_into_row_0
        13b/everybody_into_row_0"""  # noqa: E501
    ),
    "lock released early": (
        "12a/released_before_the_stores 12a/released_between_the_stores"
        " 12a/flag_set_after_the_release"
    ),
    "lock never released": "12a/never_released 12a/lock_taken_twice",
    "lock with the wrong index": "12a/another_lock_released 12a/a_lock_for_every_row",
    "no barrier before the release": (
        """12a/no_barrier 12a/barrier_after_the_release 12a/barrier_between_the_stores
        12a/barrier_before_the_stores 12a/barrier_for_the_first_row_only 12a/barrier_for_later_rows_only
        12a/barrier_only_while_waiting 12a/flag_by_an_atomic_for_a_barrier"""  # noqa: E501
    ),
    "uninitialised partials": (
        """12a/everybody_adds 12a/flag_the_wrong_way_round 12a/all_buffers_summed 12a/missing_buffers_times_zero
        13a/added_up_by_atomics_in_row_0 13b/idle_programs_store_nothing"""  # noqa: E501
    ),
    "last writer wins": (
        "10a/dw_is_the_last_row 10b/dw_is_the_last_row 10c/last_row_wins 12a/last_writer_wins"
    ),
    "the order decides the bits": (
        "13a/cleared_and_added_up_by_atomics 13b/cleared_and_added_up_by_atomics"
    ),
    "partials in half precision": (
        """10a/rows_added_in_half_precision 12a/buffers_in_half_precision 12a/summed_in_half_precision
        13a/sums_in_half_precision 13a/partials_rounded_to_half 13a/stage_two_in_half_precision 13b/sums_in_half_precision"""  # noqa: E501
    ),
    "wrong output dtype": (
        """01a/returned_in_fp32 01a/in_the_dtype_of_w 02a/returned_in_fp32 10b/returned_in_fp32
        03a/dtype_of_x_returned 04a/fp64_state_returned 04b/fp64_returned 06a/sum_rounded_to_the_dtype_of_x"""  # noqa: E501
    ),
    "wrong gradient dtype": "10a/all_in_the_dtype_of_x 14a/dtype_of_x 14a/dtype_of_dy_for_dw",
    "w ignored": (
        "01a/w_forgotten 02a/w_forgotten 07a/w_forgotten 08a/w_forgotten 02b/w_forgotten"
        " 09a/w_forgotten"
    ),
    "b ignored": "01a/b_forgotten 07a/b_forgotten 08a/b_forgotten 14a/b_left_out",
    "w forgotten in dx": (
        "10a/w_forgotten 10b/w_forgotten 11a/w_forgotten 11b/w_forgotten 14a/w_left_out_of_dx"
    ),
    "w applied twice": (
        "02a/w_squared 10a/w_again 10a/w_twice_in_dx 10b/w_again 07a/w_applied_twice 11a/w_twice"
        " 11b/w_twice"
    ),
    "rstd not saved": (
        """05a/statistics_forgotten 05b/statistics_forgotten 07a/statistics_forgotten 08a/statistics_forgotten
        02b/rstd_not_saved 09a/rstd_not_saved 14a/statistics_not_saved 16a/nothing_saved"""  # noqa: E501
    ),
    "something else saved for rstd": (
        "07a/standard_deviation_saved 08a/variance_saved 02b/rms_saved 16a/standard_deviation_saved"
        " 16a/variance_saved"
    ),
    "an input written to": (
        """00a/written_into_x 01a/x_overwritten 10a/x_overwritten 03a/x_changed 04a/mean_changed_in_place
        07a/stored_over_x 08a/stored_over_x 02b/stored_over_x 09a/total_written_over_x 11a/stored_over_dy 11b/stored_over_x
        12a/stored_over_dy 13b/stored_over_dy 14a/dx_written_over_dy 14a/x_overwritten"""  # noqa: E501
    ),
    "grid capped": "00a/one_program_only 13b/one_tile_a_program",
    "M = 0": "12a/at_least_one_buffer",
    "NaN swallowed": (
        """06a/nan_swallowed 05a/nan_swallowed 05b/nan_swallowed 07a/nan_swallowed 08a/nan_swallowed 02b/nan_swallowed
        09a/nan_swallowed 11a/nan_swallowed 11b/nan_swallowed 13a/nan_swallowed 13b/nan_swallowed 16a/nan_swallowed"""  # noqa: E501
    ),
    "NaN leaked": (
        "11a/c1_over_the_whole_tile 12a/missing_buffers_times_zero 13a/rows_of_others_times_zero"
    ),
    "sum(g) dropped": "10a/no_c2 11a/c2_dropped",
    "sum(g * xhat) dropped": "10a/no_c1 10b/no_projection 11a/c1_dropped 11b/c1_dropped",
    "rows counted as x.shape[0]": "01a/rows_are_shape_0 02a/rows_are_shape_0",
    "rows or partials counted by floor": (
        """06a/full_blocks_only 12a/one_buffer_too_few 13a/steps_by_floor 13a/stage_two_by_floor
        13b/tiles_by_floor 16a/chunks_by_floor"""
    ),
    "grad_output ignored": (
        """10a/dy_ignored 10b/dy_ignored 11a/dy_never_read 11b/dy_never_read 12a/dy_ignored 13a/dy_ignored
        13b/dy_ignored 14a/dy_ignored"""  # noqa: E501
    ),
    "zeros returned": (
        "06a/zeros 07a/zeros 08a/zeros 02b/zeros 11a/zeros 11b/zeros 13a/zeros_from_stage_two"
    ),
    "read more often than asked": (
        """05a/a_third_sweep 05b/two_sweeps 05b/block_loaded_twice 07a/x_loaded_again_for_y
        08a/tile_loaded_again 02b/row_loaded_again 09a/total_read_back 09a/residual_loaded_twice 13b/x_loaded_again
        13b/dy_loaded_again"""  # noqa: E501
    ),
}

# each way to be right that must pass, and variants that go it
RIGHT = {
    "shifted one-pass": (
        "ex05a_shifted_one_pass ex07a_shifted_one_pass ex07b_shifted_by_the_first_block"
        " ex08a_shifted_one_pass"
    ),
    "Chan merge over blocks": "ex05b_blocks_merged ex07a_welford_blocks",
    "Welford per lane": "ex05b_count_from_number",
    "sequential and tree sums": ("ex10a_double_loop ex03a_column_by_column ex13a_row_by_row"),
    "a tile of one row": "ex11b_tile_of_one ex02b_fp64_inside",
    "atomic_add into fp32 where the order is free": "ex12a_atomics_after_the_first",
    "fp64 inside": (
        """ex01a_double ex02a_in_double ex03a_in_double ex06a_fp64_inside ex08a_fp64_inside ex02b_fp64_inside
        ex11a_c2_first_in_fp64"""  # noqa: E501
    ),
    "w applied before or after rstd": "ex02b_scaled_weight ex08a_shifted_one_pass",
    "recomputed statistics": "ex14a_recomputed",
    "another release": "ex12a_flag_last ex12a_ticket_by_exchange",
}


def test_every_cause_is_seen_by_a_test():
    expected = {
        entry[key] for entry in EVERY.values() for key in ("cause", "cause_cpu") if key in entry
    }
    assert CAUSES.keys() - expected == ELSEWHERE.keys()
    for cause, place in ELSEWHERE.items():
        file, _, test = place.partition("::")
        text = (HERE / file).read_text(encoding="utf-8")
        body = text[text.index(f"def {test}(") :].partition("\n\n\n")[0]
        assert f'"{cause}"' in body, f"{place} does not expect {cause}"


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_every_cause_that_a_family_names_has_its_words(exercise):
    for part in find_parts(exercise).values():
        named = {cause for cause, _ in (*part.models(), *part.traits, *part.rare)} | set(
            part.unwritten.values()
        )
        assert named <= CAUSES.keys(), (
            f"course_lib/grading/judging/causes.py has no words for {sorted(named - CAUSES.keys())}"
        )


OF_KERNELS = re.compile(r"tl\.|\bprogram\b|\blanes?\b|\bpointer\b|\bstore\b|\bkernel\b")
OF_ANY_RUN = {
    "bad_row_swallowed", "bad_row_spreads", "bad_row_inside", "low_precision", "cancellation",
    "gradients_misreturned", "stride_ignored", "input_changed", "not_written", "partly_written",
    "right_only_once", "wrong_values", "function_raised", "time_limit", "output_flood", "crash",
}  # fmt: skip


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_functions_are_asked_nothing_of_kernels(exercise):
    # a test is about the kernel that it gets, 15a counts what kernels load, and 15b launches one
    if exercise.kind in ("kernel", "tests") or exercise.id in ("15a", "15b"):
        return
    for part in find_parts(exercise).values():
        for cause in {
            cause for cause, _ in (*part.models(), *part.traits, *part.rare)
        } | OF_ANY_RUN:
            for words in CAUSES[cause].word_for(exercise.kind):
                assert not OF_KERNELS.search(words), f"{cause}: {words}"


OF_04B = re.compile(r"\b(n|mean|M2)_[ab]\b|\bsides?\b|\b[ab] is\b")


def test_16a_is_asked_in_the_words_of_its_own_page():
    """In 04b two sides meet, a and b; in 16a chunks do."""
    exercise = catalog.get("16a")
    for cause in {entry["cause"] for entry in mutants.read_mutants(exercise)}:
        for words in CAUSES[cause].word_for(exercise.kind):
            assert not OF_04B.search(words), f"{cause}: {words}"


OF_LAYER_NORM = re.compile(
    r"\bvar(iance)?\b|\bdeviations?\b|\bc2\b|\bmean and rstd\b|\bx - mean\b|\bb\b|\bdb\b"
)


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_rms_norm_is_told_of_no_mean_and_no_variance(exercise):
    if not all("rms_norm" in name for name in exercise.entry_points):
        return
    for part in find_parts(exercise).values():
        plan = make_plans(exercise)[0]
        with np.errstate(all="ignore"):
            named = {
                cause for cause, model in part.models() if model(plan).keys() & plan.expected.keys()
            } | {cause for cause, _ in (*part.traits, *part.rare)}
        for cause in named | OF_ANY_RUN - {"cancellation"}:
            for words in CAUSES[cause].word_for(exercise.kind, exercise.entry_points):
                assert not OF_LAYER_NORM.search(words), f"{cause}: {words}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dw is off", "dw is off."),
        ("mean is read 2 times", "mean is read 2 times."),
        ("w and b have changed places", "w and b have changed places."),
        ("the divisor", "The divisor."),
        ("dw_partial[0, 1] is nan", "dw_partial[0, 1] is nan."),
    ],
)
def test_a_sentence_leaves_the_names_of_the_code_as_they_are(text, sentence):
    assert make_sentence(text) == sentence


@pytest.mark.parametrize("bug", BUGS)
def test_every_known_bug_has_its_mutants(bug):
    named = BUGS[bug].split()
    assert named and len(named) == len(set(named)) and set(named) <= EVERY.keys(), (
        set(named) - EVERY.keys()
    )


@pytest.mark.parametrize("way", RIGHT)
def test_every_known_right_way_has_its_variants(way):
    assert set(RIGHT[way].split()) <= VARIANTS


def test_every_kind_of_fault_has_a_cause_that_has_words():
    named = {kind.cause for kind in FaultKind if kind.group not in (Group.OUTSIDE, Group.REFUSED)}
    assert "" not in named, (
        "course_lib/launching/faults.py: a FaultKind of this group needs a cause"
    )
    without = ", ".join(sorted(named - CAUSES.keys()))
    assert not without, (
        f"course_lib/grading/judging/causes.py has no words for {without}, which a FaultKind in"
        " course_lib/launching/faults.py names"
    )
