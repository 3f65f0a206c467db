// Lesson 06: how often each way to normalise a row sweeps over the matrix. Python traced the kernels; times are arithmetic on the counts.

import { SMALL, axes, bytes, choice, count, duration, handle, joinClauses, joinSentences, legend, linear, measure, number, roundUp, slider, stepper, svg, target, text, tr } from "../../kit/kit.js";

const COLOURS = { x: "var(--x)", y: "var(--y)", d: "var(--mean)", s: "var(--mean)", residual: "var(--r)", total: "var(--r)" };
const verb = (sweep) => (sweep.kind === "load" ? tr`read ${sweep.tensor}` : tr`write ${sweep.tensor}`);

/** Every algorithm at this size: its passes, bytes and microseconds at the bandwidth, and what its launches take. */
export function explain(data, { m, n, dtype, bandwidth }) {
  const size = m * n * data.itemsize[dtype];
  return Object.entries(data.counts[n]).map(([algorithm, made]) => {
    const passes = made.sweeps.reduce((sum, sweep) => sum + sweep.amount, 0);
    const moved = passes * size + made.a_row * m;
    return {
      ...made, algorithm, name: data.names[algorithm], passes, moved, us: moved / bandwidth / 1e3, launching: made.launches * data.launch_us,
      reads: made.sweeps.reduce((sum, sweep) => sum + (sweep.kind === "load" ? sweep.amount : 0), 0),
      pass_us: size / bandwidth / 1e3,
    };
  });
}

/** A row that is too long for the resident kernel has none: then the copy is shown. */
const find = (all, algorithm) => all.find((made) => made.algorithm === algorithm) ?? all[0];

export function makeTitle(all, made) {
  const copied = all[0].passes;
  if (made.algorithm === "copy") return tr`A copy makes ${copied} sweeps: no kernel that reads x and writes y can make fewer`;
  if (made.passes === copied) return tr`${made.name}: ${count(made.passes, "sweep")}, as many as a copy makes`;
  return tr`${made.name}: ${count(made.passes, "sweep")}, ${number(made.passes / copied, 3)} times those of a copy`;
}

export function makeCaption(data, state, all, made) {
  const writes = made.passes - made.reads;
  const at = Math.min(state.at, made.order.length);
  const now = at > 0 ? made.sweeps[made.order[at - 1]] : null;
  const words = [
    tr`M = ${state.m}, N = ${state.n}, ${state.dtype}, ${count(made.launches, "launch")}: ${count(made.reads, "sweep")} for reading, ${count(writes, "sweep")} for writing.`,
    tr`These sweeps ask for ${bytes(made.moved)}, which take ${duration(made.us)} at ${state.bandwidth} GB/s. A copy asks for ${bytes(all[0].moved)}.`,
    made.us < made.launching ? tr`The launches take longer: ${number(made.launching)} \u00b5s, if one launch takes ${data.launch_us} \u00b5s.` : "",
    now ? tr`Access ${at} of ${made.order.length} of the first row: ${verb(now)}, by the line ${now.code}` : tr`Counted from a trace of ${data.traced} rows in the interpreter, w and b left out. A GPU moves fewer bytes from and to memory where a cache has them.`,
  ];
  return joinSentences(words.filter(Boolean));
}

export function picture(data) {
  const algorithms = Object.entries(data.names);
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [choice("algorithm", tr`algorithm`, algorithms)],
      [slider("m", tr`M rows`, { values: data.rows }), slider("n", tr`N columns`, { values: data.columns }), choice("dtype", "dtype", Object.keys(data.itemsize)),
        slider("bandwidth", "GB/s", { min: 100, max: 8000, step: 100 })],
      [stepper("at", tr`access`, (state) => find(explain(data, state), state.algorithm).order.length + 1, { interval: 260 })],
    ],
    render(state, width) {
      const all = explain(data, state);
      const made = find(all, state.algorithm);
      const title = makeTitle(all, made);
      const passes = joinClauses(all.map((one) => `${one.name} ${number(one.passes)}`));
      const bars = drawBars(data, all, made, width);
      const row = drawRow(data, state, made, width, bars.height + 18);
      return {
        title, caption: makeCaption(data, state, all, made), height: bars.height + 18 + row.height, draw: [bars.draw, row.draw],
        alt: tr`A bar for each algorithm, one piece per sweep; numbers of sweeps: ${passes}. Below, the row once for each sweep of ${made.name}.`,
      };
    },
  };
}

