// Lessons 01, 02 and 07: one program of a norm kernel walks over its row. The row is dragged and typed here, so the arithmetic is
// here too; tests hold it against model.py and the float64 references.

import { FONT, SMALL, button, cell, choice, count, entry, handle, joinSentences, labels, linear, list, measure, number, powerOfTen, rounding, slider, stepper, svg, target, text, toggle, tr } from "../../kit/kit.js";

const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const LINE = 19; // px, a line of the source
const ROW = 26; // px, a row of lanes
const GUTTER = 44; // px, for the names left of a row of lanes
const LANES = 8; // in one row of cells
const LIMIT = 1e4; // larger numbers have no room in a cell

// ---- the program

const SWEEPS = { layer_norm: ["sum", "deviation", "normalise"], rms_norm: ["squares", "normalise"] };
const nameSweep = (phase) => ({ sum: tr`sum x`, deviation: tr`sum (x \u2212 mean)\u00b2`, squares: tr`sum x\u00b2`, normalise: tr`write y` })[phase];

/** The source of the kernel: [indent, words, the phases in which the line runs, whether it runs once after the last block]. */
const sourceOf = ({ kind, masked, eps, oneBlock, dtype }) => (dtype ? sourceOfSquares() : oneBlock ? sourceOfOneBlock(kind, masked, eps ? " + eps" : "") : sourceOfLoops(kind, masked));

/** RMSNorm whose squares have the dtype of x, and whose sum is fp32. */
const sourceOfSquares = () => [
  [0, "x = tl.load(x_ptr + cols, mask, other=0)", "squares"], [0, "squares = x * x", "squares"],
  [0, "total = tl.sum(squares.to(tl.float32))", "squares", true], [0, "rms = tl.sqrt(total / N)", "squares", true],
  [0, "tl.store(y_ptr + cols, x / rms, mask)", "normalise"],
];

/** Where the whole row fits in one block there are no loops, and x is loaded once. */
const sourceOfOneBlock = (kind, masked, eps) => {
  const layer = kind === "layer_norm";
  const [first, second] = SWEEPS[kind];
  return [
    [0, "x = tl.load(x_ptr + cols, mask, other=0)", first],
    ...(layer
      ? [[0, "mean = tl.sum(x) / N", "sum", true], [0, masked ? "d = tl.where(mask, x - mean, 0)" : "d = x - mean", second], [0, "var = tl.sum(d * d) / N", second, true], [0, `y = d / sqrt(var${eps})`, "normalise"]]
      : [[0, "mean_square = tl.sum(x * x) / N", first, true], ...(eps ? [[0, `rstd = 1 / sqrt(mean_square${eps})`, first, true]] : []), [0, eps ? "y = x * rstd" : "y = x / sqrt(mean_square)", "normalise"]]),
    [0, "tl.store(y_ptr + cols, y, mask)", "normalise"],
  ];
};

const sourceOfLoops = (kind, masked) => {
  const loop = (phase) => [[0, "for start in range(0, N, BLOCK):", phase], [1, "x = tl.load(x_ptr + cols, mask, other=0)", phase]];
  const rstd = (phase) => [0, "rstd = 1 / sqrt(tl.sum(sq)/N + eps)", phase, true];
  const layer = kind === "layer_norm";
  return [
    ...(layer ? [...loop("sum"), [1, "total += x", "sum"], [0, "mean = tl.sum(total)/N", "sum", true]] : []),
    ...(layer
      ? [...loop("deviation"), [1, masked ? "d = tl.where(mask, x - mean, 0)" : "d = x - mean", "deviation"], [1, "sq += d * d", "deviation"], rstd("deviation")]
      : [...loop("squares"), [1, "sq += x * x", "squares"], rstd("squares")]),
    ...loop("normalise"), [1, layer ? "y = (x - mean) * rstd" : "y = x * rstd", "normalise"], [1, "tl.store(y_ptr + cols, y, mask)", "normalise"],
  ];
};

