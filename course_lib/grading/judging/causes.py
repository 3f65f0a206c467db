"""The causes of a failure, in words: a headline, and a question that leads to the remedy without
giving it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate
from course_lib.grading.kind import find_kind

_HAN = re.compile("[\u4e00-\u9fff]")
_IDENTIFIERS = frozenset(
    "b c1 c2 db dskip dw dx dy eps lock mean n residual rstd total var w wdy x xhat y".split()
)


class Cause(NamedTuple):
    """Headline and question of a cause. If they must differ, ``of_function`` holds those for an
    exercise without a kernel, and ``of_rms_norm`` those for RMSNorm, which has no mean, no variance
    and no c2."""

    headline: str
    question: str
    of_function: tuple[str, str] | None = None
    of_rms_norm: tuple[str, str] | None = None

    def word_for(self, kind: str, entry_points: tuple[str, ...] = ()) -> tuple[str, str]:
        """Return, in the chosen language, headline and question for an exercise of this kind
        ("kernel", "torch", "numpy" or "autograd") and these entry points."""
        if self.of_rms_norm and entry_points and all("rms_norm" in name for name in entry_points):
            headline, question = self.of_rms_norm
        else:
            headline, question = (
                (self.headline, self.question)
                if self.of_function is None or find_kind(kind).is_of_kernels
                else self.of_function
            )
        return translate(headline, "causes"), translate(question, "causes")

    def translate(self, translate: Callable[[str], str]) -> Cause:
        """Return the cause in another language."""
        function, rms_norm = (
            words and (translate(words[0]), translate(words[1]))
            for words in (self.of_function, self.of_rms_norm)
        )
        return Cause(translate(self.headline), translate(self.question), function, rms_norm)


def make_sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop. An identifier of the learner's code at
    its beginning stays as it is, and so does a Latin word at the beginning of a Chinese
    sentence."""
    first_word = text.split(" ", 1)[0].rstrip(":,")
    is_word = first_word.isalpha() and first_word not in _IDENTIFIERS and not _HAN.search(text)
    capital = text[:1].upper() if is_word else text[:1]
    return f"{capital}{text[1:]}{'' if text.endswith(('.', '?', '。', '？')) else _('.')}"


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
    "lanes_clamped": Cause(
        "lanes past the end read an element that other lanes have",
        "A lane past the end has no element. Which one do you give it, and what would keep it from"
        " reading and from storing at all?",
    ),
    "not_a_plain_copy": Cause(
        "the values were changed on their way", "What happens between your load and your store?"
    ),
    # statistics
    "padding_in_variance": Cause(
        "padding in the variance",
        "What does `x - mean` hold in a lane past the end, and what is its square?",
    ),
    "divisor": Cause(
        "the wrong divisor",
        "How many elements did you add up, and by how many do you divide? A lane without an element"
        " counts for neither.",
        ("the wrong divisor", "How many elements did you add up, and by how many do you divide?"),
    ),
    "unbiased_variance": Cause(
        "the variance is divided by N - 1",
        "Which variance does the formula ask for: the one of a sample, or the one of these N"
        " numbers?",
        of_rms_norm=(
            "the sum of the squares is divided by N - 1",
            "How many squares did you add up, and by how many does a mean divide?",
        ),
    ),
    "eps_missing": Cause(
        "eps is missing",
        "What is 1 / sqrt(var) for a row of equal numbers?",
        of_rms_norm=("eps is missing", "What is 1 / sqrt(mean of the squares) for a row of zeros?"),
    ),
    "eps_outside": Cause(
        "eps stands outside the root",
        "1 / (sqrt(v) + eps) or 1 / sqrt(v + eps): which of them does PyTorch compute?",
    ),
    "eps_hard_coded": Cause("eps is a fixed number", "eps is an argument. Where do you use it?"),
    "eps_altered": Cause(
        "what stands in the root is not the mean of the squares plus eps",
        "Take a row whose squares have the mean 0, then one where it is far larger than eps: what"
        " is left of v + eps in each?",
    ),
    "reciprocal_missing": Cause(
        "the standard deviation multiplies where it should divide",
        "Spread a row ten times as wide: y should stay as it is. What does yours do?",
        of_rms_norm=(
            "the root multiplies where it should divide",
            "Make a row ten times as large: y should stay as it is. What does yours do?",
        ),
    ),
    "root_missing": Cause(
        "the root is missing",
        "rstd is 1 over the standard deviation. What have you taken 1 over?",
        of_rms_norm=(
            "the root is missing",
            "rstd is 1 over the root of the mean square. What have you taken 1 over?",
        ),
    ),
    "cancellation": Cause(
        "cancellation: the statistics lose their digits when the mean is far from zero",
        "In a row whose mean is large beside its spread, such as mean 1000 and spread 1, how large"
        " are E[x^2] and E[x]^2, and how many digits of their difference does fp32 keep?",
    ),
    "shift_far_out": Cause(
        "cancellation: what is subtracted before the square can lie far from the mean",
        "One number of the row is subtracted from all of them. Take a row in which that number lies"
        " far from all others: how large are the two terms of the variance, and how many digits of"
        " their difference does fp32 keep?",
    ),
    "low_precision": Cause(
        "arithmetic in half precision",
        "In which dtype is each value on the way: a product, a sum, what is scaled at the end? Half"
        " precision keeps 11 bits or 8, and only a result may be rounded to it.",
    ),
    "another_dtype": Cause(
        "a tensor goes through another tensor's dtype",
        "Each tensor has a dtype of its own here. Through which dtypes does each value go between"
        " its load and the store?",
        (
            "a tensor goes through another tensor's dtype",
            (
                "Each tensor has a dtype of its own here. Through which dtypes does each value go"
                " before it is returned?"
            ),
        ),
    ),
    "statistics_of_another_row": Cause(
        "rows are given the statistics of another row",
        "Row 3 needs its own statistics. Which line picks them, and by which number?",
    ),
    "counted_by_every_lane": Cause(
        "a sum of lanes is counted by every lane",
        "A block's sum is one number. How many lanes hold it after your line, and what happens when"
        " they are added up?",
    ),
    "squared_after_the_sum": Cause(
        "deviations are added up before they are squared",
        "Deviations 1 and -1: what is the sum of their squares, and what the square of their sum?",
        of_rms_norm=(
            "the numbers are added up before they are squared",
            "For the row 1, -1: what is the mean of the squares, and what the square of the mean?",
        ),
    ),
    "w_before_the_norm": Cause(
        "w is applied before the row is normalised",
        "Which numbers is the mean square the mean of: those of x, or of x * w?",
    ),
    "rstd_not_applied": Cause(
        "y is not multiplied by rstd",
        "Spread a row ten times as wide: y should stay as it is. Does it?",
        of_rms_norm=(
            "y is not multiplied by rstd",
            "Make a row ten times as large: y should stay as it is. Does it?",
        ),
    ),
    "norm_before_addition": Cause(
        "the wrong matrix is normalised, or measured",
        "Which matrix is y made of: x, the residual, or their sum? And which is rstd?",
    ),
    "recomputed_statistics": Cause(
        "the statistics were computed anew, not taken as they were saved",
        "With which eps, and over which elements, did the forward pass compute them? Who has the"
        " result?",
        of_rms_norm=(
            "rstd was computed anew, not taken as it was saved",
            (
                "With which eps, and over which elements, did the forward pass compute it? Who has"
                " the result?"
            ),
        ),
    ),
    "dx_for_dy": Cause(
        "dw or db is made of dx",
        "Which gradient reaches w and b: the one that comes in, or the one that goes out?",
    ),
    "M2_not_a_sum": Cause(
        "M2 is treated as a variance",
        "M2 grows with every number, and a variance does not. What is M2 of two parts that hold the"
        " same numbers, beside M2 of one of them?",
    ),
    "block_not_accumulated": Cause(
        "only one block counts",
        "After the loop, which blocks are in the sum: all of them, or the last one?",
    ),
    "flat_row": Cause(
        "a row of equal numbers is wrong",
        "What is the variance of equal numbers, and what does the formula make of it with eps? Have"
        " you a rule of your own for such a row?",
        of_rms_norm=(
            "a row of zeros is wrong",
            (
                "What is the mean square of a row of zeros, and what does the formula make of it"
                " with eps? Have you a rule of your own for such a row?"
            ),
        ),
    ),
    "one_column": Cause(
        "a row of a single number is wrong",
        "Put N = 1 into the formula, step by step. What comes out, and have you a rule of your own"
        " for such a row?",
    ),
    "zeros_left_out": Cause(
        "elements that are 0 are left out",
        "An element of a row may be 0. By what do you tell it from a lane past the last column?",
        (
            "elements that are 0 are left out",
            (
                "An element of a row may be 0, and counts like any other. Which of your lines"
                " leaves it out?"
            ),
        ),
    ),
    "mean_for_sum": Cause(
        "the mean, not the sum",
        "What does the exercise ask for: the sum of the row, or the sum over a count?",
    ),
    "not_a_plain_sum": Cause(
        "something else than x is added up",
        "For the row 1, -2 the sum is -1. What does each of your lanes add?",
    ),
    "tail_left_out": Cause(
        "the end of the row is left out",
        "With N = 17 and BLOCK = 8, which columns does the last step take?",
    ),
    "ties_misjudged": Cause(
        "of equal numbers another than the first is taken",
        "Suppose the largest number stands in columns 3 and 9, and BLOCK is 8. Which lanes hold the"
        " two, in which order, and which column do you store?",
    ),
    "column_in_block": Cause(
        "the column is not counted from the beginning of the row",
        "Suppose the largest number stands in column 9, and BLOCK is 8. What do you store?",
    ),
    "best_begins_at_0": Cause(
        "the search begins with a number that is larger than all of the row",
        "Every number of a row is below 0. Which number does a lane hold before its first element?",
    ),
    "block_counted_again": Cause(
        "blocks are added up more than once",
        "After two blocks, what is in the lanes' running sums? When may it go into the result?",
    ),
    "same_block": Cause(
        "every step adds up the first block again",
        "The second step is to add other columns than the first. Which of your lines makes its load"
        " take them?",
    ),
    "lanes_apart": Cause(
        "the lanes never meet",
        "A lane has added up every BLOCK-th column. Which line adds up the lanes?",
    ),
    "same_row": Cause(
        "every program takes the same row",
        "Which line makes program 3 read another row than program 0 does?",
    ),
    "mean_not_subtracted": Cause(
        "the mean is not subtracted",
        "Where does x stand, and where x - mean? Look at what is squared and at what is scaled.",
    ),
    "mean_subtracted": Cause(
        "a mean is subtracted", "RMSNorm leaves the mean in. Where does yours take it out?"
    ),
    # output
    "w_ignored": Cause("w is not applied", "Where does the weight enter y?"),
    "one_plus_w": Cause("1 + w stands where w belongs", "What does y hold where w is 0?"),
    "w_misapplied": Cause(
        "w is there, but does not multiply as it should",
        "xhat is 2 and w is -3. What becomes of them?",
    ),
    "w_and_b_swapped": Cause(
        "w and b have changed places",
        "Which of the two multiplies, which is added, and which have you read under which name?",
    ),
    "w_for_b": Cause(
        "w is added where b belongs",
        "Two vectors come in beside x. Which of them is added at the end, and which do you add?",
    ),
    "b_for_w": Cause(
        "b multiplies where w belongs",
        "Two vectors come in beside x. Which of them multiplies, and which do you take?",
    ),
    "statistic_misread": Cause(
        "one saved statistic is taken for the other",
        "xhat = (x - mean) * rstd. Which number do you subtract, and which do you multiply by:"
        " under which name, from which place?",
    ),
    "max_for_sum": Cause(
        "the largest number is taken where the sum belongs",
        "For the row 1, 2, 3 the sum is 6, and the largest is 3. Which of your reductions gives"
        " which?",
    ),
    "accumulator_reused": Cause(
        "the second sum begins with what the first one left",
        "Which number should the sum of squares begin with, and what does it hold before its first"
        " block?",
    ),
    "dx_and_xhat_swapped": Cause(
        "dx and xhat have changed places",
        "In which order does the function that computes both hand them back, and in which do you"
        " take them?",
    ),
    "b_misapplied": Cause(
        "b is there, but is not added once, at the end",
        "Take xhat = 0: what should y hold then, and what does yours?",
    ),
    "sign_of_deviation": Cause(
        "y has the wrong sign before b is added",
        "Is it x - mean or mean - x?",
        of_rms_norm=(
            "y has the wrong sign",
            "Which of your lines turns the sign of x, or of rstd?",
        ),
    ),
    "b_ignored": Cause("b is not applied", "Where does the bias enter y?"),
    "w_twice": Cause("w is applied twice", "How often does w appear between x and y?"),
    "residual_ignored": Cause("the residual is not added", "What should `total` hold, besides x?"),
    "residual_misapplied": Cause(
        "the residual is not added once",
        "x is 1 and the residual is 2: what does `total` hold, and what does yours?",
    ),
    "total_not_stored": Cause(
        "`total` holds something else than the sum",
        "y is right. Which of your values is the sum, and which one do you store?",
    ),
    "unrounded_total": Cause(
        "y or rstd is computed from the sum before it was rounded",
        "A second kernel would read `total` from memory. Which number would it see, the exact sum"
        " or the stored one?",
    ),
    "wrong_statistic_saved": Cause(
        "the saved statistic is not rstd",
        "The backward pass multiplies by what you save. Is it 1 / sqrt(var + eps), or something on"
        " the way to it?",
        of_rms_norm=(
            "the saved statistic is not rstd",
            (
                "The backward pass multiplies by what you save. Is it 1 / sqrt(mean of the squares"
                " + eps), or something on the way to it?"
            ),
        ),
    ),
    # cross entropy
    "exp_overflow": Cause(
        "the exponential overflows, or every term of the sum becomes 0",
        "In fp32, exp(89) is Inf and exp(-104) is 0. Which exponents do your terms have in a row of"
        " logits around 10000, in one around -10000, and in one whose largest logit stands in"
        " another block?",
    ),
    "sum_not_rescaled": Cause(
        "sums that belong to different maxima are added up",
        "After one block the maximum is 3 and the sum of exp(x - 3) is 2. The next block brings the"
        " maximum 5. What is the first sum worth on the new scale, and what does yours count it"
        " for?",
    ),
    "lse_shift": Cause(
        "what is subtracted before exp does not come back in lse",
        "Make all logits of a row larger by 5. By how much should lse grow, and by how much does"
        " yours?",
    ),
    "log_base": Cause(
        "exp and log have different bases, or not the base e",
        "Take a row with the one logit 1: lse should be 1. Which number does your power make of it,"
        " and which your logarithm?",
    ),
    "loss_formula": Cause(
        "the loss is not lse minus the target's logit",
        "Two equal logits: the target has the probability 1/2, so the loss is log(2) = 0.69. What"
        " does yours give?",
    ),
    "scale_misapplied": Cause(
        "not each logit is multiplied by scale once",
        "With scale = 2 the products 1 and 3 become the logits 2 and 6. What are they after each"
        " step of yours, and which of them go into the maximum, the sum and the loss?",
    ),
    "product_misread": Cause(
        "a logit is not the sum of all K products",
        "Take K = 9 and BLOCK_K = 4: how many steps has a logit, what does each of them add, and"
        " where is it kept until the last one?",
    ),
    "wrong_lse_saved": Cause(
        "the saved number is not lse",
        "Backward computes exp(x - lse), and each row of it adds up to 1. Which of your numbers"
        " makes that so, and which one do you store?",
    ),
    "target_misread": Cause(
        "the target is taken for another column",
        "A target counts the columns of its whole row from 0, and each row has its own. With BLOCK"
        " = 8, in which block and lane is column 9, and where do you look for it?",
    ),
    "forbidden_columns": Cause(
        "columns of -Inf spoil the row",
        "A whole block may be -Inf. What is -Inf minus -Inf, what is exp of that, and what should"
        " such a column add to the sum?",
    ),
    "onehot_misapplied": Cause(
        "softmax and the 1 of the target do not stand in dx as they should",
        "Two equal logits, dloss = 1, and the target is column 0: dx is -1/2 and 1/2. What are your"
        " two numbers, and what is their sum?",
    ),
    "dloss_misapplied": Cause(
        "not all of dx is multiplied by dloss",
        "If the dloss of a row is 0, which numbers of its dx are 0? And which row's dloss do you"
        " take, times what?",
    ),
    "softmax_misread": Cause(
        "something else stands where softmax belongs in dx",
        "The softmax of a row adds up to 1, and none of it is below 0. Which of your expressions is"
        " that, and what is its sum?",
    ),
    # memory
    "not_written": Cause(
        "the output is never written",
        "Which `tl.store` writes it, and is that line reached?",
        (
            "the output is never written",
            "Which line gives it its values, and is that line reached?",
        ),
    ),
    "statistics_not_saved": Cause(
        "the statistics are not saved",
        "Others read these numbers after you, the backward pass among them. Which `tl.store` writes"
        " each of them?",
    ),
    "one_row_of_partials": Cause(
        "all programs write to one row of the partial sums",
        "Each program has a row of its own in the partial sums. Which number picks it, and where"
        " does it enter the address?",
    ),
    "partly_written": Cause(
        "part of the output is never written",
        "Which elements does each program store, and does every element belong to one?",
        (
            "part of the output is never written",
            "Which elements does your code fill in, and which of them are left?",
        ),
    ),
    "only_one_block": Cause(
        "only the first block is right",
        "What happens to element BLOCK, and to the elements after it?",
    ),
    "another_block": Cause(
        "columns are made of what belongs to another block",
        "Take one column of the second block of y. Which x, w and b belong to it, and which does"
        " your last sweep hold there?",
        of_rms_norm=(
            "columns are made of what belongs to another block",
            (
                "Take one column of the second block of y. Which x and which w belong to it, and"
                " which does your last sweep hold there?"
            ),
        ),
    ),
    "only_last_block": Cause(
        "only the last block is right",
        "What do your variables hold when the last sweep begins? Take one column of the first"
        " block: which x, w and b belong to it?",
    ),
    "mask_missing": Cause(
        "lanes past the last column take part",
        "For which N do all your cases pass? What do the spare lanes load?",
    ),
    "masked_off": Cause(
        "what a masked lane holds takes part",
        "A lane that a load masks off holds anything at all, unless `other=` says what: here it is"
        " NaN or a huge number. Which of your loads has a mask, and where does what such a lane"
        " holds go?",
    ),
    "not_0_past_the_end": Cause(
        "y does not hold 0 past the end of a row",
        "Take a lane past the end of its row, where the deviation is 0. What does your formula for"
        " y make of it?",
    ),
    "length_of_another_row": Cause(
        "a row is cut at the length of another row",
        "Each row of the tile ends at a column of its own. Which shape has your block of lengths,"
        " and which shape has the mask?",
    ),
    "load_outside": Cause(
        "the kernel reads outside its tensors",
        "Take the first lane that is named: has it an element to read? If not, what keeps it from"
        " reading? If so, how do you make its address?",
    ),
    "store_outside": Cause(
        "the kernel writes outside its output",
        "Which lane is the first to store there: has it an element? If not, what keeps it from"
        " storing? If so, how do you make its address?",
    ),
    "row_mask": Cause(
        "rows past the last one take part",
        "The number of rows is no multiple of the rows taken at a time: what do the spare rows of"
        " the last step load and store?",
    ),
    "stride_ignored": Cause(
        "elements are not where the kernel looks",
        "Each matrix has strides of its own, and none of them need be N. Which stride does each"
        " load use, and which the store?",
        (
            "how a tensor lies in memory changes the result",
            (
                "This tensor's elements do not follow one another. Which of your lines goes by how"
                " they lie, and not by their indices?"
            ),
        ),
    ),
    "offset_32_bit": Cause(
        "row offsets overflow 32 bits",
        "row * stride passes 2^31 here. How wide is the row's number, which you made of"
        " `tl.program_id`, `tl.arange` or a loop?",
    ),
    "column_offset_32_bit": Cause(
        "column offsets overflow 32 bits",
        "The columns lie far apart here: cols * stride passes 2^31. How wide is what `tl.arange`"
        " gives?",
    ),
    "race": Cause(
        "a race",
        "Two programs touch these bytes, and at least one writes. What makes one of them wait for"
        " the other, and does the atomic that it waits for hand on what was written before it (its"
        " memory order, `sem`, and its `scope`)?",
    ),
    "programs_overlap": Cause(
        "two programs write to the same elements",
        "Each element belongs to one program here, and nobody has to wait. Which of your lines"
        " gives a program its elements? Which elements does it give to two programs?",
    ),
    "wait_given_up": Cause(
        "a program gives up its wait for the lock, and goes on without it",
        "How long can another program hold the lock, how many turns does your wait take, and what"
        " may happen after the last one?",
    ),
    "deadlock": Cause(
        "a deadlock", "Who holds what the waiting program wants, and which line would give it back?"
    ),
    "barrier_missing": Cause(
        "a barrier is missing inside the program",
        "A program is many threads, and one of them takes the lock and gives it back for all. What"
        " makes the others wait until it has the lock, and what makes it wait until the others have"
        " stored?",
    ),
    "number_of_each_thread": Cause(
        "each thread loads a number that one of them changes",
        "Each thread of a program loads this number for itself, and one of them writes it. What"
        " makes that thread wait for the others, or which operation gives all of them one answer?",
    ),
    "read_too_early": Cause(
        "a number is read too early",
        "One program reads what another one stores. What makes the reader wait until all of it is"
        " there? And what a program has read before it waits: is it still true when the wait is"
        " over?",
    ),
    "order_dependent": Cause(
        "the result depends on the order of the programs",
        "Which sums are added up in the order in which programs happen to arrive?",
    ),
    "extra_pass": Cause(
        "more sweeps over memory than the exercise asks for",
        "Every load of an element moves its bytes again. Which load brings what the program has had"
        " in its registers already?",
    ),
    "lanes_meet_often": Cause(
        "the lanes meet in every block",
        "A lane can keep what it has added up until the row is over. Which line makes the lanes"
        " meet before that?",
    ),
    "empty_tiles": Cause(
        "programs go on where no tile is left",
        "How many tiles have M rows, with ROWS rows a tile? And how many turns does your loop make,"
        " over all programs?",
    ),
    "input_changed": Cause(
        "an input was changed",
        "What comes in belongs to the caller. Which line writes to it, if only for a moment?",
    ),
    "work_not_shared": Cause(
        "one program does the work of all",
        "A GPU runs these programs side by side. Which part belongs to program 1, and which line"
        " gives it to it?",
    ),
    "output_read_first": Cause(
        "what an output held before the launch decides the result",
        "An output holds anything at all before the launch. Which load reads it before your store?",
    ),
    "overwritten_read": Cause(
        "the residual is read after the sum was stored in its place",
        "total holds the residual only until you store there. Which of your loads takes columns"
        " that were stored before, and what may it find?",
    ),
    "right_only_once": Cause(
        "a second run with other numbers is wrong",
        "Besides its arguments, what does your code go by: an earlier result, an address, what"
        " memory happens to hold?",
    ),
    "bad_row_swallowed": Cause(
        "a NaN or Inf is swallowed",
        "One row holds a NaN or an Inf, and whoever reads your result has to see it. Which of your"
        " lines puts a number in its place?",
    ),
    "bad_row_inside": Cause(
        "the row with a NaN or an Inf does not hold what the formula makes of it",
        "Only the row is wrong that holds a NaN or an Inf itself. Work its elements out from the"
        " formula, with what the row holds. Which step of yours comes to something else?",
        of_rms_norm=(
            "the row with a NaN or an Inf does not hold what the formula makes of it",
            "Only the row is wrong that holds a NaN or an Inf itself. Work its elements out from"
            " the formula: what is 1 / sqrt(Inf), and what is a finite number times that? Which"
            " step of yours makes a NaN of it, as Inf / Inf and 0 * Inf do?",
        ),
    ),
    "bad_row_spreads": Cause(
        "a NaN or Inf spreads further than the formula takes it",
        "One row holds a NaN or an Inf. Which results come from that row? What is NaN * 0, and"
        " where do the others meet it?",
    ),
    # functions
    "wrong_axis": Cause(
        "the statistics are taken over the wrong elements",
        "Which elements of x share one mean, and how many means are there?",
        of_rms_norm=(
            "the mean square is taken over the wrong elements",
            "Which elements of x share one mean square, and how many of these are there?",
        ),
    ),
    "wrong_return": Cause(
        "the function does not return what it should",
        "Which values does the docstring ask for, of which shape and dtype, and in which order?",
    ),
    "not_its_own": Cause(
        "one function lets another do its work",
        "The exercise asks for two algorithms, to be compared with each other. What does this one"
        " add up, and in how many passes?",
    ),
    "part_not_used": Cause(
        "the function written first is not used",
        "Which function takes in one number more? Who calls it, once for each column, and where"
        " does all that it returns go?",
    ),
    "too_many_calls": Cause(
        "a function is called more often than the exercise allows",
        "How much of the work can one call do side by side, how much is left after it, and how many"
        " calls does that make in all?",
    ),
    # gradients
    "projection_missing": Cause(
        "neither c1 nor c2 is in dx: its error lies along 1 and along xhat",
        "x reaches y on three paths: by itself, through the mean and through rstd. Which of them"
        " does dx know?",
    ),
    "c1_missing": Cause(
        "the c1 term is missing from dx: its error is a multiple of xhat",
        "Move all elements of a row away from their mean by one factor: y stays as it is. Which"
        " term of dx says so?",
        of_rms_norm=(
            "the c1 term is missing from dx: its error is a multiple of xhat",
            (
                "Make every element of a row a little larger, by one and the same factor: y stays"
                " as it is. Which term of dx says so?"
            ),
        ),
    ),
    "c2_missing": Cause(
        "the c2 term is missing from dx: its error is the same in every column",
        "Add the same number to every element of a row: y stays as it is. Which term of dx"
        " says so?",
    ),
    "c2_in_rms_norm": Cause(
        "a mean is taken out of dx",
        "Add the same number to every element of a row. Does RMSNorm leave y as it is?",
    ),
    "c2_times_xhat": Cause(
        "c2 is multiplied by xhat, too",
        "xhat * (c1 + c2) and xhat * c1 + c2: which of them is in the formula?",
    ),
    "c1_of_dy": Cause(
        "c1 is taken of dy, not of wdy",
        "What reaches xhat on the way back: dy, or what w has made of it?",
    ),
    "c2_of_dy": Cause(
        "c2 is taken of dy, not of wdy",
        "What reaches xhat on the way back: dy, or what w has made of it?",
    ),
    "w_outside_means": Cause(
        "w does not stand with dy in every term of dx",
        "Each column has a w of its own. Does a mean over the columns stay the same if w goes in,"
        " or out?",
        of_rms_norm=(
            "w does not stand with dy in every term of dx",
            (
                "Each column has a w of its own. Does a sum over the columns stay the same if w"
                " goes in, or out?"
            ),
        ),
    ),
    "xhat_in_one_term": Cause(
        "in the c1 term something else stands for xhat, or a factor rstd is missing",
        "xhat stands in c1 and beside it, each time with its rstd. What do you multiply in each of"
        " the two places?",
    ),
    "sign_of_dx": Cause(
        "dx has the wrong sign",
        "Move x a little along dx: the sum of dy * y should grow. What does it do along yours?",
    ),
    "c1_and_c2_swapped": Cause(
        "c1 and c2 have changed places",
        "One of the two means is multiplied by xhat. Which one, and what is it the mean of?",
    ),
    "sign_of_c1_or_c2": Cause(
        "c1 or c2 has the wrong sign",
        "Do the two terms add a push to dx, or take one out?",
        of_rms_norm=(
            "c1 has the wrong sign",
            "Does the c1 term add a push to dx, or take one out?",
        ),
    ),
    "vjp_divisor": Cause(
        "c1 or c2 is not the mean of its row",
        "c1 and c2 are means. Over which elements, and how many of them are there?",
        of_rms_norm=(
            "c1 is not the mean of its row",
            "c1 is a mean. Over which elements, and how many of them are there?",
        ),
    ),
    "rstd_in_dx": Cause(
        "dx has the wrong power of rstd",
        "Spread a row ten times as wide. How far does y then move for the same step in x?",
        of_rms_norm=(
            "dx has the wrong power of rstd",
            "Make a row ten times as large. How far does y then move for the same step in x?",
        ),
    ),
    "padding_in_c1": Cause(
        "padding in c1 or c2",
        "A lane past column N holds an xhat of -mean * rstd. What must the other factor hold there,"
        " and does yours?",
        of_rms_norm=(
            "padding in c1",
            "What must the factors of c1 hold in a lane past the end, and do yours?",
        ),
    ),
    "rstd_misread": Cause(
        "rstd is taken for the variance or the standard deviation",
        "A row with standard deviation 10 has rstd 0.1. What does xhat become if you treat 0.1 as"
        " yours does?",
        of_rms_norm=(
            "rstd is taken for the mean square, or for its root",
            (
                "A row with a mean square of 100 has rstd 0.1. What does xhat become if you treat"
                " 0.1 as yours does?"
            ),
        ),
    ),
    "w_missing_in_dx": Cause(
        "w is not in dx",
        "xhat is multiplied by w on the way to y. What does that do to dy on the way back?",
    ),
    "xhat_wrong": Cause(
        "something else stands where xhat belongs",
        "Which numbers stood next to w in the forward pass, and how do x and the saved statistics"
        " give them back?",
        of_rms_norm=(
            "something else stands where xhat belongs",
            (
                "Which numbers stood next to w in the forward pass, and how do x and the saved rstd"
                " give them back?"
            ),
        ),
    ),
    "b_left_in_y": Cause(
        "b is not taken out of y",
        "y = xhat * w + b. Which of the two was applied last, and so has to be undone first?",
    ),
    "xhat_not_recovered": Cause(
        "what y, w and b give is not xhat",
        "y = xhat * w + b. Which two steps lead from y back to xhat, and has rstd a part in them?",
    ),
    "tiny_w_altered": Cause(
        "a tiny element of w is altered before y - b is divided by it",
        "An element of w may be 1e-12. By which number do you divide y - b in its column?",
    ),
    "dw_sums_columns": Cause(
        "dw adds up a whole row of dy", "In how many elements of one row's y does w[i] stand?"
    ),
    "dw_without_xhat": Cause(
        "xhat is not in dw",
        "y = xhat * w + b. What is its derivative with respect to w, and what with respect to b?",
        of_rms_norm=(
            "xhat is not in dw",
            "y = xhat * w. What is its derivative with respect to w?",
        ),
    ),
    "rstd_in_db": Cause(
        "rstd is in db",
        "y = xhat * w + b. By how much does y change if b grows by 1, whatever rstd is?",
    ),
    "xhat_in_db": Cause(
        "xhat is in db",
        "y = xhat * w + b. What is its derivative with respect to b, and what with respect to w?",
    ),
    "w_in_dw": Cause(
        "w is in dw or db",
        "y = xhat * w + b. Does its derivative with respect to w, or to b, still hold w?",
        of_rms_norm=(
            "w is in dw",
            "y = xhat * w. Does its derivative with respect to w still hold w?",
        ),
    ),
    "sign_of_dw_or_db": Cause(
        "dw or db has the wrong sign",
        "dy is 1 everywhere. What is db then, and which sign does yours have?",
        of_rms_norm=(
            "dw has the wrong sign",
            (
                "dy is 1 everywhere in a row, and xhat is positive. Which sign does that row give"
                " to dw, and which does yours?"
            ),
        ),
    ),
    "skip_in_dw": Cause(
        "dskip takes part in dw",
        "dskip is the gradient that goes past the norm. Is there a w on its way, and which of the"
        " two gradients does it reach?",
    ),
    "skip_misapplied": Cause(
        "dskip is not added to dx as it comes",
        "x goes into the norm, and on past it. By how much does a step of x move what goes past it,"
        " and what do w and rstd have to do with that?",
    ),
    "rows_not_summed": Cause(
        "dw or db is no sum over the rows",
        "Every row of the matrix uses the same w. Which rows have a say in your dw, and with what"
        " weight?",
        of_rms_norm=(
            "dw is no sum over the rows",
            (
                "Every row of the matrix uses the same w. Which rows have a say in your dw, and"
                " with what weight?"
            ),
        ),
    ),
    "sum_of_zero": Cause(
        "a row whose terms add up to 0 is treated in a way of its own",
        "dy = 1, -1 has the sum 0, and is not 0. What does the formula give for such a row, and"
        " which of your lines does something else?",
    ),
    "dy_ignored": Cause(
        "a gradient does not depend on dy",
        "The loss reaches this layer through dy alone. Where does dy enter?",
    ),
    # sums over programs
    "uninitialised": Cause(
        "memory that nobody has written is added up",
        "What does a buffer hold before the first row comes, and which buffers does no row ever"
        " come to?",
    ),
    "buffer_not_accumulated": Cause(
        "a buffer that several rows share does not hold their sum",
        "A second row reaches the buffer. How does it know that somebody was there before, and what"
        " does it do with what it finds?",
    ),
    "rows_counted_twice": Cause(
        "rows are counted more than once",
        "How many rows does a step take, and by how many do you move on? Which rows does the second"
        " step take, and whose are they?",
    ),
    "product_of_sums": Cause(
        "two sums are multiplied where products are to be added up",
        "Take two rows with dy = 1, 2 and xhat = 1, -1: what is the sum of the two products, and"
        " what the product of the two sums?",
    ),
    "buffers_left_out": Cause(
        "a buffer is left out of the sum",
        "How many buffers are there to add up, and which of them has your loop not seen when it"
        " ends?",
    ),
    "rows_left_out": Cause(
        "rows are left out of the sum",
        "How many rows are there to add up, and which of them has your loop not seen when it ends?",
    ),
    "padding_rows": Cause(
        "the rows that are left out are not those of padding",
        "keep has one number for each row of the matrix. Which of them does a step read for its"
        " rows, and which rows does it then leave out?",
    ),
    "padding_times_0": Cause(
        "what stands in a row of padding is multiplied by 0, not left out",
        "A row of padding may hold NaN or Inf. What is NaN * 0, and through which of your loads do"
        " such numbers come in?",
    ),
    "sum_carried_over": Cause(
        "a chunk's sum begins with that of the chunk before",
        "Program 0 of two takes chunk 0 and then chunk 2. Which number does its sum begin with,"
        " each time?",
    ),
    "same_rows": Cause(
        "every program adds up the same rows",
        "Which line makes chunk 2 read other rows than chunk 0 does?",
    ),
    "wrong_rows": Cause(
        "the rows of a partial sum are not the ones asked for",
        "Write down the rows that program 1 should take, and those that yours takes.",
    ),
    "sums_of_the_other": Cause(
        "dw and db are made of the same sums",
        "One of the two is right. Which partial sums does the other need, and through which pointer"
        " do you load them?",
    ),
    "dw_and_db_swapped": Cause(
        "dw and db have changed places",
        "Which of the two sums holds xhat, and through which pointer do you store it?",
    ),
    # statistics in NumPy
    "variance_terms": Cause(
        "the two terms of the one-pass variance do not fit each other",
        "Take the row 1, 3: its variance is 1. What is each of your two terms there, and which of"
        " them is a mean?",
    ),
    "shift_left_in": Cause(
        "the mean is not that of the row as it came",
        "Subtract 10 from the row 11, 13. Its variance stays as it is. What happens to its mean,"
        " and what gives the right one back?",
    ),
    "row_out_of_range": Cause(
        "the row holds a number that is not between -1e6 and 1e6",
        "How large is the largest number that your function returns for this N, and how does it"
        " grow with N?",
    ),
    "row_does_not_defeat": Cause(
        "the shifted formula loses too little in this row",
        "E[d^2] is the variance plus the square of the distance from x[0] to the mean. How far away"
        " can x[0] be while the variance stays small?",
    ),
    "negative_variance": Cause(
        "a variance below zero is handed on",
        "What does 1 / sqrt(var + eps) give for var = -0.06, and what could one_pass return"
        " instead?",
    ),
    "variance_turned": Cause(
        "the absolute value is taken of a variance that rounding made negative",
        "fp32 leaves -0.06 where the variance is 0.00002. Which number is nearer to it: 0.06,"
        " or 0?",
    ),
    "not_divided": Cause(
        "a sum where a mean belongs",
        "Write a row twice, one copy behind the other. Which of your outputs changes, and"
        " should it?",
    ),
    "std_for_var": Cause(
        "var holds the standard deviation",
        "Multiply a row by 10. By which factor does its variance grow, and by which does yours?",
        of_rms_norm=(
            "a root is taken too often",
            (
                "Make a row ten times as large: by which factor does rstd shrink, and by which does"
                " yours?"
            ),
        ),
    ),
    "deviation_not_squared": Cause(
        "the deviations are not squared",
        "What do you average: x - mean, its absolute value, or its square?",
        of_rms_norm=(
            "the numbers are not squared",
            "What do you average: x, its absolute value, or its square?",
        ),
    ),
    "welford_product": Cause(
        "M2 grows by the wrong product",
        "M2 grows by a product of two deviations of x. From which mean is each of yours taken, the"
        " old or the new?",
    ),
    "welford_count": Cause(
        "the count is off",
        "By what do you divide when the first number arrives? Which mean should a row of one number"
        " have?",
    ),
    "elements_skipped": Cause(
        "elements of each row are left out",
        "Which columns does your loop visit, and with which one does it start?",
    ),
    "merge_between": Cause(
        "what the distance between the means adds to M2 is wrong",
        "One part is the number 0, the other the number 2: M2 of both together is 2. What does"
        " yours give, and what if the other part is the number 2 twice?",
    ),
    "merge_direction": Cause(
        "the merged mean lies on the wrong side",
        "The mean of a is 2, that of b is 6. Into which direction does b pull the mean of both, and"
        " into which does your line?",
    ),
    "merge_weights": Cause(
        "the means are weighed wrongly",
        "One part has a thousand numbers, the other has one. Near which of the two means must the"
        " result be?",
    ),
    "groups_left_out": Cause(
        "not all groups are merged",
        "Take five groups: which of them has no partner in the first step, and where is it when the"
        " last step is done?",
    ),
    "M2s_left_out": Cause(
        "what varies inside the chunks is left out",
        "Chunks of the columns 1, 3 and 1, 3: both means are 2. What is M2 of the row, and what is"
        " yours?",
    ),
    "short_chunk": Cause(
        "the last chunk counts as a full one",
        "19 columns in chunks of 8: how many columns has each chunk, and how many do you give to"
        " the last?",
    ),
    "empty_chunk": Cause(
        "a lane without a chunk takes part",
        "Three chunks in four lanes. In lane 3: what is `N - 3 * length`, what has it loaded, and"
        " what is 0 times that?",
    ),
    "chunks_disagree": Cause(
        "the programs of a row find different bits for it",
        "Each program adds up the same words. Which of them does program 0 take first, and which"
        " does program 1?",
    ),
    "batch_dependent": Cause(
        "a row has other bits in a batch of another number of rows",
        "To which running sum does your kernel add each square of the row, and in which order? Say"
        " it for both launches: does M or UNROLL decide any of it?",
    ),
    "chunk_left_out": Cause(
        "a chunk of the row is left out",
        "19 columns in chunks of 8 are how many chunks, and which of them do you take?",
    ),
    "empty_partial": Cause(
        "an empty side spoils the merge",
        "What is n_b / n when neither side has a number, and what should come out? And if one side"
        " has a single number, and the other none?",
    ),
    # statistics as kernels
    "rstd_for_var": Cause(
        "var holds a reciprocal root",
        "Multiply a row by 10. Its variance becomes 100 times as large; what does yours do?",
    ),
    "empty_lane": Cause(
        "a lane that has seen no element spoils the row",
        "With N = 5 and BLOCK = 8, what is the count of lane 6 when its mean is moved, and what is"
        " d / count there?",
    ),
    "lane_counts": Cause(
        "a lane counts more or fewer elements than it has seen",
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
        "w or b may be None. By which number is xhat then multiplied, and which one is added"
        " to it?",
    ),
    "gradient_missing": Cause(
        "a gradient is never handed back",
        "What does backward return for each argument of forward, and who would miss the one that is"
        " None?",
    ),
    "needs_misread": Cause(
        "a gradient depends on whether another input needs one",
        "ctx.needs_input_grad has one entry for each argument of forward. Which entry belongs to"
        " which of your gradients?",
    ),
    "gradients_misreturned": Cause(
        "what backward returns does not fit the arguments of forward",
        "backward returns one value for each argument of forward, in their order: a gradient in the"
        " shape of its tensor, or None. Which argument does PyTorch speak of, and what stands at"
        " its place in your return?",
    ),
    "gradients_swapped": Cause(
        "two gradients have changed places",
        "Autograd goes by position. In which order does forward take w and b, and in which does"
        " backward return theirs?",
    ),
    "gradient_dtype": Cause(
        "a gradient went through the wrong dtype",
        "dw arrives as fp32. Through which dtypes does yours go, and what does w's dtype have to do"
        " with x's?",
    ),
    "dy_overwritten": Cause(
        "the incoming gradient was written to",
        "In y + x the addition hands one and the same dy to both. What does the other reader find"
        " in it after yours?",
    ),
    "eps_not_kept": Cause(
        "the statistics were computed anew, with another eps",
        "Which eps did forward use, and what did its launch give you that spares the question?",
    ),
    "saved_order": Cause(
        "mean and rstd change places between forward and backward",
        "Follow mean: in which place is it saved, in which is it taken out, and in which does"
        " backward's launch want it?",
    ),
    "wrong_tensor_saved": Cause(
        "backward was given another tensor than forward read",
        "mean and rstd are those of one matrix. Is it the one that backward's launch gets in the"
        " place of x?",
    ),
    "change_unnoticed": Cause(
        "a change of x between forward and backward goes unnoticed",
        "PyTorch compares a saved tensor's version with the one it had. Is x kept by"
        " ctx.save_for_backward, and is what you keep the caller's tensor or a copy?",
    ),
    "tensor_on_ctx": Cause(
        "a tensor is kept on ctx without ctx.save_for_backward",
        "PyTorch compares the version of each saved tensor with the one it had. Which call tells it"
        " what to compare?",
    ),
    "second_derivative_wrong": Cause(
        "a second derivative is wrong, without an error",
        "With create_graph=True autograd records the operations in backward. What can it record of"
        " a launch, and what do you want to happen if somebody differentiates the result again?",
    ),
    # tests of kernels
    "kernel_not_called": Cause(
        "a test never calls the kernel that it gets",
        "The kernel is the test's argument. On which line do you call it, and does every call of"
        " the test come there?",
    ),
    "right_kernel_accused": Cause(
        "a test accuses a right kernel",
        "By how much do you let a right kernel differ from the exact result: what does rounding"
        " make of numbers as large as yours, in their dtype, if they are added in another order?"
        " And do you ask only for what the kernel promises?",
    ),
    "test_undecided": Cause(
        "a test lets wrong kernels pass and accuses right ones",
        "Print what the kernel returns and what you expect. Is your expectation true for the right"
        " kernel, for the same input?",
    ),
    "padding_not_caught": Cause(
        "a test lets a kernel pass whose padding gets into the variance",
        "How many spare lanes does a row of yours leave in this kernel's blocks? And how large is"
        " the mean that each of them adds?",
    ),
    "one_pass_not_caught": Cause(
        "a test lets a kernel pass that takes the variance in one pass",
        "How large is the square of your mean beside your variance, and how many digits does fp32"
        " have? If var came out negative, what would y be, and would your comparison notice?",
    ),
    "nan_not_caught": Cause(
        "a test lets a kernel pass whose y is NaN",
        "Is NaN > 0.001? Is NaN <= 0.001? Which of the two does your comparison ask, and when does"
        " it raise?",
    ),
    "strides_not_caught": Cause(
        "a test lets a kernel pass that ignores a stride",
        "Print x.stride(). Which of the two numbers could this kernel take for something else, and"
        " get the same?",
    ),
    "leading_dimensions_not_caught": Cause(
        "a test lets a kernel pass that miscounts the rows",
        "Work out M for your x as this kernel does. For which shapes is that the number of rows?"
        " And which of dx, dw and db do you look at?",
    ),
    "overwriting_not_caught": Cause(
        "a test lets a kernel pass that writes to its inputs",
        "What did dy, x and w hold before the call, and how do you know afterwards? Which numbers"
        " would not show that they were written?",
    ),
    "remainder_not_caught": Cause(
        "a test lets a kernel pass that loses the last rows",
        "Divide your M by the number of rows that this kernel takes together. What is left over?"
        " And for which M and N does it do so?",
    ),
    "rounded_statistics_not_caught": Cause(
        "a test lets a kernel pass whose saved statistics are rounded",
        "In your dtype, how far apart are the numbers near your mean? How much is that in units of"
        " your standard deviation?",
    ),
    # running
    "dtypes_differ": Cause(
        "tensors of two dtypes are compared or multiplied as if they had one",
        "Print the dtype of each tensor that you compare or multiply. Which of them is fp32, and"
        " which is fp64 or half precision? To which dtype do you bring both first?",
    ),
    "refused_in_place": Cause(
        "PyTorch refuses to write to a tensor in place",
        "Which tensor does that line write to? Do several of its elements lie in one place of"
        " memory, as after expand, or is it a leaf that needs a gradient? Which operation gives you"
        " a new tensor?",
    ),
    "function_raised": Cause(
        "the function raises an error",
        "Print the type, the shape and the dtype of each value in that line, just before it. Which"
        " of them does not fit what the error says?",
    ),
    "kernel_raised": Cause(
        "the kernel raises an error",
        "Which values and names stand in that line, and of which shape and dtype is each value?"
        " Which of them does the error speak of?",
    ),
    "time_limit": Cause(
        "the code takes too long",
        "Which loop is it in, how many turns should it take for these sizes, and what ends it?",
    ),
    "output_flood": Cause(
        "the code prints too much",
        "Which values do you want to see, of which program and lane, and how often does the line"
        " run?",
        (
            "the code prints too much",
            "Which values do you want to see, and how often does the line run that prints them?",
        ),
    ),
    "writes_files": Cause(
        "the code writes more to files than a check has room for",
        "Which line writes a file, and does the exercise ask for one? The check looks at what comes"
        " back, and at no file.",
    ),
    "too_many_processes": Cause(
        "the code starts more threads or processes than a check has room for",
        "Which line starts a thread or a process, and how often does it run? Does the exercise need"
        " more than one?",
    ),
    "too_much_memory": Cause(
        "the code takes more memory than a check has room for",
        "Which line makes the largest tensor, of how many numbers is it, and how often does the"
        " line run?",
    ),
    "not_in_the_sandbox": Cause(
        "the code asks the system for what a check does not give",
        "The check gives you tensors, and takes tensors back. Which line asks for a file, a process"
        " or a connection, and does the exercise need it?",
    ),
    "misaligned": Cause(
        "a tensor descriptor begins at an address that it cannot have",
        "A tensor descriptor begins at a multiple of 16 bytes. At which byte of its tensor does"
        " this one begin, in each program? Which loads take any address?",
    ),
    "shapes_differ": Cause(
        "two blocks do not fit together",
        "Which shape has each block in that line: one number per row, one per column, or a whole"
        " tile? `[:, None]` makes a column out of a block of rows, and `[None, :]` a row.",
    ),
    "would_not_compile": Cause(
        "the kernel runs here, but a GPU's compiler refuses it",
        "What does the compiler need to know there before the kernel runs?",
    ),
    "crash": Cause(
        "the kernel ended its process",
        "Which address does a lane use when it is past the end of the tensor?",
        (
            "the function ended its process",
            "Which of its lines reads or writes memory by address, or ends Python?",
        ),
    ),
    "constant_factor": Cause(
        "the result is the right one times a fixed number",
        "Divide what you got by what is expected: by which number, the same in all places, is your"
        " result multiplied, and in which line?",
    ),
    "wrong_values": Cause(
        "wrong values",
        "Work the first wrong element out by hand, from the formula: which step of yours gives"
        " something else?",
    ),
    # launches
    "launch_not_legal": Cause(
        "no kernel can be launched like this",
        "ROWS, BLOCK and num_warps are whole powers of two, and a program has 32 warps at most."
        " Which of your lines makes another number?",
    ),
    "columns_left_out": Cause(
        "BLOCK is smaller than a row",
        "The program has no loop over the columns. Which of them does a tile of BLOCK columns"
        " reach?",
    ),
    "lanes_idle": Cause(
        "BLOCK is larger than it has to be",
        "Which is the smallest power of two that holds the row? What do the lanes past it do?",
    ),
    "too_few_programs": Cause(
        "some multiprocessors have nothing to do",
        "M / ROWS programs, and 132 multiprocessors: what may ROWS be for so few rows?",
    ),
    "tile_spills": Cause(
        "the tile does not fit into the registers",
        "How many numbers does a thread get, and how many registers does it have? Fewer rows, or"
        " more warps?",
    ),
    "too_little_under_way": Cause(
        "too little is under way",
        "How many programs does a multiprocessor hold, what stops it from holding more, and how"
        " many bytes of x has each of them asked for?",
    ),
    "launch_unfit": Cause(
        "several launches do not fit, for different reasons",
        "Take the smallest case first. The others may follow.",
    ),
    "below_the_floor": Cause(
        "on this GPU it reaches less than nine tenths of the floor's bandwidth",
        "What is known without a clock rules out what cannot be fast, and no more. What would put"
        " more bytes under way, or let fewer threads wait in each sum?",
    ),
    # an account of bytes
    "w_counted_once": Cause(
        "w is counted once for all programs",
        "Which programs run the line that loads w? It does not matter where the bytes come from.",
    ),
    "w_counted_for_each_row": Cause(
        "w is counted for each row",
        "How many rows does one program have, and how often does it load w?",
    ),
    "statistics_not_counted": Cause(
        "not all statistics are counted",
        "Which tensors with one number a row does the kernel load or store?",
    ),
    "statistics_in_itemsize": Cause(
        "the statistics are counted in the dtype of x",
        "In which dtype are mean and rstd kept, and how many bytes is that?",
    ),
    "statistics_loaded_once": Cause(
        "the statistics are counted too rarely",
        "In which launches are mean and rstd loaded? And in the one that has a grid of two"
        " dimensions, by how many programs for each row?",
    ),
    "programs_rounded_down": Cause(
        "the last program is not counted",
        "9 rows, 4 a program or a chunk: how many programs or chunks are there?",
    ),
    "numbers_for_bytes": Cause(
        "numbers are counted, not bytes", "How many bytes has one number of each tensor?"
    ),
    "loads_miscounted": Cause(
        "a load or a store is counted too often or too rarely",
        "Go through the kernels line by line. For each tl.load and each tl.store: how many programs"
        " run it, and how many lanes are not masked off?",
    ),
    "partials_not_counted": Cause(
        "not all partial sums are counted",
        "How many rows of partial sums are there, for how many gradients, and who reads what the"
        " second launch has written?",
    ),
    "partials_in_itemsize": Cause(
        "the partial sums are counted in the dtype of x",
        "In which dtype are partial sums kept, and how many bytes is that?",
    ),
    "gradients_not_counted": Cause(
        "a gradient that is written is not counted",
        "What has been written when all three launches are over?",
    ),
    "gradients_in_fp32": Cause(
        "dw and db are counted in fp32",
        "Partial sums are fp32. To which dtype does the last kernel round dw and db?",
    ),
    "only_matrices_counted": Cause(
        "only the matrices are counted",
        "What else does each program load or store: one number a row, or one a column?",
    ),
}

# Why a file was not run at all. A verdict says it with the file's own names; the page of a class
# uses these words.
REFUSALS: dict[str, str] = {
    "syntax_error": N_("the file is no valid Python"),
    "not_text": N_("the file is no text: it was saved in another encoding, or is no Python file"),
    "not_utf8": N_("the file is not saved as UTF-8"),
    "too_large": N_("the file is larger than 1 MB"),
    "too_complex": N_("the file is too complex to be read"),
    "no_file": N_("the file cannot be read"),
    "no_function": N_("the function that the course calls is not in the file"),
    "no_kernel": N_("the kernel that the course launches is not in the file"),
    "import_fails": N_("the file imports a module that is not there"),
    "not_allowed": N_("the file uses what the exercise does not allow"),
    "undefined_name": N_("the file uses a name that is defined nowhere"),
    "unwritten": N_("a part of the file is still unwritten"),
}