/** What a sweep moves, in its tensor's colour; writes are hatched. */
const block = (x, y, width, height, sweep, extra = {}) => [
  svg("rect", { x, y, width, height, fill: "var(--paper)" }),
  svg("rect", { x, y, width, height, fill: COLOURS[sweep.tensor] ?? "var(--rstd)", "fill-opacity": 0.35, stroke: "var(--ink)", "stroke-width": 1, ...extra }),
  sweep.kind === "store" && svg("rect", { x, y, width, height, fill: "url(#hatch-masked)", "pointer-events": "none" })];

/** A bar for each algorithm, made of its passes, as long as they take; a mark where its launches would be over. */
function drawBars(data, all, made, width) {
  const wide = width >= 640;
  const [left, right, top, line, bar] = [wide ? 168 : 4, width - 76, 30, wide ? 34 : 46, 24];
  const end = roundUp(Math.max(...all.map((one) => Math.max(one.us, one.launching))));
  const x = linear([0, end], [left, right]);
  const bottom = top + all.length * line + 2;
  const unit = end >= 1e6 ? [1e6, "s"] : end >= 1e3 ? [1e3, "ms"] : [1, "\u00b5s"];
  const ticks = x.ticks(wide ? 6 : 3).map(([value]) => [value, number(value / unit[0], 6)]);
  const copied = x(all[0].us);
  const bars = all.map((one, i) => {
    const y = top + i * line + (wide ? 4 : 18);
    const chosen = one === made;
    let at = left;
    const pieces = one.sweeps.map((sweep) => {
      const long = x(one.pass_us * sweep.amount) - left;
      const words = [verb(sweep), sweep.tensor].find((label) => measure(label, SMALL) < long - 4);
      const drawn = [block(at, y, long, bar, sweep, { "stroke-width": chosen ? 2 : 0.8 }),
        words && text(at + long / 2, y + bar / 2, words, { anchor: "middle", size: SMALL, halo: sweep.kind === "store", "pointer-events": "none" })];
      at += long;
      return drawn;
    });
    const mark = x(one.launching);
    const label = one.name + (chosen ? " \u25c2" : "");
    return target(`bar-${one.algorithm}`, { label: count(one.passes, "sweep"), pressed: chosen, press: () => ({ algorithm: one.algorithm, at: 0 }) },
      svg("rect", { x: 0, y: y - (wide ? 4 : 18), width, height: line, fill: "transparent" }),
      wide ? text(left - 10, y + bar / 2, label, { anchor: "end", bold: chosen }) : text(left, y - 9, label, { bold: chosen, size: SMALL, halo: true }),
      pieces,
      svg("path", { d: `M${mark},${y + bar + 1}l-5,8h10Z`, fill: "var(--ink)" }),
      text(right + 8, y + bar / 2, duration(one.us), { size: SMALL, bold: chosen, fill: chosen ? "var(--ink)" : "var(--quiet)" }));
  });
  const key = legend([
    { words: tr`read`, fill: "var(--paper)" }, { words: tr`write`, fill: "var(--paper)", hatch: "masked" }, { words: tr`end of a copy`, fill: "var(--ink)", line: "6 4" },
    { words: tr`\u25b4 end of the launches, ${data.launch_us} \u00b5s each`, fill: "none", line: "" }], left, bottom + 38, width - left);
  return {
    draw: [
      axes([left, top, right, bottom], { x, y: linear([0, 1], [bottom, top]), xTicks: ticks, yTicks: [] }),
      text(right + 18, bottom + 14, unit[1], { size: SMALL, fill: "var(--quiet)" }),
      text(left, 12, wide ? tr`time that the sweeps take at the memory limit: press a bar` : tr`time at the memory limit: press a bar`, { size: SMALL, fill: "var(--quiet)" }),
      svg("line", { x1: copied, x2: copied, y1: top - 6, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.6, "stroke-dasharray": "6 4" }),
      bars,
      key.draw],
    height: bottom + 38 + key.height,
  };
}