/** Rows as a reader types them: numbers with spaces or commas between, a semicolon between rows. {rows} or {problem}. */
export function readRows(typed, { maxRows, maxColumns }) {
  const rows = typed.split(";").map((line) => line.replaceAll(",", " ").split(/\s+/).filter(Boolean)).filter((row) => row.length);
  if (!rows.length) return { problem: tr`There is no row yet: type numbers with spaces between them, and a semicolon between rows.` };
  const strange = rows.flat().find((word) => !Number.isFinite(Number(word)) || Math.abs(Number(word)) >= LIMIT);
  if (strange !== undefined) return { problem: tr`${strange} cannot be drawn: type numbers between -${LIMIT} and ${LIMIT}, for example 2 -1 3 .5; 4 -3 2.5 1` };
  const lengths = rows.map((row) => row.length);
  if (new Set(lengths).size > 1) return { problem: tr`Every row needs the same number of columns; your rows have ${list(lengths)} columns.` };
  if (rows.length > maxRows || lengths[0] > maxColumns) return { problem: tr`There is room for ${maxRows} rows and ${maxColumns} columns; you typed ${rows.length} rows and ${lengths[0]} columns.` };
  return { rows: rows.map((row) => row.map(Number)) };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Every step of one program: a block of a sweep, or the lanes added up after the last block. */
export function walk(numbers, { kind, block, eps, masked, dtype }) {
  const round = dtype ? rounding[dtype] : (value) => value; // of x and of its squares
  const x = numbers.map(round);
  const n = x.length;
  const known = { mean: null, spread: null, rstd: null, y: Array(n).fill(null) };
  const frames = [];
  for (const phase of SWEEPS[kind]) {
    const name = nameSweep(phase);
    let lanes = Array(block).fill(0);
    for (let start = 0; start < n; start += block) {
      const columns = lanes.map((_, lane) => start + lane);
      const loaded = columns.map((column) => (column < n ? x[column] : 0));
      const centred = loaded.map((value, lane) => (masked && columns[lane] >= n ? 0 : value - known.mean));
      const held = phase === "deviation" ? centred : loaded;
      const added = phase === "sum" ? loaded : phase === "normalise" ? null : held.map((value) => round(value * value));
      if (added) lanes = lanes.map((value, lane) => value + added[lane]);
      else columns.forEach((column, lane) => { if (column < n) known.y = known.y.with(column, (loaded[lane] - (known.mean ?? 0)) * known.rstd); });
      frames.push({ phase, name, start, columns, loaded, held, added, lanes: added ? lanes : null, ...known });
    }
    if (phase === "normalise") continue;
    if (phase === "sum") known.mean = sum(lanes) / n;
    else [known.spread, known.rstd] = [sum(lanes) / n, 1 / Math.sqrt(sum(lanes) / n + eps)];
    frames.push({ phase, name, start: null, columns: [], lanes, together: sum(lanes), ...known });
  }
  return frames;
}

/** The row and its frames, as `state` has them; `right` is the true variance, `wrong` whether lanes past the end have changed it. */
export function explain(state, limits) {
  const read = readRows(state.typed, limits);
  if (read.problem) return read;
  const row = Math.min(state.row, read.rows.length - 1);
  const n = Math.min(state.n, read.rows[0].length);
  const x = read.rows[row].slice(0, n);
  const frames = walk(x, state);
  const mean = sum(x) / n;
  const right = sum(x.map((value) => (value - mean) ** 2)) / n;
  const spread = frames.at(-1).spread;
  const wrong = state.kind === "layer_norm" && Math.abs(spread - right) > 1e-9 * Math.abs(right) + 1e-12;
  return { rows: read.rows, row, n, x, frames, step: Math.min(state.step, frames.length - 1), right, wrong };
}

// ---- words: a cell has two decimals, a number with a name four digits

/** A number in a cell: two decimals at most, and a power of ten where they would show 0 or have no room. */
export function short(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || size < 1e-13) return number(size < 1e-13 ? 0 : value);
  if (size >= 0.005 && size < 1e5) return String(Number(value.toFixed(size >= 1000 ? 0 : 2)));
  const [mantissa, exponent] = value.toExponential(size < 1 ? 0 : 1).split("e");
  return `${mantissa}\u00b7${powerOfTen(Number(exponent))}`;
}

const span = (columns) => (columns.length === 1 ? tr`column ${columns[0]}` : tr`columns ${columns[0]} to ${columns.at(-1)}`);

