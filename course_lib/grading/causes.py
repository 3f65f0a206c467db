"""What can be wrong with a kernel, in words: a headline, and a question that leads to the remedy without giving it."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    headline: str
    question: str


CAUSES: dict[str, Cause] = {
    # statistics
    "padding_in_variance": Cause("padding in the variance", "What does `x - mean` hold in a lane past column N, and what is its square?"),
    "divisor": Cause(
        "the wrong divisor", "How many elements did you add up, and how many lanes does a block have? Which of the two does the mean want?"
    ),
    "unbiased_variance": Cause(
        "the variance is divided by N - 1", "Which variance does the formula ask for: the one of a sample, or the one of these N numbers?"
    ),
    "eps_missing": Cause("eps is missing", "What is 1 / sqrt(var) for a row of equal numbers?"),
    "eps_outside": Cause("eps stands outside the root", "1 / (sqrt(v) + eps) or 1 / sqrt(v + eps): which of them does PyTorch compute?"),
    "eps_hard_coded": Cause("eps is a fixed number", "The kernel gets eps as an argument. Where do you use it?"),
    "root_missing": Cause("the root is missing", "rstd is 1 over the standard deviation. What have you taken 1 over?"),
    "cancellation": Cause(
        "cancellation: the statistics lose their digits when the mean is far from zero",
        "With a mean of 1000, how large are E[x^2] and E[x]^2, and how many digits of their difference does fp32 keep?",
    ),
    "low_precision": Cause(
        "arithmetic in half precision", "In which dtype do you add up, and how many digits does a sum of 1000 numbers need?"
    ),
    "block_not_accumulated": Cause("only one block counts", "After the loop, which blocks are in the sum: all of them, or the last one?"),
    "mean_not_subtracted": Cause("the mean is not subtracted", "Which of x and x - mean do you multiply by rstd?"),
    "mean_subtracted": Cause("a mean is subtracted", "RMSNorm leaves the mean in. Where does yours take it out?"),
    # output
    "w_ignored": Cause("w is not applied", "Where does the weight enter y?"),
    "b_ignored": Cause("b is not applied", "Where does the bias enter y?"),
    "w_twice": Cause("w is applied twice", "How often does w appear between x and y?"),
    "residual_ignored": Cause("the residual is not added", "What should `total` hold, besides x?"),
    "unrounded_total": Cause(
        "y is computed from the sum before it was rounded",
        "A second kernel would read `total` from memory. Which number would it see, the exact sum or the stored one?",
    ),
    "wrong_statistic_saved": Cause(
        "the saved statistic is not rstd",
        "The backward pass multiplies by what you save. Is it 1 / sqrt(var + eps), or something on the way to it?",
    ),
    # memory
    "not_written": Cause("the output is never written", "Which `tl.store` writes it, and is that line reached?"),
    "statistics_not_saved": Cause("the statistics are not saved", "The backward pass reads mean and rstd. Who writes them?"),
    "partly_written": Cause(
        "part of the output is never written", "Which elements does each program store, and does every element belong to one?"
    ),
    "only_one_block": Cause("only the first block is right", "What happens to element BLOCK of a row, and to the elements after it?"),
    "mask_missing": Cause("lanes past the last column take part", "For which N do all your cases pass? What do the spare lanes load?"),
    "load_outside": Cause("the kernel reads outside its tensors", "Which lanes have no element to read, and what keeps them from reading?"),
    "store_outside": Cause("the kernel writes outside its output", "Which lanes may store, and which lanes does your store let through?"),
    "row_mask": Cause(
        "rows past the last one take part", "M is no multiple of ROWS: what do the last program's spare rows load and store?"
    ),
    "stride_ignored": Cause(
        "rows are not where the kernel looks",
        "The rows of x, and those of y, are `stride` elements apart. Is that N, and is it the same for both?",
    ),
    "offset_32_bit": Cause("row offsets overflow 32 bits", "row * stride passes 2^31 here. How wide is `tl.program_id(0)`?"),
    "input_changed": Cause("an input was changed", "x, w and b belong to the caller. Which store writes to one of them?"),
    "bad_row_spreads": Cause(
        "a NaN or Inf is not handled as the formula does",
        "Row 1 holds a NaN or an Inf. Which rows should show it, and what should they hold?",
    ),
    # functions
    "wrong_axis": Cause(
        "the statistics are taken over the wrong elements", "Which elements of x share one mean, and how many means are there?"
    ),
    "wrong_return": Cause(
        "the function does not return what it should",
        "Which values does the docstring ask for, of which shape and dtype, and in which order?",
    ),
    # running
    "function_raised": Cause("the function cannot be run", "Which shapes and dtypes do the values in that line have?"),
    "kernel_raised": Cause(
        "the kernel cannot be run", "What does the line do with values that are blocks, and which of its names are Triton's?"
    ),
    "time_limit": Cause("the code does not end", "Which loop is it in, and what would end it?"),
    "output_flood": Cause(
        "the code prints too much", "Which values do you want to see, of which program and lane, and how often does the line run?"
    ),
    "would_not_compile": Cause(
        "the kernel runs here, but a GPU's compiler refuses it", "What does the compiler need to know there before the kernel runs?"
    ),
    "crash": Cause("the kernel ended its process", "Which address does a lane use when it is past the end of the tensor?"),
    "wrong_values": Cause(
        "wrong values", "Work the first wrong element out by hand, from the formula: which step of the kernel gives something else?"
    ),
}