/** The first row, once for each pass, with what was touched so far. */
function drawRow(data, state, made, width, top) {
  const wide = width >= 640;
  const [left, right, line, height] = [wide ? 168 : 92, width - 6, 28, 20];
  const at = Math.min(state.at, made.order.length);
  const seen = made.order.slice(0, at);
  const steps = made.sweeps.map((_, i) => made.order.filter((sweep) => sweep === i).length);
  const now = at > 0 ? made.order[at - 1] : -1;
  const strips = made.sweeps.map((sweep, i) => {
    const y = top + 26 + i * line;
    const blocks = Math.max(1, Math.round(steps[i] / Math.max(sweep.amount, 1)));
    const long = (right - left) / blocks;
    const done = seen.filter((other) => other === i).length;
    const current = i === now;
    const filled = Math.min(done, blocks);
    const here = left + ((done - 1) % blocks) * long;
    const first = i === 0 || made.sweeps[i - 1].launch !== sweep.launch;
    const head = made.launches > 1 && first ? tr`launch ${sweep.launch + 1}: ` : "";
    const edges = Array.from({ length: blocks < 80 ? blocks - 1 : 0 }, (_, k) => `M${left + (k + 1) * long},${y}v${height}`).join("");
    return [
      made.launches > 1 && first && i > 0 && svg("line", { x1: 0, x2: right, y1: y - 4, y2: y - 4, stroke: "var(--grid)", "stroke-width": 2 }),
      text(left - 10, y + height / 2, (wide ? head : "") + verb(sweep), { anchor: "end", size: SMALL, bold: current, fill: current ? "var(--ink)" : "var(--quiet)" }),
      svg("rect", { x: left, y, width: right - left, height, fill: "var(--waiting)", stroke: "var(--edge)" }),
      filled > 0 && block(left, y, filled * long, height, sweep, { "stroke-width": 0 }),
      edges && svg("path", { d: edges, stroke: "var(--edge)", "stroke-width": 1 }),
      svg("rect", { x: left, y, width: right - left, height, fill: "none", stroke: "var(--edge)" }),
      current && svg("rect", { x: here, y, width: long, height, fill: "none", stroke: "var(--ink)", "stroke-width": 3 })];
  });
  const end = Math.max(made.order.length, 1);
  const under = top + 26 + strips.length * line + 8;
  const here = left + (at / end) * (right - left);
  const to = (access) => ({ at: Math.min(Math.max(Math.round(access), 0), made.order.length) });
  const words = wide ? tr`One row of ${count(state.n, "column")}, once for each sweep of ${made.name}: ${at} of ${count(made.order.length, "access", "accesses")}` : tr`One row, once for each sweep: ${at} of ${count(made.order.length, "access", "accesses")}`;
  return {
    draw: [text(0, top + 8, words, { bold: true }), strips,
      svg("line", { x1: left, x2: right, y1: under, y2: under, stroke: "var(--edge)", "stroke-width": 3 }),
      svg("line", { x1: left, x2: here, y1: under, y2: under, stroke: "var(--ink)", "stroke-width": 3 }),
      handle("at", here, under, { label: tr`access`, value: at, min: 0, max: made.order.length, text: tr`${at} of ${made.order.length}`, radius: 7,
        drag: (px) => to(((px - left) / (right - left)) * end), key: (dx, dy) => to(at + (dx || dy)) })],
    height: 26 + strips.length * line + 22,
  };
}