export function makeTitle(state, seen) {
  const frame = seen.frames[seen.step];
  const pad = frame.columns.filter((column) => column >= seen.n).length;
  const inside = frame.columns.slice(0, frame.columns.length - pad);
  const lanes = count(pad, "lane");
  if (frame.phase === "deviation" && pad && !state.masked && frame.mean) return pad === 1 ? tr`${lanes} past the end adds mean\u00b2 to the sum of squares` : tr`${lanes} past the end add mean\u00b2 to the sum of squares`;
  const infinite = state.dtype && frame.added ? frame.added.indexOf(Infinity) : -1;
  if (infinite >= 0) return tr`The square of ${number(frame.held[infinite])} is infinite in ${state.dtype}`;
  if (seen.step === seen.frames.length - 1 && state.dtype && frame.y.every((value) => value === 0)) return tr`Row ${seen.row} is done: all ${seen.n} results are 0`;
  if (seen.step === seen.frames.length - 1) return seen.wrong ? tr`Row ${seen.row} is done, with the wrong variance` : tr`Row ${seen.row} is done`;
  if (frame.start === null) {
    const together = number(frame.together);
    if (frame.phase === "sum") return tr`The lanes add up to ${together}, so the mean is ${number(frame.mean)}`;
    if (state.kind === "rms_norm") return tr`The lanes add up to ${together}, so the mean square is ${number(frame.spread)}`;
    return seen.wrong ? tr`The lanes add up to ${together}, so the variance is ${number(frame.spread)}, and should be ${number(seen.right)}` : tr`The lanes add up to ${together}, so the variance is ${number(frame.spread)}`;
  }
  if (frame.phase === "normalise") return tr`y of ${span(inside)} is written`;
  if (state.oneBlock) return { sum: tr`Each lane loads one number of the row`, squares: tr`Each lane loads one number and squares it`, deviation: tr`Each lane subtracts the mean, and squares what is left` }[frame.phase];
  const added = { sum: "x", squares: "x\u00b2", deviation: "(x \u2212 mean)\u00b2" }[frame.phase];
  return tr`Each lane adds ${added} of ${span(inside)} to a sum of its own`;
}

export function makeCaption(state, seen) {
  const frame = seen.frames[seen.step];
  const sweeps = SWEEPS[state.kind];
  const layer = state.kind === "layer_norm";
  const pad = frame.columns.filter((column) => column >= seen.n).length;
  const norm = layer ? "LayerNorm" : "RMSNorm";
  const words = [state.oneBlock ? tr`${norm} of row ${seen.row}; x has ${count(seen.rows.length, "row")} of ${count(seen.n, "column")}. This step: ${frame.name}.` : tr`${norm} of row ${seen.row}; x has ${count(seen.rows.length, "row")} of ${count(seen.n, "column")}. Sweep ${sweeps.indexOf(frame.phase) + 1} of ${sweeps.length}: ${frame.name}.`];
  if (frame.start !== null && !state.oneBlock) words.push(tr`Block ${frame.start / state.block + 1} of ${Math.ceil(seen.n / state.block)} loads ${span(frame.columns.slice(0, frame.columns.length - pad))}.`);
  if (pad) {
    const [lanes, last] = [count(pad, "lane"), seen.n - 1];
    if (frame.phase === "normalise") words.push(pad === 1 ? tr`${lanes} lies past column ${last} and stores nothing.` : tr`${lanes} lie past column ${last} and store nothing.`);
    else if (frame.phase === "deviation" && !state.masked) {
      const held = number(-frame.mean);
      words.push(pad === 1 ? tr`${lanes} lies past column ${last}, loaded 0, and holds 0 \u2212 mean = ${held}.` : tr`${lanes} lie past column ${last}, loaded 0, and hold 0 \u2212 mean = ${held}.`);
    } else words.push(pad === 1 ? tr`${lanes} lies past column ${last} and adds 0.` : tr`${lanes} lie past column ${last} and add 0.`);
  }
  if (state.dtype && frame.spread !== null) words.push(frame.spread === Infinity ? tr`A number divided by an infinite rms is 0.` : tr`The rms is ${number(Math.sqrt(frame.spread + state.eps))}.`);
  else if (frame.rstd !== null) {
    words.push(tr`rstd = ${number(frame.rstd)}.`);
    if (frame.spread === 0) words.push(!state.eps ? tr`1 / sqrt(0) is infinite, and 0 times infinity is NaN.` : layer ? tr`The variance is 0, so rstd is 1 / sqrt(eps).` : tr`The mean square is 0, so rstd is 1 / sqrt(eps).`);
    else if (state.eps >= 0.01 * frame.spread) words.push(tr`eps changes this result: without eps, rstd would be ${number(1 / Math.sqrt(frame.spread))}.`);
    if (seen.wrong) words.push(tr`The right variance is ${number(seen.right)}: the lanes past the end added ${number(frame.spread - seen.right)}.`);
  }
  return joinSentences(words);
}

