"""What the grader promises: every cause is one that some test sees, every known bug has its mutants, every right way a variant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course_lib import catalog
from course_lib.authoring import mutants
from course_lib.grading.families import find_parts
from course_lib.grading.judging.causes import CAUSES, make_sentence

HERE = Path(__file__).parent.parent
EVERY = {f"{exercise.id}/{entry['id']}": entry for exercise, entry in mutants.list_mutants()}
# causes that no wrong solution has by itself, and the test that hands in what has them
ELSEWHERE = {
    "crash": "grading/test_bad_input.py::test_a_crash_ends_the_child_and_not_the_course",
    "output_flood": "grading/test_bad_input.py::test_a_kernel_that_prints_without_end_is_cut_short",
}

# each bug, and the mutants that have it: one for each exercise in which it can live
BUGS = {
    "padded lanes in the variance": "05a/unmasked_variance 06a/unmasked_variance 06b/unmasked_variance",
    "padded lanes in c1": "08a/c2_taken_out_before_c1 08a/padded_lanes_loaded_as_1",
    "padded lanes counted": "05b/padding_counted 05b/padding_is_an_element",
    "wrong `other`": """04a/other_is_one 05a/other_is_one 06a/other_is_one 06b/other_is_one 07a/other_is_one 07b/other_is_one
        08a/padded_lanes_loaded_as_1 08b/other_is_one 09b/other_is_one 09c/other_is_one""",
    "no load mask": """00a/no_load_mask 04a/no_mask 05a/no_load_mask 05b/no_load_mask 06a/no_load_mask 06a/no_load_mask_for_w
        06b/no_row_mask_at_the_load 07a/no_load_mask 07b/no_load_mask 08a/no_column_mask_at_the_load 08b/no_load_mask
        09a/rows_for_buffers 09b/no_load_mask 09c/no_load_mask""",
    "no store mask": """00a/no_store_mask 06a/no_store_mask 06b/columns_past_N_stored 07a/no_store_mask 07b/no_store_mask
        08a/no_store_mask 08b/no_store_mask 09a/no_column_mask 09b/stored_without_a_mask 09c/stored_without_a_mask""",
    "no row mask": """06b/rows_past_M_stored 06b/statistics_past_M_stored 06b/no_row_mask_at_the_load 08a/rows_past_M
        09b/row_M_and_after 09b/the_next_chunks_rows_too 09b/stage_two_without_a_row_mask 09c/rows_past_M""",
    "divided by BLOCK": """05a/mean_of_all_lanes 05a/variance_divided_by_block 05b/divided_by_block 06a/divide_by_all_lanes
        06a/variance_divided_by_block 06b/divide_by_block 07a/divide_by_block 07b/divide_by_block 08a/c2_divided_by_block
        08b/c1_divided_by_block""",
    "only N <= BLOCK": "00a/one_program_only 04a/first_block_only 05a/first_block_only 05b/first_block_only 06a/first_block_only",
    "eps outside the root": """01a/eps_outside_the_root 01b/eps_outside_the_root 06a/eps_outside_the_root 06b/eps_outside_the_root
        07a/eps_outside_the_root 07b/eps_outside_the_root""",
    "eps missing": "01a/no_eps 01b/no_eps 06a/no_eps 06b/no_eps 07a/no_eps 07b/no_eps",
    "eps hard-coded": """01a/eps_1e-5 01b/eps_1e-6 06a/eps_1e-5 06b/eps_1e-5 07a/eps_1e-6 07b/eps_1e-6 10a/eps_hard_coded
        10a/statistics_anew_with_a_fixed_eps""",
    "unbiased variance": """01a/unbiased_variance 01a/std_as_it_comes 01b/divided_by_N_minus_1 02a/divided_by_N_minus_1
        03a/two_pass_unbiased 03a/one_pass_unbiased 03b/unbiased 05a/unbiased 05b/unbiased 06a/unbiased 06b/unbiased""",
    "1/N forgotten in the variance": """01a/variance_not_divided 01b/not_divided 03a/sum_for_mean_of_squares 03b/M2_returned
        05a/variance_not_divided 05b/M2_saved 06a/variance_not_divided 06b/variance_not_divided 07a/not_divided 07b/not_divided""",
    "1/N forgotten in c1 or c2": """02a/c1_not_divided 02a/neither_divided 02b/c1_not_divided 08a/c1_not_divided 08a/c2_not_divided
        08a/neither_divided 08b/c1_not_divided""",
    "one pass": """01a/one_pass 03a/two_pass_that_is_one_pass 03b/sums_of_squares_in_disguise 03c/by_raw_sums_of_squares 05a/one_pass
        05b/one_pass 06a/one_pass 06b/one_pass""",
    "accumulator in half precision": """01a/half_precision 01b/squares_in_half_precision 02a/half_precision 02b/half_precision
        02c/half_precision_rows 03a/mean_of_half_precision 03b/state_in_half_precision 04a/accumulators_in_fp16 05a/half_precision_sum
        05b/half_precision_lanes 06a/half_precision_sum 06b/half_precision_squares 07a/squares_in_half_precision
        07b/squares_in_half_precision 08a/products_in_half_precision 08b/products_in_half_precision""",
    "32-bit row offset": """04a/row_in_32_bits 05a/row_in_32_bits 05b/row_in_32_bits 06a/row_in_32_bits 06b/row_in_32_bits
        07a/row_in_32_bits 07b/row_in_32_bits 08a/row_in_32_bits 08b/row_in_32_bits 09a/row_in_32_bits 09b/row_in_32_bits
        09c/row_in_32_bits""",
    "stride taken for N, or for another's": """04a/stride_taken_for_N 05a/stride_taken_for_N 05b/stride_taken_for_N
        06a/stride_taken_for_N 06b/stride_taken_for_N 07a/stride_taken_for_N 07b/stride_taken_for_N 06a/one_stride_for_both
        06b/one_stride_for_both 07b/one_stride_for_all 08a/xs_stride_ignored 08a/dx_by_the_stride_of_x 08b/xs_stride_ignored
        09c/dx_by_the_stride_of_x 10a/strides_of_x_ignored""",
    "dy's stride ignored": """08a/dys_row_stride_ignored 08b/one_stride_for_all 09b/one_stride_for_both 09c/dys_row_stride_ignored
        10a/strides_of_dy_ignored""",
    "dy's column stride ignored": """08a/dys_column_stride_ignored 08b/dys_column_stride_ignored 09a/dys_column_stride_ignored
        09b/dys_column_stride_ignored 09c/dys_column_stride_ignored""",
    "no lock": """09a/no_lock 09a/taken_but_not_waited_for 09a/lock_taken_by_load_and_store 09b/every_chunk_into_row_0
        09c/everybody_into_row_0""",
    "lock released early": "09a/released_before_the_stores 09a/released_between_the_stores 09a/flag_set_after_the_release",
    "lock never released": "09a/never_released 09a/lock_taken_twice",
    "lock with the wrong index": "09a/another_lock_released 09a/a_lock_for_every_row",
    "no barrier before the release": """09a/no_barrier 09a/barrier_after_the_release 09a/barrier_between_the_stores
        09a/barrier_before_the_stores 09a/barrier_for_the_first_row_only 09a/barrier_for_later_rows_only
        09a/barrier_only_while_waiting 09a/flag_by_an_atomic_for_a_barrier""",
    "uninitialised partials": """09a/everybody_adds 09a/flag_the_wrong_way_round 09a/all_buffers_summed 09a/missing_buffers_times_zero
        09b/added_up_by_atomics_in_row_0 09c/idle_programs_store_nothing""",
    "last writer wins": "02a/dw_is_the_last_row 02b/dw_is_the_last_row 02c/last_row_wins 09a/last_writer_wins",
    "the order decides the bits": "09b/cleared_and_added_up_by_atomics 09c/cleared_and_added_up_by_atomics",
    "partials in half precision": """02a/rows_added_in_half_precision 09a/buffers_in_half_precision 09a/summed_in_half_precision
        09b/sums_in_half_precision 09b/partials_rounded_to_half 09b/stage_two_in_half_precision 09c/sums_in_half_precision""",
    "wrong output dtype": """01a/returned_in_fp32 01a/in_the_dtype_of_w 01b/returned_in_fp32 02b/returned_in_fp32
        03a/dtype_of_x_returned 03b/fp64_state_returned 03c/fp64_returned 04a/sum_rounded_to_the_dtype_of_x""",
    "wrong gradient dtype": "02a/all_in_the_dtype_of_x 10a/dtype_of_x 10a/dtype_of_dy_for_dw",
    "w ignored": "01a/w_forgotten 01b/w_forgotten 06a/w_forgotten 06b/w_forgotten 07a/w_forgotten 07b/w_forgotten",
    "b ignored": "01a/b_forgotten 06a/b_forgotten 06b/b_forgotten 10a/b_left_out",
    "w forgotten in dx": "02a/w_forgotten 02b/w_forgotten 08a/w_forgotten 08b/w_forgotten 10a/w_left_out_of_dx",
    "w applied twice": "01b/w_squared 02a/w_again 02a/w_twice_in_dx 02b/w_again 06a/w_applied_twice 08a/w_twice 08b/w_twice",
    "rstd not saved": """05a/statistics_forgotten 05b/statistics_forgotten 06a/statistics_forgotten 06b/statistics_forgotten
        07a/rstd_not_saved 07b/rstd_not_saved 10a/statistics_not_saved""",
    "something else saved for rstd": "06a/standard_deviation_saved 06b/variance_saved 07a/rms_saved",
    "an input written to": """00a/written_into_x 01a/x_overwritten 02a/x_overwritten 03a/x_changed 03b/mean_changed_in_place
        06a/stored_over_x 06b/stored_over_x 07a/stored_over_x 07b/total_written_over_x 08a/stored_over_dy 08b/stored_over_x
        09a/stored_over_dy 09c/stored_over_dy 10a/dx_written_over_dy 10a/x_overwritten""",
    "grid capped": "00a/one_program_only 09c/one_tile_a_program",
    "M = 0": "09a/at_least_one_buffer",
    "NaN swallowed": """04a/nan_swallowed 05a/nan_swallowed 05b/nan_swallowed 06a/nan_swallowed 06b/nan_swallowed 07a/nan_swallowed
        07b/nan_swallowed 08a/nan_swallowed 08b/nan_swallowed 09b/nan_swallowed 09c/nan_swallowed""",
    "NaN leaked": "08a/c1_over_the_whole_tile 09a/missing_buffers_times_zero 09b/rows_of_others_times_zero",
    "sum(g) dropped": "02a/no_c2 08a/c2_dropped",
    "sum(g * xhat) dropped": "02a/no_c1 02b/no_projection 08a/c1_dropped 08b/c1_dropped",
    "rows counted as x.shape[0]": "01a/rows_are_shape_0 01b/rows_are_shape_0",
    "rows or partials counted by floor": """04a/full_blocks_only 09a/one_buffer_too_few 09b/steps_by_floor 09b/stage_two_by_floor
        09c/tiles_by_floor""",
    "grad_output ignored": """02a/dy_ignored 02b/dy_ignored 08a/dy_never_read 08b/dy_never_read 09a/dy_ignored 09b/dy_ignored
        09c/dy_ignored 10a/dy_ignored""",
    "zeros returned": "04a/zeros 06a/zeros 06b/zeros 07a/zeros 08a/zeros 08b/zeros 09b/zeros_from_stage_two",
    "read more often than asked": """05a/a_third_sweep 05b/two_sweeps 05b/block_loaded_twice 06a/x_loaded_again_for_y
        06b/tile_loaded_again 07a/row_loaded_again 07b/total_read_back 07b/residual_loaded_twice 09c/x_loaded_again
        09c/dy_loaded_again""",
}  # fmt: skip

# each way to be right that must pass, and variants that go it
RIGHT = {
    "shifted one-pass": "ex05a_shifted_one_pass ex06a_shifted_one_pass ex06b_shifted_one_pass",
    "Chan merge over blocks": "ex05b_blocks_merged ex06a_welford_blocks",
    "Welford per lane": "ex05b_count_from_number",
    "sequential and tree sums": "ex02a_double_loop ex03a_column_by_column ex04a_sum_each_block ex09b_row_by_row",
    "a tile of one row": "ex08b_tile_of_one ex07a_fp64_inside",
    "atomic_add into fp32 where the order is free": "ex09a_atomics_after_the_first",
    "fp64 inside": """ex01a_double ex01b_in_double ex03a_in_double ex04a_fp64_inside ex06b_fp64_inside ex07a_fp64_inside
        ex08a_c2_first_in_fp64""",
    "w applied before or after rstd": "ex07a_scaled_weight ex06b_shifted_one_pass",
    "recomputed statistics": "ex10a_recomputed",
    "another release": "ex09a_flag_last ex09a_ticket_by_exchange",
}


def test_every_cause_is_seen_by_a_test():
    expected = {entry[key] for entry in EVERY.values() for key in ("cause", "cause_cpu") if key in entry}
    assert CAUSES.keys() - expected == ELSEWHERE.keys()
    for cause, place in ELSEWHERE.items():
        file, _, test = place.partition("::")
        text = (HERE / file).read_text(encoding="utf-8")
        body = text[text.index(f"def {test}(") :].partition("\n\n\n")[0]
        assert f'"{cause}"' in body, f"{place} does not expect {cause}"


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_every_cause_that_a_family_names_has_its_words(exercise):
    for part in find_parts(exercise).values():
        named = {cause for cause, _ in (*part.models(), *part.traits, *part.rare)} | set(part.unwritten.values())
        assert named <= CAUSES.keys(), (
            f"course_lib/grading/judging/causes.py has no words for {sorted(named - CAUSES.keys())}"
        )


OF_KERNELS = re.compile(r"tl\.|\bprogram\b|\blanes?\b|\bpointer\b|\bstore\b|\bkernel\b")
OF_ANY_RUN = {
    "bad_row_spreads", "low_precision", "cancellation", "stride_ignored", "input_changed", "not_written", "partly_written",
    "right_only_once", "wrong_values", "function_raised", "time_limit", "output_flood", "crash",
}  # fmt: skip


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_functions_are_asked_nothing_of_kernels(exercise):
    if exercise.kind == "kernel":
        return
    for part in find_parts(exercise).values():
        for cause in {cause for cause, _ in (*part.models(), *part.traits, *part.rare)} | OF_ANY_RUN:
            for words in CAUSES[cause].word_for(exercise.kind):
                assert not OF_KERNELS.search(words), f"{cause}: {words}"


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
    assert named and len(named) == len(set(named)) and set(named) <= EVERY.keys(), set(named) - EVERY.keys()


@pytest.mark.parametrize("way", RIGHT)
def test_every_known_right_way_has_its_variants(way):
    assert all((HERE / "variants" / f"{name}.py").exists() for name in RIGHT[way].split())
