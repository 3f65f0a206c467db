"""Wrong answers to steps, as learners write them: what a check says, and which line it shows.

They were written before any rule was looked at, one to four for a lesson. ``says`` is the headline
of the verdict, ``line`` a text of the line that it shows.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    step: str
    changes: tuple[tuple[str, str], ...]  # of texts of the solved cell
    says: str
    line: str


MISTAKES = (
    Mistake(
        "00-deal",
        (("lanes * programs + program", "program * BLOCK + lanes * programs"),),
        "The kernel writes outside its output.",
        "program * BLOCK + lanes * programs",
    ),
    Mistake(
        "00-deal",
        (("lanes * programs + program", "lanes + program * programs"),),
        "The kernel writes outside its output.",
        "lanes + program * programs",
    ),
    Mistake(
        "00-slice",
        (("(offsets >= start) & (offsets < stop)", "offsets >= start & offsets < stop"),),
        "The kernel raises an error.",
        "offsets >= start & offsets < stop",
    ),
    Mistake(
        "00-slice",
        (
            (
                "(offsets >= start) & (offsets < stop)",
                "(offsets >= start) & (offsets < start + BLOCK)",
            ),
        ),
        "Wrong values.",
        "start + BLOCK",
    ),
    Mistake("00-smallest", (('other=float("inf")', "other=100"),), "Wrong values.", "other=100"),
    Mistake(
        "00-smallest",
        ((', other=float("inf")', ""),),
        "What a masked lane holds takes part.",
        "x = tl.load",
    ),
    Mistake(
        "01-mend",
        (("tl.where(mask, x - mean, 0.0)", "(x - mean) * cols"),),
        "Wrong values.",
        "(x - mean) * cols",
    ),
    Mistake(
        "01-mend",
        (("tl.where(mask, x - mean, 0.0)", "tl.where(mask, x, mean)"),),
        "Wrong values.",
        "tl.where(mask, x, mean)",
    ),
    Mistake(
        "01-eps",
        (("tl.rsqrt(var + eps)", "1 / tl.sqrt(var) + eps"),),
        "eps is added to the reciprocal root.",
        "1 / tl.sqrt(var) + eps",
    ),
    Mistake(
        "01-eps",
        (("tl.rsqrt(var + eps)", "1 / (var + eps)"),),
        "The root is missing.",
        "1 / (var + eps)",
    ),
    Mistake(
        "01-columns",
        (("tl.load(w_ptr + cols, mask=mask, other=0.0)", "tl.load(w_ptr)"),),
        "Every lane loads the same element.",
        "w = tl.load(w_ptr)",
    ),
    Mistake(
        "01-columns",
        (("b = tl.load(b_ptr", "b = tl.load(w_ptr"),),
        "A load reads another tensor than its name says.",
        "b = tl.load(w_ptr",
    ),
    Mistake(
        "01-rows",
        (
            (
                "x_ptr + row * stride_x + cols, mask=mask, other=0.0",
                "x_ptr + row * stride_x + cols, mask=mask",
            ),
        ),
        "What a masked lane holds takes part.",
        "x = tl.load",
    ),
    Mistake(
        "01-rows",
        (
            (
                "tl.store(y_ptr + row * stride_y + cols, x - mean, mask=mask)",
                "tl.store(y_ptr + row * stride_y + cols, x - mean)",
            ),
        ),
        "The kernel writes outside its output.",
        "tl.store",
    ),
    Mistake(
        "02-check",
        (("(y * y).mean(axis=1)", "(y * y).mean(axis=1, keepdims=True)"),),
        "The function does not return what it should.",
        "keepdims",
    ),
    Mistake(
        "02-check",
        (("(y * y).mean(axis=1)", "(y * y).sum(axis=1) / len(y)"),),
        "Wrong values.",
        "len(y)",
    ),
    Mistake(
        "02-half",
        (
            ("mask=mask, other=0.0).to(tl.float32)\n    w", "mask=mask, other=0.0)\n    w"),
            ("y = x * x * w", "y = (x * x).to(tl.float32) * w"),
        ),
        "Arithmetic in half precision.",
        "x = tl.load(x_ptr + cols, mask=mask, other=0.0)",
    ),
    Mistake(
        "02-save",
        (("tl.max(tl.abs(x), axis=0)", "tl.abs(tl.max(x, axis=0))"),),
        "Negative numbers count with their sign.",
        "tl.abs(tl.max",
    ),
    Mistake(
        "02-save",
        (("tl.store(peak_ptr + row, peak)", "tl.store(peak_ptr + cols, peak, mask=cols < N)"),),
        "The kernel writes outside its output.",
        "tl.store(peak_ptr + cols",
    ),
    Mistake(
        "03-mend",
        (("tl.where(cols < N, x - mean, 0.0)", "tl.where(x != 0, x - mean, 0.0)"),),
        "Wrong values.",
        "x != 0",
    ),
    Mistake(
        "03-mend",
        (("tl.sum(deviation * deviation) / N", "tl.sum(deviation) / N"),),
        "A number is not squared.",
        "tl.sum(deviation) / N",
    ),
    Mistake(
        "03-column",
        (
            (
                "mean = np.mean(x, axis=1)\n    return x - mean[:, None]",
                "mean = np.mean(x, axis=0)\n    return x - mean",
            ),
        ),
        "The statistics are taken over the wrong elements.",
        "axis=0",
    ),
    Mistake(
        "03-column",
        (
            (
                "mean = np.mean(x, axis=1)\n    return x - mean[:, None]",
                "mean = np.mean(x, axis=0)\n    return x - mean[:, None]",
            ),
        ),
        "The statistics are taken over the wrong elements.",
        "axis=0",
    ),
    Mistake(
        "03-widen",
        (
            (
                "x = x.astype(np.float32)\n    return np.mean(x * x, axis=1)",
                "return np.mean(x * x, axis=1).astype(np.float32)",
            ),
        ),
        "Arithmetic in half precision.",
        ".astype(np.float32)",
    ),
    Mistake(
        "03-widen",
        (("np.mean(x * x, axis=1)", "np.mean(x * x, axis=0)"),),
        "The function does not return what it should.",
        "axis=0",
    ),
    Mistake(
        "04-share",
        (("n_b / (n_a + n_b)", "(n_a + n_b) / n_b"),),
        "Wrong values.",
        "(n_a + n_b) / n_b",
    ),
    Mistake(
        "04-between",
        (("d * n_b / n, d * n_a / n", "d * n_b / n, d * n_b / n"),),
        "Wrong values.",
        "d * n_b / n",
    ),
    Mistake(
        "04-between",
        (("d * n_b / n, d * n_a / n", "d / n_b, d / n_a"),),
        "Wrong values.",
        "d / n_b",
    ),
    Mistake(
        "04-empty-sides",
        (("np.maximum(n, 1)", "(n + 1)"),),
        "The divisor is too large where there are numbers.",
        "(n + 1)",
    ),
    Mistake(
        "05-loop",
        (("cols = start + tl.arange(0, BLOCK)", "cols = tl.arange(0, BLOCK)"),),
        "Every step adds up the first block again.",
        "cols = tl.arange(0, BLOCK)",
    ),
    Mistake(
        "05-loop",
        (("squares += x * x", "squares = x * x"),),
        "Only one block counts.",
        "squares = x * x",
    ),
    Mistake(
        "05-loop",
        (("range(0, N, BLOCK)", "range(0, N // BLOCK)"),),
        "Wrong values.",
        "range(0, N // BLOCK)",
    ),
    Mistake(
        "05-wide",
        (
            ("x = tl.load(x_ptr + row).to(tl.float32)", "x = tl.load(x_ptr + row)"),
            (
                "tl.store(square_ptr + row, x * x)",
                "tl.store(square_ptr + row, (x * x).to(tl.float32))",
            ),
        ),
        "Arithmetic in half precision.",
        "x = tl.load(x_ptr + row)",
    ),
    Mistake(
        "05-count",
        (("count += mask.to(tl.float32)", "count += 1.0"),),
        "A lane counts more or fewer elements than it has seen.",
        "count += 1.0",
    ),
    Mistake(
        "05-count",
        (
            (
                "tl.where(mask, x - mean, 0.0) / tl.maximum(count, 1.0)",
                "(x - mean) / tl.maximum(count, 1.0)",
            ),
        ),
        "A lane without an element moves its mean.",
        "(x - mean) / tl.maximum",
    ),
    Mistake(
        "05-reduce",
        (
            (
                "low, high = tl.minimum(low_a, low_b), tl.maximum(high_a, high_b)",
                "low, high = tl.minimum(low_a, high_a), tl.maximum(low_b, high_b)",
            ),
        ),
        "Wrong values.",
        "tl.minimum(low_a, high_a)",
    ),
    Mistake(
        "05-reduce",
        (("return low, high", "return high, low"),),
        "Two values have changed places.",
        "return high, low",
    ),
    Mistake(
        "06-tree",
        (
            (
                "held = held[:stride] + held[stride : 2 * stride]",
                "held[:stride] = held[stride : 2 * stride]",
            ),
        ),
        "Wrong values.",
        "held[:stride] = held[stride",
    ),
    Mistake(
        "06-tree",
        (("held[:stride] + held[stride : 2 * stride]", "held[:stride] + held[1 : stride + 1]"),),
        "Elements side by side are added.",
        "held[1 : stride + 1]",
    ),
    Mistake(
        "06-lanes",
        (("mask=cols < N, other=0.0)", "mask=cols < N)"),),
        "What a masked lane holds takes part.",
        "total += tl.load",
    ),
    Mistake(
        "06-lanes",
        (
            (
                "total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)",
                "total += tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), axis=0)",
            ),
        ),
        "Every lane adds the whole block.",
        "tl.sum(tl.load",
    ),
    Mistake(
        "06-floor",
        (("gbps * 1e9) * 1e6", "gbps * 1e9)"),),
        "The result is in seconds.",
        "return moved",
    ),
    Mistake(
        "06-floor",
        (("sweeps * M * N * itemsize", "M * N * itemsize"),),
        "The sweeps are not counted.",
        "moved = M * N * itemsize",
    ),
    Mistake(
        "08-tile",
        (("rows[:, None] * stride + cols[None, :]", "rows * stride + cols"),),
        "Two blocks do not fit together.",
        "rows * stride + cols",
    ),
    Mistake(
        "08-tile",
        (
            ("rows[:, None] * stride + cols[None, :]", "rows[None, :] * stride + cols[:, None]"),
            ("mask=(cols < N)[None, :]", "mask=(cols < N)[:, None]"),
        ),
        "Two blocks do not fit together.",
        "tl.store(sum_ptr + rows",
    ),
    Mistake(
        "08-broadcast",
        (
            ("mean = tl.sum(x, axis=1) / BLOCK", "mean = tl.sum(x, axis=0) / BLOCK"),
            ("mean[:, None]", "mean[None, :]"),
        ),
        "The statistics are taken over the wrong elements.",
        "axis=0",
    ),
    Mistake(
        "08-broadcast",
        (("x - mean[:, None]", "x[:, None] - mean"),),
        "Two blocks do not fit together.",
        "x[:, None]",
    ),
    Mistake(
        "08-rows",
        (
            (
                "(rows < M)[:, None] & (cols < N)[None, :]",
                "(rows < M)[None, :] & (cols < N)[None, :]",
            ),
        ),
        "Two blocks do not fit together.",
        "(rows < M)[None, :]",
    ),
    Mistake(
        "08-rows",
        (("row_mask = rows < M", "row_mask = rows < N"),),
        "The kernel writes outside its output.",
        "rows < N",
    ),
    Mistake(
        "09-round",
        (
            (
                "total = x + residual\n    wide = total.float()",
                "total = x + residual\n    wide = x.float() + residual.float()",
            ),
        ),
        "y or rstd is computed from the sum before it was rounded.",
        "wide",
    ),
    Mistake(
        "09-round",
        (("wide * wide).mean(dim=-1, keepdim=True)", "wide * wide).mean()"),),
        "The statistics are taken over the wrong elements.",
        ".mean()",
    ),
    Mistake(
        "09-add",
        (("start = row * stride_residual", "start = stride_residual"),),
        "Every program takes the same row.",
        "start = stride_residual",
    ),
    Mistake(
        "09-add",
        (("exact.to(total_ptr.dtype.element_ty)", "exact.to(tl.float16)"),),
        "A tensor goes through another tensor's dtype.",
        "tl.float16",
    ),
    Mistake(
        "10-along-one",
        (("push - push.mean()", "push - push.sum()"),),
        "The sum is subtracted where the mean belongs.",
        "push.sum()",
    ),
    Mistake(
        "10-along-one",
        (("push - push.mean()", "push - push[0]"),),
        "One element is subtracted from all.",
        "push[0]",
    ),
    Mistake(
        "10-along-xhat",
        (("(xhat * push).mean()", "(xhat * push).sum()"),),
        "The sum stands where the mean belongs.",
        ".sum()",
    ),
    Mistake(
        "10-along-xhat",
        (("xhat * (xhat * push).mean()", "xhat * push.mean()"),),
        "The mean of push is taken for the number of xhats.",
        "push.mean()",
    ),
    Mistake(
        "10-swap",
        (
            (
                "wdy - wdy.mean() - xhat * (xhat * wdy).mean()",
                "wdy - wdy.mean() - (xhat * wdy).mean()",
            ),
        ),
        "Wrong values.",
        "- (xhat * wdy).mean()",
    ),
    Mistake(
        "11-two-sums",
        (
            ("tl.sum(xhat * wdy) / N", "tl.sum(xhat * wdy) / BLOCK"),
            ("tl.sum(wdy) / N", "tl.sum(wdy) / BLOCK"),
        ),
        "The wrong divisor.",
        "/ BLOCK",
    ),
    Mistake(
        "11-two-sums",
        (("c2 = tl.sum(wdy) / N", "c2 = tl.sum(wdy * mask)"),),
        "A sum where a mean belongs.",
        "c2 = tl.sum(wdy * mask)",
    ),
    Mistake(
        "11-two-sums",
        (
            ("c1 = tl.sum(xhat * wdy) / N", "c1 = tl.sum(wdy) / N"),
            ("c2 = tl.sum(wdy) / N", "c2 = tl.sum(xhat * wdy) / N"),
        ),
        "Two values have changed places.",
        "c1 =",
    ),
    Mistake(
        "11-taken-out-first",
        (("tl.where(mask, wdy - c2, 0.0)", "tl.where(mask, wdy + c2, 0.0)"),),
        "A sign is wrong.",
        "wdy + c2",
    ),
    Mistake(
        "11-own-strides",
        (("row * dy_row + cols * dy_col", "row * dy_row * dy_col + cols"),),
        "The kernel reads outside its tensors.",
        "dy_row * dy_col",
    ),
    Mistake(
        "12-take",
        (
            (
                "while tl.atomic_cas(lock_ptr, 0, 1) == 1:",
                "while tl.atomic_cas(lock_ptr, 1, 0) == 1:",
            ),
        ),
        "A program goes on without the lock.",
        "atomic_cas(lock_ptr, 1, 0)",
    ),
    Mistake(
        "12-take",
        (
            (
                "while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass\n",
                "tl.atomic_cas(lock_ptr, 0, 1)\n",
            ),
        ),
        "A program goes on without the lock.",
        "tl.atomic_cas",
    ),
    Mistake(
        "12-take",
        (("    tl.atomic_xchg(lock_ptr, 0)", "    tl.atomic_xchg(lock_ptr, 1)"),),
        "A deadlock.",
        "tl.atomic_xchg(lock_ptr, 1)",
    ),
    Mistake(
        "12-barrier",
        (
            (
                "    tl.debug_barrier()\n    tl.atomic_xchg(lock_ptr, 0)",
                "    tl.atomic_xchg(lock_ptr, 0)\n    tl.debug_barrier()",
            ),
        ),
        "A barrier is missing inside the program.",
        "tl.atomic_xchg(lock_ptr, 0)",
    ),
    Mistake(
        "12-first",
        (("if tl.atomic_xchg(flag_ptr, 1) == 1:", "if tl.atomic_xchg(flag_ptr, 1) == 0:"),),
        "A number is read too early.",
        "== 0",
    ),
    Mistake(
        "13-slot",
        (("partial_ptr + row * BLOCK + cols, part", "partial_ptr + row * cols, part"),),
        "Two programs write to the same elements.",
        "row * cols",
    ),
    Mistake(
        "13-chunk",
        (("(rows < M) & (within < rows_a_chunk)", "rows < M & within < rows_a_chunk"),),
        "The kernel raises an error.",
        "rows < M & within",
    ),
    Mistake(
        "13-chunk",
        (("(rows < M) & (within < rows_a_chunk)", "(rows < M) & (rows < rows_a_chunk)"),),
        "Wrong values.",
        "(rows < rows_a_chunk)",
    ),
    Mistake(
        "13-walk",
        (("db += tl.load", "db = tl.load"),),
        "Only the last turn of the loop counts.",
        "db = tl.load",
    ),
    Mistake(
        "13-walk",
        (("range(program, M, tl.num_programs(0))", "range(program, M, BLOCK)"),),
        "Wrong values.",
        "BLOCK)",
    ),
    Mistake(
        "13-walk",
        (("dy_ptr + row * BLOCK + cols", "dy_ptr + program * BLOCK + cols"),),
        "Every turn of the loop takes the same elements.",
        "program * BLOCK + cols)",
    ),
    Mistake(
        "14-rows",
        (("x.reshape(-1, x.shape[-1]).contiguous()", "x.contiguous().reshape(x.shape[-1], -1)"),),
        "The function does not return what it should.",
        "reshape(x.shape[-1], -1)",
    ),
    Mistake(
        "14-back",
        (("dx.view(dy.shape), dw.to(w.dtype)", "dx.view(dy.shape), dw.to(dx.dtype)"),),
        "A gradient went through the wrong dtype.",
        "dw.to(dx.dtype)",
    ),
    Mistake(
        "14-back",
        (("dx.view(dy.shape), dw.to(w.dtype)", "dw.to(w.dtype), dx.view(dy.shape)"),),
        "The function does not return what it should.",
        "dw.to(w.dtype), dx",
    ),
    Mistake(
        "15-report",
        (("max(call_us, memory_us)", "call_us + memory_us"),),
        "The two times are added.",
        "call_us + memory_us",
    ),
    Mistake(
        "15-report", (("moved / time_us / 1e3", "moved / time_us * 1e-9"),), "Wrong values.", "1e-9"
    ),
    Mistake(
        "15-median",
        (("np.median(times[warm_up:])", "np.median(times[:warm_up])"),),
        "Wrong values.",
        "times[:warm_up]",
    ),
    Mistake(
        "15-median",
        (("np.median(times[warm_up:])", "np.median(times)[warm_up:]"),),
        "The function raises an error.",
        "np.median(times)[warm_up:]",
    ),
    Mistake(
        "15-weights",
        (("-(-M // ROWS) * N * itemsize", "M // ROWS * N * itemsize"),),
        "The last program is not counted.",
        "M // ROWS",
    ),
    Mistake(
        "15-flight",
        (("gbps * latency_ns / multiprocessors", "gbps * 1e9 * latency_ns / multiprocessors"),),
        "The unit is not the byte.",
        "1e9",
    ),
    Mistake(
        "16-counts",
        (("np.minimum(N - begins, length)", "np.full(len(begins), length)"),),
        "The last chunk counts as a full one.",
        "np.full",
    ),
    Mistake(
        "16-counts",
        (("np.minimum(N - begins, length)", "np.maximum(N - begins, length)"),),
        "The smaller number is taken where the larger belongs, or the larger for the smaller.",
        "np.maximum",
    ),
    Mistake(
        "16-word",
        (("tl.atomic_xchg(word_ptr + chunk, -part", "tl.atomic_xchg(word_ptr + chunk, part"),),
        "A deadlock.",
        "part, sem",
    ),
    Mistake(
        "16-word",
        (("tl.atomic_xchg(word_ptr + chunk, -part", "tl.atomic_xchg(word_ptr, -part"),),
        "A deadlock.",
        "word_ptr, -part",
    ),
    Mistake(
        "16-word",
        (
            (
                "        while word >= 0:\n            word = tl",
                "        if word >= 0:\n            word = tl",
            ),
        ),
        "A word is added before its program has come.",
        "if word >= 0",
    ),
    Mistake(
        "16-ticket",
        (("tl.atomic_add(ticket_ptr, 1)", "tl.load(ticket_ptr)"),),
        "A deadlock.",
        "tl.load(ticket_ptr)",
    ),
    Mistake(
        "16-ticket",
        (("tl.atomic_add(ticket_ptr, 1)", "tl.atomic_add(ticket_ptr, 1) + 1"),),
        "The kernel reads outside its tensors.",
        "+ 1",
    ),
    Mistake(
        "16-order",
        (("total += tl.load(part_ptr + i)", "total += tl.load(part_ptr + chunk)"),),
        "One part is added again and again.",
        "part_ptr + chunk",
    ),
    Mistake(
        "17-nan",
        (("((got - want).abs() <= 0.001).all()", "((got - want).abs() <= 0.001).any()"),),
        "One number that is near is enough.",
        ".any()",
    ),
    Mistake(
        "17-nan",
        (("((got - want).abs() <= 0.001).all()", "((got - want) <= 0.001).all()"),),
        "Wrong values.",
        "(got - want) <= 0.001",
    ),
)