// ---- the picture

export function picture(data) {
  const look = (state) => explain(state, data);
  const typed = (words, start = {}) => ({ typed: words, row: 0, n: data.maxColumns, step: 0, limits: null, ...start });
  const columns = (state) => look(state).rows?.[0].length ?? 1;
  const controls = [
    [choice("kind", tr`norm`, Object.entries(data.kinds)), choice("block", "BLOCK", data.blocks), choice("eps", "eps", data.eps.map((eps) => [eps, eps ? powerOfTen(Math.round(Math.log10(eps))) : "0"]))],
    [entry("typed", tr`rows of x`, { take: typed }), ...data.examples.map(([name, words]) => button(name, () => typed(words)))],
    [slider("row", tr`program`, { max: (state) => (look(state).rows?.length ?? 1) - 1 }), slider("n", "N", { min: 1, max: columns, format: (n) => (n >= data.maxColumns ? tr`all` : String(n)) }), toggle("masked", tr`mask the deviation`)],
  ];
  return {
    start: data.start,
    explain: look,
    short,
    controls: [
      ...(data.start.dtype ? [[choice("dtype", tr`dtype of x`, ["fp16", "fp32"])]] : !data.start.oneBlock ? controls : look(data.start).rows.length > 1 ? [[controls[2][0]]] : []),
      [stepper("step", tr`step`, (state) => look(state).frames?.length ?? 1)],
    ],
    off: (state) => [...(state.kind === "layer_norm" ? [] : ["masked"]), ...(look(state).problem ? ["row", "n", "step"] : look(state).rows.length === 1 ? ["row"] : [])],
    render(state, width) {
      const seen = look(state);
      if (seen.problem) return { title: tr`These rows cannot be drawn`, caption: seen.problem, height: 20, draw: [] };
      const wide = width >= 760;
      const timeline = drawTimeline(state, seen, width);
      const top = timeline.height + 20;
      const code = { left: 8, top, width: wide ? (state.oneBlock ? 335 : 350) : width - 16 };
      const right = wide ? { left: code.left + code.width + 14, top } : { left: 4, top };
      right.width = width - right.left - 6;
      const panel = drawPanel(state, seen, right, width);
      if (!wide) code.top = right.top + panel.height + 16;
      const source = drawSource(state, seen, code);
      const title = makeTitle(state, seen);
      return {
        title, caption: makeCaption(state, seen),
        alt: tr`The steps of one program in a line; its source with the lines of this step marked; the row as points that can be dragged, and what each lane of the block holds.`,
        height: Math.max(right.top + panel.height, code.top + source.height),
        draw: [timeline.drawn, source.drawn, panel.drawn],
      };
    },
  };
}

/** What a step does in a kernel of one block. */
const nameStage = ({ phase, start }) => (start === null ? tr`sum` : { sum: tr`load`, squares: tr`square`, deviation: tr`subtract`, normalise: tr`divide` }[phase]);

