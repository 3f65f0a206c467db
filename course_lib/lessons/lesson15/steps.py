"""The steps of lesson 15: the time that a benchmark reports for a call, one number for many times,
bytes in flight, the loads of w."""

from __future__ import annotations

from course_lib.lessons.steps.step import In, Slip, Step, Try


def _report_try(
    description: str, moved: int, call_us: float, memory_gbps: float, gbps: float
) -> Try:
    return Try(description, arguments=(moved, call_us, memory_gbps), expected=gbps, within=1e-6)


def _time_try(description: str, times: list[float], warm_up: int, us: float) -> Try:
    return Try(description, arguments=(In(times), warm_up), expected=us, within=1e-5)


STEPS = (
    Step(
        "15-report",
        kind="numpy",
        entry_point="reported_gbps",
        tries=(
            _report_try(
                "a call of 200 µs, and 20 MB that memory needs 20 µs for",
                20_000_000,
                200.0,
                1000.0,
                100.0,
            ),
            _report_try(
                "a call of 200 µs, and 400 MB that memory needs 400 µs for",
                400_000_000,
                200.0,
                1000.0,
                1000.0,
            ),
            _report_try(
                "a call of 50 µs, and 60 MB at 3000 GB/s", 60_000_000, 50.0, 3000.0, 1200.0
            ),
        ),
        question=(
            "The device can only begin when the call is made, and the next call is made while it"
            " works. How long does one call take if both go on at the same time?"
        ),
        debrief=(
            "Where the call is longer, the reported figure is bytes over a constant: a straight"
            " line through 0, on any GPU."
        ),
        slips=(
            Slip(
                "max(call_us, memory_us)",
                "memory_us",
                "the time of the call is left out",
                "A call takes 200 µs, and its memory 20 µs. How soon can the next call be made?",
            ),
            Slip(
                "max(call_us, memory_us)",
                "call_us",
                "the time of the memory is left out",
                "A call takes 200 µs, and its memory 400 µs. When has the device finished with it?",
            ),
            Slip(
                "max(call_us, memory_us)",
                "call_us + memory_us",
                "the two times are added",
                "The next call is made while the device works. Do the two times follow each other,"
                " or pass side by side?",
            ),
            Slip(
                "max(call_us, memory_us)",
                "min(call_us, memory_us)",
                "the shorter time is taken",
                "A call takes 200 µs, and its memory 20 µs. How soon can the next call be made?",
            ),
            Slip(
                "memory_us = moved / memory_gbps / 1e3",
                "memory_us = moved / memory_gbps",
                "the unit is not the microsecond",
                "How many bytes does 1 GB/s bring in one microsecond?",
            ),
        ),
    ),
    Step(
        "15-median",
        kind="numpy",
        entry_point="report_us",
        tries=(
            _time_try("the first call compiles", [310000, 50, 49, 51, 52, 48], 1, 50),
            _time_try(
                "the first two calls are slow, and one in the middle was interrupted",
                [9000, 70, 48, 50, 900, 49, 51, 52],
                2,
                50.5,
            ),
            _time_try("no call to leave out", [12, 10, 11], 0, 11),
        ),
        question=(
            "Which calls do not belong to the answer at all? Of the others, what does one call that"
            " was interrupted do to a mean, and what to a median?"
        ),
        debrief=(
            "A median forgets an interruption, a mean never does. `triton.testing.do_bench` gives"
            ' the mean unless you pass `return_mode="median"`.'
        ),
        slips=(
            Slip(
                "np.median(times[warm_up:])",
                "np.median(times)",
                "the slow first calls are counted",
                "How many calls at the beginning does `warm_up` leave out, and does your line leave"
                " them out?",
            ),
            Slip(
                "np.median(times[warm_up:])",
                "np.mean(times[warm_up:])",
                "a mean is taken",
                "One call that takes far longer than the others moves a mean. Does it move a"
                " median?",
            ),
            Slip(
                "np.median(times[warm_up:])",
                "np.min(times[warm_up:])",
                "the smallest time is taken",
                "Half of the calls are slower than the number that is asked for. How many are"
                " slower than yours?",
            ),
            Slip(
                "np.median(times[warm_up:])",
                "np.median(times[warm_up + 1:])",
                "one call too many is left out",
                "With warm_up = 1, which is the first call that counts, and which is yours?",
            ),
        ),
    ),
    Step(
        "15-weights",
        kind="numpy",
        entry_point="bytes_of_w",
        tries=(
            Try(
                "64 rows of 100 columns, 4 rows per program, fp16",
                arguments=(64, 100, 2, 4),
                expected=3200,
                within=0,
            ),
            Try(
                "5 rows of 10 columns, 4 rows per program, fp32",
                arguments=(5, 10, 4, 4),
                expected=80,
                within=0,
            ),
            Try(
                "7 rows of 3 columns, a row per program, fp16",
                arguments=(7, 3, 2, 1),
                expected=42,
                within=0,
            ),
        ),
        question=(
            "Five rows, four a program: how many programs are started? Each of them loads w once."
        ),
        debrief=(
            "With a row per program, `w` is asked for as often as `x`. It comes from a cache nearly"
            " always, but a count of what was asked for has it."
        ),
        slips=(
            Slip("-(-M // ROWS)", "M // ROWS", "programs_rounded_down"),
            Slip("-(-M // ROWS)", "M", "w_counted_for_each_row"),
            Slip("-(-M // ROWS) * N * itemsize", "N * itemsize", "w_counted_once"),
            Slip("-(-M // ROWS) * N * itemsize", "-(-M // ROWS) * N", "numbers_for_bytes"),
        ),
    ),
    Step(
        "15-flight",
        kind="numpy",
        entry_point="bytes_in_flight",
        tries=(
            Try(
                "1000 GB/s, 500 ns, 100 multiprocessors",
                arguments=(1000.0, 500.0, 100),
                expected=5000.0,
                within=1e-6,
            ),
            Try(
                "an H100: 3350 GB/s, 600 ns, 132 multiprocessors",
                arguments=(3350.0, 600.0, 132),
                expected=15227.2727,  # whole bytes are accepted as well
            ),
        ),
        question=(
            "GB/s are bytes per nanosecond: 10**9 cancels. How many bytes arrive, over the whole"
            " GPU, while one load is on its way? Whose are they?"
        ),
        debrief=(
            "15 KB at any moment, on each of 132 multiprocessors. A row of 8192 fp16 numbers has 16"
            " KB, so one program that has asked for one row is about enough, and one that is still"
            " adding up is not."
        ),
        slips=(
            Slip(
                "gbps * latency_ns / multiprocessors",
                "gbps * latency_ns",
                "the bytes of the whole GPU are given",
                "Whose bytes does your line give: those of one multiprocessor, or of all?",
            ),
            Slip(
                "gbps * latency_ns / multiprocessors",
                "gbps / latency_ns / multiprocessors",
                "the latency divides",
                "A load takes twice as long on its way. Are there more bytes under way then, or"
                " fewer?",
            ),
            Slip(
                "gbps * latency_ns / multiprocessors",
                "gbps * latency_ns * multiprocessors",
                "the multiprocessors multiply",
                "Twice as many multiprocessors share the same bytes. How many has each of them?",
            ),
            Slip(
                "gbps * latency_ns / multiprocessors",
                "gbps * 1e9 * latency_ns / multiprocessors",
                "the unit is not the byte",
                "How many bytes does 1 GB/s bring in one nanosecond?",
            ),
        ),
    ),
)
