"""What can be wrong with a kernel, in words: a headline, and a question that leads to the remedy without giving it."""

from __future__ import annotations

from typing import NamedTuple

_IDENTIFIERS = frozenset("b c1 c2 db dw dx dy eps lock mean n residual rstd total var w wdy x xhat y".split())


class Cause(NamedTuple):
    """``of_function`` are headline and question for what is no kernel, where these must be others."""

    headline: str
    question: str
    of_function: tuple[str, str] | None = None

    def word_for(self, kind: str) -> tuple[str, str]:
        """Headline and question for an exercise of this kind: "kernel", "torch", "numpy" or "autograd"."""
        return (self.headline, self.question) if kind == "kernel" or self.of_function is None else self.of_function


def make_sentence(text: str) -> str:
    """``text`` with a capital letter and a full stop; names of the learner's code stay as they are written there."""
    first = text.split(" ", 1)[0].rstrip(":,")
    capital = text[:1].upper() if first.isalpha() and first not in _IDENTIFIERS else text[:1]
    return f"{capital}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


CAUSES: dict[str, Cause] = {
    # a copy
    "rounded_on_the_way": Cause(
        "the values were rounded on their way",
        "x holds fp32 numbers. Through which dtypes do yours go before they are stored?",
    ),
    "special_values": Cause(
        "NaN, Inf or -0 do not arrive as they are",
        "A copy hands on every number, NaN and -0 among them. Which of your lines computes?",
    ),
    "not_a_plain_copy": Cause("the values were changed on their way", "What happens between your load and your store?"),
    # statistics
    "padding_in_variance": Cause(
        "padding in the variance", "What does `x - mean` hold in a lane past column N, and what is its square?"
    ),
    "divisor": Cause(
        "the wrong divisor",
        "How many elements did you add up, and by how many do you divide? A lane without an element counts for neither.",
        ("the wrong divisor", "How many elements did you add up, and by how many do you divide?"),
    ),
    "unbiased_variance": Cause(
        "the variance is divided by N - 1",
        "Which variance does the formula ask for: the one of a sample, or the one of these N numbers?",
    ),
    "eps_missing": Cause("eps is missing", "What is 1 / sqrt(var) for a row of equal numbers?"),
    "eps_outside": Cause(
        "eps stands outside the root", "1 / (sqrt(v) + eps) or 1 / sqrt(v + eps): which of them does PyTorch compute?"
    ),
    "eps_hard_coded": Cause("eps is a fixed number", "eps is an argument. Where do you use it?"),
    "eps_altered": Cause(
        "what stands in the root is not the mean of the squares plus eps",
        "Take a row whose squares have the mean 0, then one where it is far larger than eps: what is left of v + eps in each?",
    ),
    "reciprocal_missing": Cause(
        "the standard deviation multiplies where it should divide",
        "Spread a row ten times as wide: y should stay as it is. What does yours do?",
    ),
    "root_missing": Cause("the root is missing", "rstd is 1 over the standard deviation. What have you taken 1 over?"),
    "cancellation": Cause(
        "cancellation: the statistics lose their digits when the mean is far from zero",
        "With a mean of 1000, how large are E[x^2] and E[x]^2, and how many digits of their difference does fp32 keep?",
    ),
    "low_precision": Cause(
        "arithmetic in half precision",
        "In which dtype do you add up, and how many digits does a sum of 1000 numbers need?",
    ),
    "another_dtype": Cause(
        "a tensor goes through another tensor's dtype",
        "Each tensor has a dtype of its own here. Through which dtypes does each value go between its load and the store?",
        (
            "a tensor goes through another tensor's dtype",
            "Each tensor has a dtype of its own here. Through which dtypes does each value go before it is returned?",
        ),
    ),
    "statistics_of_another_row": Cause(
        "rows are given the statistics of another row",
        "Row 3 needs its own statistics. Which line picks them, and by which number?",
    ),
    "counted_by_every_lane": Cause(
        "a sum of lanes is counted by every lane",
        "A block's sum is one number. How many lanes hold it after your line, and what happens when they are added up?",
    ),
    "squared_after_the_sum": Cause(
        "deviations are added up before they are squared",
        "Deviations 1 and -1: what is the sum of their squares, and what the square of their sum?",
    ),
    "w_before_the_norm": Cause(
        "w is applied before the row is normalised",
        "Which numbers is the mean square the mean of: those of x, or of x * w?",
    ),
    "rstd_not_applied": Cause(
        "y is not multiplied by rstd", "Spread a row ten times as wide: y should stay as it is. Does it?"
    ),
    "norm_before_addition": Cause(
        "the wrong matrix is normalised, or measured",
        "Which matrix is y made of: x, the residual, or their sum? And which is rstd?",
    ),
    "recomputed_statistics": Cause(
        "the statistics were computed anew, not taken as they were saved",
        "With which eps, and over which elements, did the forward pass compute them? Who has the result?",
    ),
    "dx_for_dy": Cause(
        "dw or db is made of dx", "Which gradient reaches w and b: the one that comes in, or the one that goes out?"
    ),
    "M2_not_a_sum": Cause(
        "M2 is treated as a variance", "M2 grows with every number; a variance does not. What is M2 of two equal sides?"
    ),
    "block_not_accumulated": Cause(
        "only one block counts", "After the loop, which blocks are in the sum: all of them, or the last one?"
    ),
    "mean_for_sum": Cause(
        "the mean, not the sum", "What does the exercise ask for: the sum of the row, or the sum over a count?"
    ),
    "not_a_plain_sum": Cause(
        "something else than x is added up", "For the row 1, -2 the sum is -1. What does each of your lanes add?"
    ),
    "tail_left_out": Cause(
        "the end of the row is left out", "With N = 17 and BLOCK = 8, which columns does the last step take?"
    ),
    "block_counted_again": Cause(
        "blocks are added up more than once",
        "After two blocks, what is in the lanes' running sums? When may it go into the result?",
    ),
    "lanes_apart": Cause(
        "the lanes never meet", "A lane has added up every BLOCK-th column. Which line adds up the lanes?"
    ),
    "same_row": Cause(
        "every program takes the same row", "Which line makes program 3 read another row than program 0 does?"
    ),
    "mean_not_subtracted": Cause(
        "the mean is not subtracted",
        "Where does x stand, and where x - mean? Look at what is squared and at what is scaled.",
    ),
    "mean_subtracted": Cause("a mean is subtracted", "RMSNorm leaves the mean in. Where does yours take it out?"),
    # output
    "w_ignored": Cause("w is not applied", "Where does the weight enter y?"),
    "one_plus_w": Cause("1 + w stands where w belongs", "What does y hold where w is 0?"),
    "w_misapplied": Cause(
        "w is there, but does not multiply as it should", "xhat is 2 and w is -3. What becomes of them?"
    ),
    "w_and_b_swapped": Cause(
        "w and b have changed places",
        "Which of the two multiplies, which is added, and which have you read under which name?",
    ),
    "b_misapplied": Cause(
        "b is there, but is not added once, at the end", "Take xhat = 0: what should y hold then, and what does yours?"
    ),
    "sign_of_deviation": Cause("y has the wrong sign before b is added", "Is it x - mean or mean - x?"),
    "b_ignored": Cause("b is not applied", "Where does the bias enter y?"),
    "w_twice": Cause("w is applied twice", "How often does w appear between x and y?"),
    "residual_ignored": Cause("the residual is not added", "What should `total` hold, besides x?"),
    "residual_misapplied": Cause(
        "the residual is not added once", "x is 1 and the residual is 2: what does `total` hold, and what does yours?"
    ),
    "total_not_stored": Cause(
        "`total` holds something else than the sum",
        "y is right. Which of your values is the sum, and which one do you store?",
    ),
    "unrounded_total": Cause(
        "y is computed from the sum before it was rounded",
        "A second kernel would read `total` from memory. Which number would it see, the exact sum or the stored one?",
    ),
    "wrong_statistic_saved": Cause(
        "the saved statistic is not rstd",
        "The backward pass multiplies by what you save. Is it 1 / sqrt(var + eps), or something on the way to it?",
    ),
    # memory
    "not_written": Cause(
        "the output is never written",
        "Which `tl.store` writes it, and is that line reached?",
        ("the output is never written", "Which line gives it its values, and is that line reached?"),
    ),
    "statistics_not_saved": Cause(
        "the statistics are not saved",
        "Others read these numbers after you, the backward pass among them. Which `tl.store` writes each of them?",
    ),
    "partly_written": Cause(
        "part of the output is never written",
        "Which elements does each program store, and does every element belong to one?",
        ("part of the output is never written", "Which elements does your code fill in, and which of them are left?"),
    ),
    "only_one_block": Cause(
        "only the first block is right", "What happens to element BLOCK of a row, and to the elements after it?"
    ),
    "mask_missing": Cause(
        "lanes past the last column take part", "For which N do all your cases pass? What do the spare lanes load?"
    ),
    "load_outside": Cause(
        "the kernel reads outside its tensors", "Which lanes have no element to read, and what keeps them from reading?"
    ),
    "store_outside": Cause(
        "the kernel writes outside its output", "Which lanes may store, and which lanes does your store let through?"
    ),
    "row_mask": Cause(
        "rows past the last one take part",
        "M is no multiple of the rows taken at a time: what do the spare rows of the last step load and store?",
    ),
    "stride_ignored": Cause(
        "elements are not where the kernel looks",
        "Each matrix has strides of its own, and none of them need be N. Which stride does each load use, and which the store?",
        (
            "how a tensor lies in memory changes the result",
            "This tensor's elements do not follow one another. Which of your lines goes by how they lie, and not by their indices?",
        ),
    ),
    "offset_32_bit": Cause(
        "row offsets overflow 32 bits", "row * stride passes 2^31 here. How wide is `tl.program_id(0)`?"
    ),
    "race": Cause(
        "a race",
        "Two programs touch these bytes, and at least one writes. What makes one of them wait for the other, and does the atomic "
        "that it waits for hand on what was written before it (its memory order, `sem`, and its `scope`)?",
    ),
    "deadlock": Cause("a deadlock", "Who holds what the waiting program wants, and which line would give it back?"),
    "barrier_missing": Cause(
        "a barrier is missing inside the program",
        "A program is many threads, and one of them gives the lock back for all. What makes it wait until the others have stored?",
    ),
    "order_dependent": Cause(
        "the result depends on the order of the programs",
        "Which sums are added up in the order in which programs happen to arrive?",
    ),
    "extra_pass": Cause(
        "more passes over memory than the exercise asks for",
        "Every load of an element moves its bytes again. Which load brings what the program has had in its registers already?",
    ),
    "input_changed": Cause(
        "an input was changed",
        "What comes in belongs to the caller, dy as well as x and w. Which line writes to one of them, if only for a moment?",
    ),
    "work_not_shared": Cause(
        "one program does the work of all",
        "A GPU runs these programs side by side. Which part belongs to program 1, and which line gives it to it?",
    ),
    "output_read_first": Cause(
        "what an output held before the launch decides the result",
        "An output holds anything at all before the launch. Which load reads it before your store?",
    ),
    "right_only_once": Cause(
        "a second run with other numbers is wrong",
        "Besides its arguments, what does your code go by: an earlier result, an address, what memory happens to hold?",
    ),
    "bad_row_spreads": Cause(
        "a NaN or Inf is not handled as the formula does",
        "Row 1 holds a NaN or an Inf. Which rows should show it, and what should they hold?",
    ),
    # functions
    "wrong_axis": Cause(
        "the statistics are taken over the wrong elements",
        "Which elements of x share one mean, and how many means are there?",
    ),
    "wrong_return": Cause(
        "the function does not return what it should",
        "Which values does the docstring ask for, of which shape and dtype, and in which order?",
    ),
    "not_its_own": Cause(
        "one function lets another do its work",
        "The exercise asks for two algorithms, to be compared with each other. What does this one add up, and in how many passes?",
    ),
    "part_not_used": Cause(
        "the function written first is not used",
        "Which function takes in one number more, and who calls it, once for each column?",
    ),
    # gradients
    "projection_missing": Cause(
        "neither c1 nor c2 is in dx: its error lies along 1 and along xhat",
        "x reaches y on three paths: by itself, through the mean and through rstd. Which of them does dx know?",
    ),
    "c1_missing": Cause(
        "the c1 term is missing from dx: its error is a multiple of xhat",
        "Move every element of a row a little further from its mean: y stays as it is. Which term of dx says so?",
    ),
    "c2_missing": Cause(
        "the c2 term is missing from dx: its error is the same in every column",
        "Add the same number to every element of a row: y stays as it is. Which term of dx says so?",
    ),
    "c2_in_rms_norm": Cause(
        "a mean is taken out of dx", "Add the same number to every element of a row. Does RMSNorm leave y as it is?"
    ),
    "c2_times_xhat": Cause(
        "c2 is multiplied by xhat, too", "xhat * (c1 + c2) and xhat * c1 + c2: which of them is in the formula?"
    ),
    "c1_of_dy": Cause(
        "c1 is taken of dy, not of wdy", "What reaches xhat on the way back: dy, or what w has made of it?"
    ),
    "c2_of_dy": Cause(
        "c2 is taken of dy, not of wdy", "What reaches xhat on the way back: dy, or what w has made of it?"
    ),
    "w_outside_means": Cause(
        "w does not stand with dy in every term of dx",
        "Each column has a w of its own. Does a mean over the columns stay the same if w goes in, or out?",
    ),
    "xhat_in_one_term": Cause(
        "in the c1 term something else stands for xhat, or a factor rstd is missing",
        "xhat stands in c1 and beside it, each time with its rstd. What do you multiply in each of the two places?",
    ),
    "sign_of_dx": Cause("dx has the wrong sign", "A step along dy should make y larger along dy. What does yours do?"),
    "c1_and_c2_swapped": Cause(
        "c1 and c2 have changed places",
        "One of the two means is multiplied by xhat. Which one, and what is it the mean of?",
    ),
    "sign_of_c1_or_c2": Cause("c1 or c2 has the wrong sign", "Do the two terms add a push to dx, or take one out?"),
    "vjp_divisor": Cause(
        "c1 or c2 is not the mean of its row",
        "c1 and c2 are means. Over which elements, and how many of them are there?",
    ),
    "rstd_in_dx": Cause(
        "dx has the wrong power of rstd",
        "Spread a row ten times as wide. How far does y then move for the same step in x?",
    ),
    "padding_in_c1": Cause(
        "padding in c1 or c2",
        "A lane past column N holds an xhat of -mean * rstd. What must the other factor hold there, and does yours?",
    ),
    "rstd_misread": Cause(
        "rstd is taken for the variance or the standard deviation",
        "A row with standard deviation 10 has rstd 0.1. What does xhat become if you treat 0.1 as yours does?",
    ),
    "w_missing_in_dx": Cause(
        "w is not in dx", "xhat is multiplied by w on the way to y. What does that do to dy on the way back?"
    ),
    "xhat_wrong": Cause(
        "xhat is not what the forward pass computed",
        "Which numbers stood next to w in the forward pass, and how do x and the saved statistics give them back?",
    ),
    "dw_sums_columns": Cause("dw adds up a whole row of dy", "In how many elements of one row's y does w[i] stand?"),
    "dw_without_xhat": Cause(
        "xhat is not in dw", "y = xhat * w + b. What is its derivative with respect to w, and what with respect to b?"
    ),
    "xhat_in_db": Cause(
        "xhat is in db", "y = xhat * w + b. What is its derivative with respect to b, and what with respect to w?"
    ),
    "w_in_dw": Cause(
        "w is in dw or db", "y = xhat * w + b. Does its derivative with respect to w, or to b, still hold w?"
    ),
    "sign_of_dw_or_db": Cause(
        "dw or db has the wrong sign", "dy is 1 everywhere. What is db then, and which sign does yours have?"
    ),
    "rows_not_summed": Cause(
        "dw or db is no sum over the rows",
        "Every row of the matrix uses the same w. Which rows have a say in your dw, and with what weight?",
    ),
    "dy_ignored": Cause(
        "a gradient does not depend on dy", "The loss reaches this layer through dy alone. Where does dy enter?"
    ),
    # sums over programs
    "uninitialised": Cause(
        "memory that nobody has written is added up",
        "What does a buffer hold before the first row comes, and which buffers does no row ever come to?",
    ),
    "buffer_not_accumulated": Cause(
        "a buffer that several rows share does not hold their sum",
        "A second row reaches the buffer. How does it know that somebody was there before, and what does it do with what it finds?",
    ),
    "rows_counted_twice": Cause(
        "rows are counted twice",
        "With 5 rows a chunk and 4 rows a step, which rows does the second step take, and whose are they?",
    ),
    "rows_left_out": Cause(
        "rows are left out of the sum",
        "How many rows are there to add up, and which of them has your loop not seen when it ends?",
    ),
    "same_rows": Cause(
        "every program adds up the same rows", "Which line makes chunk 2 read other rows than chunk 0 does?"
    ),
    "wrong_rows": Cause(
        "the rows of a partial sum are not the ones asked for",
        "Write down the rows that program 1 should take, and those that yours takes.",
    ),
    "dw_and_db_swapped": Cause(
        "dw and db have changed places", "Which of the two sums holds xhat, and through which pointer do you store it?"
    ),
    # statistics in NumPy
    "variance_terms": Cause(
        "the two terms of the one-pass variance do not fit each other",
        "Take the row 1, 3: its variance is 1. What is each of your two terms there, and which of them is a mean?",
    ),
    "negative_variance": Cause(
        "a variance below zero is handed on",
        "What does 1 / sqrt(var + eps) give for var = -0.06, and what could one_pass return instead?",
    ),
    "not_divided": Cause(
        "a sum where a mean belongs",
        "Write a row twice, one copy behind the other. Which of your outputs changes, and should it?",
    ),
    "std_for_var": Cause(
        "var holds the standard deviation",
        "Multiply a row by 10. By which factor does its variance grow, and by which does yours?",
    ),
    "deviation_not_squared": Cause(
        "the deviations are not squared", "What do you average: x - mean, its absolute value, or its square?"
    ),
    "welford_product": Cause(
        "M2 grows by the wrong product",
        "M2 grows by a product of two deviations of x. From which mean is each of yours taken, the old or the new?",
    ),
    "welford_count": Cause(
        "the count is off",
        "By what do you divide when the first number arrives? Which mean should a row of one number have?",
    ),
    "elements_skipped": Cause(
        "elements of each row are left out", "Which columns does your loop visit, and with which one does it start?"
    ),
    "merge_between": Cause(
        "what the distance between the means adds to M2 is wrong",
        "Merge the number 0 with the number 2, n_a = n_b = 1. M2 of the two is 2. What does yours give, and what if b is two numbers 2?",
    ),
    "merge_weights": Cause(
        "the means are weighed wrongly",
        "If b is a thousand numbers and a is one, near which of the two means must the result be?",
    ),
    "empty_partial": Cause(
        "an empty side spoils the merge", "What is n_b / n when neither side has a number, and what should come out?"
    ),
    # statistics as kernels
    "rstd_for_var": Cause(
        "var holds a reciprocal root", "Multiply a row by 10. Its variance grows by 100; what does yours do?"
    ),
    "empty_lane": Cause(
        "a lane that has seen no element spoils the row",
        "With N = 5 and BLOCK = 8, what is the count of lane 6 when its mean is moved, and what is d / count there?",
    ),
    "lane_counts": Cause(
        "lanes count elements that they never saw",
        "Five columns in eight lanes: what should lane 6 count, and what does yours?",
    ),
    "outputs_swapped": Cause(
        "two outputs have changed places",
        "Which pointer did you store each of the two through?",
        (
            "two outputs have changed places",
            "In which order does the docstring ask for them, and in which do you return them?",
        ),
    ),
    # wiring into autograd
    "none_misread": Cause(
        "a parameter that is None is taken for numbers",
        "w or b may be None. By which number is xhat then multiplied, and which one is added to it?",
    ),
    "gradient_missing": Cause(
        "a gradient is never handed back",
        "What does backward return for each argument of forward, and who would miss the one that is None?",
    ),
    "needs_misread": Cause(
        "a gradient depends on whether another input needs one",
        "ctx.needs_input_grad has one entry for each argument of forward. Which entry belongs to which of your gradients?",
    ),
    "gradients_swapped": Cause(
        "two gradients have changed places",
        "Autograd goes by position. In which order does forward take w and b, and in which does backward return theirs?",
    ),
    "gradient_dtype": Cause(
        "a gradient went through the wrong dtype",
        "dw arrives as fp32. Through which dtypes does yours go, and what does w's dtype have to do with x's?",
    ),
    "dy_overwritten": Cause(
        "the incoming gradient was written to",
        "In y + x the addition hands one and the same dy to both. What does the other reader find in it after yours?",
    ),
    "eps_not_kept": Cause(
        "the statistics were computed anew, with another eps",
        "Which eps did forward use, and what did its launch give you that spares the question?",
    ),
    "saved_order": Cause(
        "what was saved comes back under another name",
        "In which order did you hand the tensors to ctx.save_for_backward, and in which do you take them out?",
    ),
    "wrong_tensor_saved": Cause(
        "backward was given another tensor than forward read",
        "mean and rstd are those of one matrix. Is it the one that you saved?",
    ),
    "change_unnoticed": Cause(
        "a change of x between forward and backward goes unnoticed",
        "PyTorch compares a saved tensor's version with the one it had. Which tensor did you save: the caller's, or a copy?",
    ),
    "tensor_on_ctx": Cause(
        "a tensor is kept on ctx, past ctx.save_for_backward",
        "PyTorch compares the version of each saved tensor with the one it had. Which call tells it what to compare?",
    ),
    # running
    "function_raised": Cause("the function cannot be run", "Which shapes and dtypes do the values in that line have?"),
    "kernel_raised": Cause(
        "the kernel cannot be run",
        "What does the line do with values that are blocks, and which of its names are Triton's?",
    ),
    "time_limit": Cause("the code does not end", "Which loop is it in, and what would end it?"),
    "output_flood": Cause(
        "the code prints too much",
        "Which values do you want to see, of which program and lane, and how often does the line run?",
        (
            "the code prints too much",
            "Which values do you want to see, and how often does the line run that prints them?",
        ),
    ),
    "would_not_compile": Cause(
        "the kernel runs here, but a GPU's compiler refuses it",
        "What does the compiler need to know there before the kernel runs?",
    ),
    "crash": Cause(
        "the kernel ended its process",
        "Which address does a lane use when it is past the end of the tensor?",
        ("the function ended its process", "Which of its lines reads or writes memory by address, or ends Python?"),
    ),
    "wrong_values": Cause(
        "wrong values",
        "Work the first wrong element out by hand, from the formula: which step of yours gives something else?",
    ),
}