/** All steps in a line: the stages of one block, or the blocks of each sweep and where the lanes are added up. Pressed or dragged over, it goes there. */
function drawTimeline({ oneBlock }, { frames, step }, width) {
  const wide = Math.min((width - 16) / frames.length, oneBlock ? 96 : 64);
  const top = oneBlock ? 2 : 26;
  const place = (index) => 8 + index * wide;
  const clamp = (index) => ({ step: Math.min(Math.max(index, 0), frames.length - 1) });
  const begins = frames.map((frame, i) => [frame, i]).filter(([frame, i]) => i === 0 || frames[i - 1].phase !== frame.phase);
  const nameBlock = (frame, i) => {
    const block = i - frames.findIndex(({ phase }) => phase === frame.phase);
    const words = frame.start === null ? tr`sum` : tr`block ${block}`;
    return measure(words, SMALL) < wide - 8 ? words : frame.start === null ? "\u03a3" : String(block);
  };
  const drawn = [
    !oneBlock && begins.map(([frame, i], k) => [
      text(place(i), 10, frame.name, { size: SMALL, bold: frame.phase === frames[step].phase }),
      svg("path", { d: `M${place(i) + 1},22v-3H${place((begins[k + 1]?.[1] ?? frames.length)) - 2}v3`, fill: "none", stroke: "var(--quiet)" })]),
    frames.map((frame, i) => target(`step-${i}`, { label: tr`step ${i + 1}: ${frame.name}`, press: () => ({ step: i }), tabindex: -1 },
      cell(place(i) + 1, top, wide - 3, 24, oneBlock ? nameStage(frame) : nameBlock(frame, i), { size: SMALL, state: i === step ? "active" : i < step ? "done" : "waiting" }))),
    handle("step", place(step) + wide / 2, top + 12, {
      label: tr`step`, value: step + 1, min: 1, max: frames.length, text: tr`step ${step + 1} of ${frames.length}`,
      drag: (px) => clamp(Math.floor((px - 8) / wide)), key: (dx, dy) => clamp(step + (dx || dy)),
      shape: [svg("rect", { x: place(step) - 1, y: top - 2, width: wide + 1, height: 28, rx: 3, fill: "transparent", stroke: "var(--ink)", "stroke-width": 2.5 })],
    }),
  ];
  return { drawn, height: top + 26 };
}

/** The kernel's text with the lines of this step marked, and what is known beside the line that found it. */
function drawSource(state, seen, { left, top, width }) {
  const frame = seen.frames[seen.step];
  const source = sourceOf(state);
  const line = state.oneBlock ? LINE + 5 : LINE;
  const reducing = frame.start === null;
  const drawn = source.map(([indent, words, phase, after = false], i) => {
    const y = top + i * line;
    const live = phase === frame.phase && after === reducing;
    const rms = frame.spread === null ? null : Math.sqrt(frame.spread + state.eps);
    const known = { mean: frame.mean, rstd: frame.rstd, var: frame.spread, mean_square: frame.spread, rms }[words.split(" ")[0]] ?? null;
    const found = known !== null ? `= ${number(known)}` : live && words.startsWith("for") ? `start = ${frame.start}` : "";
    const bad = seen.wrong && !words.startsWith("mean") && known !== null;
    const room = measure(found, SMALL, "600");
    return [
      live && svg("rect", { x: left, y, width, height: line, fill: "var(--active)", opacity: 0.3 }),
      live && svg("rect", { x: left, y, width: 4, height: line, fill: "var(--active)" }),
      text(left + 10 + indent * 24, y + line / 2, words, { size: SMALL, "font-family": MONO, fill: live ? "var(--ink)" : "var(--quiet)" }),
      found && bad && svg("rect", { x: left + width - room - 12, y: y + 1, width: room + 12, height: line - 2, rx: 3, fill: "var(--fault)" }),
      found && text(left + width - 6, y + line / 2, found, { size: SMALL, bold: true, anchor: "end", fill: bad ? "var(--on-fault)" : "var(--ink)" }),
    ];
  });
  return { drawn, height: source.length * line + 6 };
}

/** The row, the lanes of this block, and y: a lane of a single block lies under its point. */
function drawPanel(state, seen, { left, top, width }) {
  const area = { left: left + GUTTER, top, width: width - GUTTER, height: state.oneBlock ? 124 : 150 };
  const chart = drawRow(state, seen, area);
  const per = state.oneBlock || area.width >= 46 * LANES ? LANES : LANES / 2;
  const grid = { left: area.left, per, step: Math.min(area.width / Math.min(per, state.block), state.oneBlock ? Infinity : 58) };
  const below = top + area.height + 26;
  const lanes = drawLanes(state, seen, { ...grid, top: below });
  const y = drawY(seen, { ...grid, top: below + lanes.height });
  return { drawn: [chart, lanes.drawn, y.drawn], height: area.height + 26 + lanes.height + y.height };
}

/** The numbers of the row as points at their heights; with the mean, lines from it to them: what is squared. */
function drawRow(state, seen, { left, top, width, height }) {
  const frame = seen.frames[seen.step];
  const { x, n } = seen;
  const all = seen.rows.flat();
  const limits = state.limits ?? [Math.min(0, 1.3 * Math.min(...all)), Math.max(0, 1.3 * Math.max(...all))];
  const [low, high] = limits[0] === limits[1] ? [-1, 1] : limits;
  const padded = Math.ceil(n / state.block) * state.block;
  const step = width / padded;
  const y = linear([low, high], [top + height, top]);
  const at = (column) => left + (column + 0.5) * step;
  const grain = 10 ** Math.floor(Math.log10((high - low) / 8)) / 2;
  const change = (column, value) => {
    const rows = seen.rows.map((row) => [...row]);
    rows[seen.row][column] = Number((Math.round(Math.min(Math.max(value, low), high) / grain) * grain).toPrecision(6));
    return { typed: rows.map((row) => row.join(" ")).join("; "), limits: [low, high] };
  };
  const cut = (value) => ({ n: Math.min(Math.max(value, 1), seen.rows[0].length), limits: [low, high] });
  const held = frame.columns.filter((column) => column < n);
  const squaring = frame.phase === "deviation" || frame.phase === "squares";
  const base = frame.phase === "deviation" ? frame.mean : 0;
  const radius = Math.min(8, step / 2 - 1);
  const values = x.map((value, column) => [short(value), column]).filter(([words]) => measure(words, SMALL) < step - 2);
  const isAbove = (value) => value >= (frame.mean ?? 0) || y(value) + radius + 8 > top + height + 4; // below it there has to be room
  const beside = (column) => Math.max(y(x[column]) + (isAbove(x[column]) ? -radius - 8 : radius + 8), top - 4);
  const edge = left + n * step;
  return [
    text(left - 8, top - 10, "x", { anchor: "end", size: SMALL, fill: "var(--quiet)" }),
    frame.columns.length > 0 && svg("rect", { x: left + frame.columns[0] * step, y: top - 4, width: state.block * step, height: height + 8, fill: "var(--active)", opacity: 0.16 }),
    padded > n && svg("rect", { x: edge, y: top - 4, width: (padded - n) * step, height: height + 8, fill: "url(#hatch-masked)", opacity: 0.6 }),
    y.ticks(4).map(([value, words]) => [
      svg("line", { x1: left, x2: left + width, y1: y(value), y2: y(value), stroke: value === 0 ? "var(--quiet)" : "var(--grid)" }),
      text(left - 8, y(value), words, { anchor: "end", size: SMALL, fill: "var(--quiet)" })]),
    frame.mean !== null && svg("line", { x1: left, x2: edge, y1: y(frame.mean), y2: y(frame.mean), stroke: "var(--mean)", "stroke-width": 2, "stroke-dasharray": "6 3" }),
    squaring && frame.columns.filter((column) => column < n || !state.masked).map((column) => {
      const end = column < n ? x[column] : 0;
      return base !== null && svg("line", { x1: at(column), x2: at(column), y1: y(base), y2: y(end), stroke: "var(--ink)", "stroke-width": column < n ? 2 : 4, "stroke-dasharray": column < n ? null : "6 3" });
    }),
    frame.columns.filter((column) => column >= n).map((column) => svg("rect", { x: at(column) - radius * 0.8, y: y(0) - radius * 0.8, width: 1.6 * radius, height: 1.6 * radius, fill: squaring && base && !state.masked ? "var(--fault)" : "var(--masked)", stroke: "var(--ink)" })),
    values.map(([words, column]) => text(at(column), beside(column), words, { anchor: "middle", size: SMALL, halo: true })),
    frame.mean !== null && labels([{ at: x.map((_, column) => [left + column * step + 2, y(frame.mean)]), words: "mean", gap: 2, size: SMALL, fill: "var(--mean)" }],
      [left, top, edge, top + height], [...x.map((value, column) => [at(column) - radius, y(value) - radius, at(column) + radius, y(value) + radius]), ...values.map(([words, column]) => [at(column) - measure(words, SMALL) / 2, beside(column) - 8, at(column) + measure(words, SMALL) / 2, beside(column) + 8])]),
    x.map((value, column) => handle(`x-${column}`, at(column), y(value), {
      label: tr`x of column ${column}`, value, min: low, max: high, text: number(value), radius, fill: held.includes(column) ? "var(--active)" : "var(--waiting)",
      drag: (px, py) => change(column, y.invert(py)), key: (dx, dy) => (dy ? change(column, value + dy * grain) : null),
    })),
    state.oneBlock ? drawGrip(edge, top, height, `N = ${n}`, left + width) : handle("n", edge, top + height + 12, {
      label: tr`N, the number of columns`, value: n, min: 1, max: seen.rows[0].length, text: count(n, "column"),
      drag: (px) => cut(Math.round((px - left) / step)), key: (dx, dy) => cut(n + (dx || dy)),
      shape: drawGrip(edge, top, height, `N = ${n}`, left + width),
    }),
  ];
}

function drawGrip(x, top, height, words, end) {
  const half = measure(words, SMALL, "600") / 2 + 7;
  const middle = Math.min(x, end - half + 4);
  return [
    svg("line", { x1: x, x2: x, y1: top - 4, y2: top + height + 8, stroke: "var(--ink)", "stroke-width": 2 }),
    svg("rect", { x: middle - half, y: top + height + 8, width: 2 * half, height: 18, rx: 9, fill: "var(--chosen)" }),
    text(middle, top + height + 17, words, { anchor: "middle", size: SMALL, bold: true, fill: "var(--on-chosen)" }),
  ];
}

/** What each lane holds, what it adds, and its own sum. There is room for three rows in every step, so that nothing jumps. */
function drawLanes(state, seen, { left, top, per, step }) {
  const frame = seen.frames[seen.step];
  const off = (lane) => frame.columns[lane] >= seen.n;
  const wrong = (lane) => (off(lane) && frame.phase === "deviation" && !state.masked && frame.held[lane] !== 0) || frame.added?.[lane] === Infinity;
  const look = (lane) => ({ state: wrong(lane) ? "fault" : off(lane) ? "masked" : "active", heavy: wrong(lane) });
  const own = { state: "waiting", heavy: frame.start === null };
  const square = frame.phase === "deviation" ? "d \u00b7 d" : "x \u00b7 x";
  const sums = state.oneBlock ? [] : [[frame.phase === "sum" ? "total" : "sq", frame.lanes, () => own]]; // of one block, a lane's sum is what it adds
  const rows = frame.start === null ? (state.oneBlock ? [[frame.phase === "sum" ? "x" : square, frame.lanes, () => own]] : sums)
    : frame.phase === "sum" ? [["x", frame.held, look], ...sums]
      : frame.phase === "normalise" ? [["x", frame.loaded, look], ["y", frame.columns.map((column) => (column < seen.n ? frame.y[column] : null)), look]]
        : [[frame.phase === "deviation" ? "d" : "x", frame.held, look], [square, frame.added, look], ...sums];
  const chunks = Math.ceil(state.block / per);
  const tall = (state.oneBlock ? 2 : 3) * ROW + 24;
  const drawn = Array.from({ length: chunks }, (_, chunk) => {
    const at = top + chunk * tall;
    const lanes = Array.from({ length: Math.min(per, state.block) }, (_, i) => chunk * per + i);
    return [
      text(left, at + 8, tr`lanes ${lanes[0]} to ${lanes.at(-1)}`, { size: SMALL, fill: "var(--quiet)" }),
      rows.map(([name, values, see], r) => [
        text(left - 8, at + 20 + r * ROW + ROW / 2, name, { anchor: "end", size: SMALL, bold: true }),
        lanes.map((lane, i) => cell(left + i * step, at + 20 + r * ROW, step - 3, ROW - 3, values[lane] === null ? tr`off` : short(values[lane]), { size: SMALL, ...see(lane) }))]),
      frame.start === null && chunk === chunks - 1 && text(left, at + 20 + ROW + 14, tr`together ${number(frame.together)}, divided by N: ${number(frame.together / seen.n)}`, { size: FONT, bold: true }),
    ];
  });
  return { drawn, height: chunks * tall + 6 };
}

function drawY(seen, { left, top, per, step }) {
  const { y } = seen.frames[seen.step];
  const cells = y.map((value, column) => cell(left + (column % per) * step, top + 20 + Math.floor(column / per) * ROW, step - 3, ROW - 3, value === null ? "" : short(value), { size: SMALL, state: value === null ? "waiting" : "done" }));
  return { drawn: [text(left, top + 8, tr`y in memory`, { size: SMALL, fill: "var(--quiet)" }), text(left - 8, top + 20 + ROW / 2, "y", { anchor: "end", size: SMALL, bold: true }), cells], height: 24 + Math.ceil(y.length / per) * ROW };
}
