// Lesson 06: many numbers become one sum. The steps are those of model.py, every addition rounded to the dtype; a test compares them.

import { SMALL, cell, choice, count, joinClauses, joinSentences, legend, list, measure, number, path, rounding, slider, stepper, svg, target, text, tr } from "../../kit/kit.js";

const HANDS_ON = ["meet", "share"]; // steps that move numbers and add none
const range = (length, make) => Array.from({ length }, (_, i) => make(i));

/** The whole reduction: what each thread holds first and after each step, and whose number it takes ("partners", null is idle). */
export function explain(data, { n, threads, way, warp, row, dtype }) {
  const round = rounding[dtype];
  const values = data.rows[row].slice(0, n).map(round);
  let held = range(threads, (t) => values[t] ?? 0);
  const loaded = held;
  const steps = [];
  const step = (kind, stride, partners, next) => { held = held.map(next); steps.push({ kind, stride, partners, held, working: partners.filter((p) => p !== null).length }); };
  for (let start = threads; start < n; start += threads) {
    step("own", start, range(threads, (t) => (start + t < n ? start + t : null)), (own, t) => (start + t < n ? round(own + values[start + t]) : own));
  }
  const halve = (width, make) => { for (let stride = width / 2; stride >= 1; stride /= 2) make(stride); };
  if (way === "shared") {
    halve(threads, (stride) => step("shared", stride, range(threads, (t) => (t < stride ? t + stride : null)), (own, t, all) => (t < stride ? round(own + all[t + stride]) : own)));
  } else {
    const swap = (active) => (stride) => step("shuffle", stride, range(threads, (t) => (t < active ? t ^ stride : null)), (own, t, all) => (t < active ? round(own + all[t ^ stride]) : own));
    halve(Math.min(warp, threads), swap(threads));
    const warps = threads / warp;
    if (warps > 1) {
      step("meet", 0, range(threads, (t) => (t < warps ? t : null)), (_, t, all) => all[(t % warps) * warp]);
      halve(warps, swap(warps));
      step("share", 0, range(threads, () => 0), (_, t, all) => all[0]);
    }
  }
  const adding = steps.filter((s) => !HANDS_ON.includes(s.kind));
  return {
    values, loaded, steps, additions: adding.length,
    sum: held[0],
    exact: values.reduce((sum, value) => sum + value, 0),
    sequential: values.slice(1).reduce((sum, value) => round(sum + value), values[0]),
    done: adding.reduce((sum, s) => sum + s.working, 0),
    idle: adding.reduce((sum, s) => sum + threads - s.working, 0),
    barriers: steps.filter((s) => ["shared", ...HANDS_ON].includes(s.kind)).length,
  };
}

/** The lines that are drawn: rows of values, then what the threads hold after their own additions, then a line for each later step. */
function layOut(state, seen) {
  const own = seen.steps.filter((step) => step.kind === "own").length;
  return { own, tree: seen.steps.slice(own), rows: Math.ceil(seen.values.length / state.threads), done: Math.min(state.done, seen.steps.length) };
}

/** From which threads of the line above a thread's number comes. */
function findSources(state, step, t) {
  const partner = step.partners[t];
  if (partner === null) return step.kind === "meet" ? [] : [t];
  if (HANDS_ON.includes(step.kind)) return [step.kind === "meet" ? partner * state.warp : 0];
  return [t, partner];
}

/** What the pressed number has to do with the others: keys "row column" of the cells on its way, the lines between them, and words. */
export function follow(data, state) {
  const seen = explain(data, state);
  const plan = layOut(state, seen);
  const [row, column] = state.picked ?? [-1, -1];
  const shown = plan.rows + Math.max(plan.done - plan.own, 0); // the last row that has numbers
  if (row < 0 || row > shown || column >= state.threads || (row < plan.rows && row * state.threads + column >= seen.values.length)) return null;
  const cells = new Set([`${row} ${column}`]);
  const lines = new Set();
  const inside = [];
  if (row < plan.rows) { // a value: where does it go?
    const from = row * state.threads + column;
    const owned = row <= Math.min(plan.done, plan.own);
    let holders = owned ? [column] : [];
    if (owned) cells.add(`${plan.rows} ${column}`);
    const way = [[...holders]];
    for (let r = plan.rows + 1; r <= shown; r++) {
      const step = plan.tree[r - plan.rows - 1];
      const next = range(state.threads, (t) => t).filter((t) => findSources(state, step, t).some((source) => holders.includes(source)));
      for (const t of next) {
        if (step.partners[t] === null) continue;
        cells.add(`${r} ${t}`);
        findSources(state, step, t).filter((source) => holders.includes(source)).forEach((source) => lines.add(`${r} ${source} ${t}`));
      }
      holders = next.filter((t) => step.partners[t] !== null || step.kind !== "shared" || !next.some((other) => step.partners[other] === t));
      way.push(holders);
    }
    return { cells, lines, value: from, way };
  }
  const trace = (r, t) => { // a thread's number: what went into it?
    cells.add(`${r} ${t}`);
    if (r === plan.rows) {
      for (let v = 0; v <= Math.min(plan.own, plan.done); v++) {
        const value = v * state.threads + t;
        if (value < seen.values.length) { cells.add(`${v} ${t}`); inside.push(value); }
      }
      return;
    }
    for (const source of findSources(state, plan.tree[r - plan.rows - 1], t)) { lines.add(`${r} ${source} ${t}`); trace(r - 1, source); }
  };
  trace(row, column);
  const held = row > plan.rows ? plan.tree[row - plan.rows - 1].held : plan.own && plan.done ? seen.steps[Math.min(plan.done, plan.own) - 1].held : seen.loaded;
  return { cells, lines, thread: column, held: held[column], inside: [...new Set(inside)].sort((a, b) => a - b) };
}

export function makeTitle(state, seen, plan, followed) {
  const { values, steps } = seen;
  if (followed?.inside) return tr`Thread ${followed.thread} holds the sum of ${followed.inside.length} of the ${count(values.length, "value")}`;
  if (followed) {
    const holders = followed.way.at(-1);
    if (!holders.length) return tr`No thread has read x[${followed.value}] yet`;
    return holders.length === 1 ? tr`The number of thread ${holders[0]} now contains x[${followed.value}]` : tr`The numbers of ${count(holders.length, "thread")} now contain x[${followed.value}]`;
  }
  if (!plan.done) {
    return values.length >= state.threads ? tr`${count(values.length, "value")} for ${state.threads} threads: each thread starts with one value` : tr`${count(values.length, "value")} for ${state.threads} threads: each thread starts with one value or none`;
  }
  const step = steps[plan.done - 1];
  if (plan.done === steps.length) {
    const [alone, sum] = [values.length - 1, number(seen.sum, 6)];
    return seen.additions < alone ? tr`${count(seen.additions, "step")} of additions instead of ${count(alone, "step")}: the sum is ${sum}` : tr`${count(seen.additions, "step")} of additions where one thread needs ${count(alone, "step")}: the sum is ${sum}`;
  }
  const head = tr`Step ${plan.done} of ${steps.length}`;
  if (step.kind === "meet") return tr`${head}: ${state.threads / state.warp} warps leave their sums in shared memory`;
  const idle = state.threads - step.working;
  if (step.kind === "shuffle" && !idle) return tr`${head}: every thread t adds the number of thread t xor ${step.stride}`;
  return step.working === 1 ? tr`${head}: 1 thread adds, ${idle} are idle` : tr`${head}: ${step.working} threads add, ${idle} are idle`;
}

function describeStep(state, step, head) {
  const { threads } = state;
  const idle = step.working >= threads ? tr`no thread is idle` : step.working === threads - 1 ? tr`thread ${threads - 1} is idle` : tr`threads ${step.working} to ${threads - 1} are idle`;
  const who = step.working === 1 ? tr`thread t = 0 adds` : tr`each thread t from 0 to ${step.working - 1} adds`;
  if (step.kind === "own") return step.working < threads ? tr`${head}: ${who} x[t + ${step.stride}] to its own sum; ${idle}. No thread needs the number of another thread.` : tr`${head}: ${who} x[t + ${step.stride}] to its own sum. No thread needs the number of another thread.`;
  if (step.kind === "shared") return tr`${head}, stride ${step.stride}: ${who} the number of thread t + ${step.stride}, from shared memory; ${idle}. Then all threads wait at a barrier.`;
  if (step.kind === "meet") return tr`${head}: a shuffle cannot reach another warp. So one thread of each of the ${step.working} warps writes the warp's sum to shared memory, all threads wait at a barrier, and threads 0 to ${step.working - 1} read these sums.`;
  if (step.kind === "share") return tr`${head}: thread 0 writes the total to shared memory, all threads wait at a barrier, and all threads read the total.`;
  if (step.working < threads) return tr`${head}, stride ${step.stride}: threads 0 to ${step.working - 1} add the sums of the warps, by shuffles; the other threads are idle.`;
  return tr`${head}, stride ${step.stride}: thread t adds the number of thread t xor ${step.stride}, straight from that thread's register. Both threads of a pair do the same addition, so no thread is idle and no thread waits.`;
}

function describeCost(state, seen) {
  const useful = seen.values.length - 1;
  const spare = seen.done > useful ? tr`${seen.done - useful} of the ${seen.done} additions were done twice or added 0` : count(seen.done, "addition");
  const [error, other] = [Math.abs(seen.sum - seen.exact), Math.abs(seen.sequential - seen.exact)];
  const rounding = !error && !other ? tr`The sum is ${number(seen.sum, 7)}, without error.`
    : tr`The sum is ${number(seen.sum, 7)}, off by ${number(error, 2)}; adding one value after the other gives ${number(seen.sequential, 7)}, off by ${number(other, 2)}.`;
  return joinSentences([tr`In all: ${count(seen.additions, "step")} where one thread needs ${count(useful, "step")}; ${spare}; ${count(seen.idle, "idle turn")} of threads; ${count(seen.barriers, "barrier")}.`, rounding]);
}

const nameThreads = (threads) => (threads.length === 1 ? tr`thread ${threads[0]}` : tr`threads ${list(threads)}`);
const listHolders = (way) => way.map(nameThreads).filter((words, i, all) => way[i].length && words !== all[i - 1]).join(tr`, then `);

export function makeCaption(data, state, seen, plan, followed) {
  const words = [tr`${count(seen.values.length, "value")}, ${state.threads} threads, ${data.ways[state.way]}, ${state.dtype}.`];
  if (followed?.inside) {
    const terms = followed.inside.map((value) => `x[${value}]`).join(" + ");
    words.push(terms ? tr`Thread ${followed.thread} holds ${number(followed.held, 6)}, the sum of ${terms}.` : tr`Thread ${followed.thread} holds ${number(followed.held, 6)}, to which no value was added.`);
  } else if (followed) {
    const way = listHolders(followed.way) || tr`no thread has read this value yet`;
    words.push(tr`The way of x[${followed.value}] = ${number(seen.values[followed.value], 6)}: ${way}.`);
  }
  if (!plan.done && !followed) words.push(tr`Press a number to follow it.`);
  if (!plan.done) words.push(seen.values.length < state.threads ? tr`Thread t starts with x[t]. Threads without a value start with 0.` : tr`Thread t starts with x[t].`);
  else words.push(describeStep(state, seen.steps[plan.done - 1], tr`Step ${plan.done} of ${seen.steps.length}`));
  if (plan.done === seen.steps.length && plan.done) words.push(describeCost(state, seen));
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    follow: (state) => { const followed = follow(data, state); return followed && { ...followed, cells: [...followed.cells], lines: [...followed.lines] }; },
    controls: [
      [slider("n", tr`values`, { min: 1, max: data.rows.counting.length }), choice("threads", tr`threads`, data.threads), choice("way", tr`by`, Object.entries(data.ways))],
      [choice("warp", tr`threads per warp`, data.warps), choice("row", tr`row`, Object.entries(data.names)), choice("dtype", "dtype", data.dtypes)],
      [stepper("done", tr`frame`, (state) => explain(data, state).steps.length + 1)],
    ],
    off: ({ way }) => (way === "shuffle" ? [] : ["warp"]),
    render(state, width) {
      const seen = explain(data, state);
      const plan = layOut(state, seen);
      const followed = follow(data, state);
      const title = makeTitle(state, seen, plan, followed);
      const { draw, height } = drawTree(state, seen, plan, followed, width);
      return {
        title, caption: makeCaption(data, state, seen, plan, followed), height, draw,
        alt: tr`Boxes for the values, below them a line of boxes for the threads after each step, with lines from the threads whose numbers are added.`,
      };
    },
  };
}

/** A number as long as it fits its box. */
const fit = (value, room) => [6, 5, 4, 3].map((digits) => [number(value, digits), digits]).find(([words, digits]) => measure(words, SMALL) <= room - 3 && Math.abs(Number(value.toPrecision(digits)) - value) <= 0.004 * Math.abs(value))?.[0] ?? "";

function drawTree(state, seen, plan, followed, width) {
  const wide = width >= 640;
  const left = wide ? 124 : 2;
  const column = (width - left - 4) / state.threads;
  const [box, gap, top] = [26, wide ? 44 : 58, state.way === "shuffle" && state.warp < state.threads ? 46 : 26];
  const hold = top + plan.rows * (box + 4) + (wide ? 14 : 26);
  const lineTop = (row) => (row < plan.rows ? top + row * (box + 4) : hold + (row - plan.rows) * (box + gap));
  const middle = (t) => left + (t + 0.5) * column - 2;
  const rows = plan.rows + 1 + plan.tree.length;
  const picked = followed ? state.picked : null;
  const treeDone = plan.done - plan.own;

  const exists = (row, t) => row >= 0 && row < rows && t >= 0 && t < state.threads && (row >= plan.rows || row * state.threads + t < seen.values.length);
  const pick = (row, t) => exists(row, t) && { picked: [row, t], done: Math.max(plan.done, row > plan.rows ? row - plan.rows + plan.own : 0) };
  const spot = (row, t, label, drawn) => {
    const stop = picked ? picked[0] === row && picked[1] === t : row === plan.rows && t === 0;
    const made = target(stop ? "picked" : `cell-${row}-${t}`, { label, tabindex: stop ? 0 : -1, pressed: Boolean(picked && stop), opacity: followed && !followed.cells.has(`${row} ${t}`) ? 0.4 : null,
      press: () => (picked && stop ? { picked: null } : pick(row, t)) }, drawn);
    made.course.key = (dx, dy) => pick(row - dy, t + dx);
    return made;
  };

  const values = seen.values.map((value, i) => {
    const [row, t] = [Math.floor(i / state.threads), i % state.threads];
    const used = row <= Math.min(plan.done, plan.own);
    const now = row === plan.done && plan.done > 0 && plan.done <= plan.own;
    return spot(row, t, tr`value x[${i}] = ${number(value, 6)}`, cell(left + t * column, lineTop(row), column - 4, box, fit(value, column - 4), { state: now ? "active" : used ? "done" : "waiting", heavy: now, size: SMALL }));
  });
  const drawLine = (row, held, partners, current) => range(state.threads, (t) => {
    const idle = held && partners[t] === null;
    const kind = !held ? "waiting" : idle ? "masked" : current ? "active" : "done";
    const when = row === plan.rows ? tr`at first` : describeKind(plan.tree[row - plan.rows - 1]);
    const what = !held ? tr`not yet` : idle ? tr`idle` : number(held[t], 6);
    const said = tr`thread ${t}, ${when}: ${what}`;
    return spot(row, t, said, cell(left + t * column, lineTop(row), column - 4, box, held && !idle ? fit(held[t], column - 4) : "", { state: kind, heavy: current && kind === "active", size: SMALL }));
  });
  const sums = plan.own && plan.done ? seen.steps[Math.min(plan.done, plan.own) - 1].held : seen.loaded;
  const lines = [drawLine(plan.rows, sums, plan.done && plan.done <= plan.own ? seen.steps[plan.done - 1].partners : range(state.threads, () => 0), plan.done <= plan.own)];
  const wires = [];
  const heads = [];
  const head = (row, words, current) => (wide
    ? heads.push(text(left - 12, lineTop(row) + box / 2, words[0], { anchor: "end", bold: current, size: SMALL, fill: current ? "var(--ink)" : "var(--quiet)" }),
      words[1] && text(left - 12, lineTop(row) - gap / 2, words[1], { anchor: "end", size: SMALL, fill: "var(--quiet)" }))
    : heads.push(headOver(left, lineTop(row) - (row === plan.rows ? 11 : gap - 13), joinClauses(words.filter(Boolean)), current)));
  head(plan.rows, [tr`threads hold`], plan.done <= plan.own);
  plan.tree.forEach((step, i) => {
    const row = plan.rows + 1 + i;
    const [shown, current] = [treeDone > i, treeDone === i + 1];
    lines.push(drawLine(row, shown ? step.held : null, step.partners, current));
    const memory = step.kind !== "shuffle";
    head(row, [describeKind(step), memory ? tr`shared memory` : tr`registers`], current);
    const [from, to] = [lineTop(row) - gap, lineTop(row)];
    const strip = from + (wide ? gap / 2 : gap - 22);
    if (memory) wires.push(svg("rect", { x: left, y: strip - 6, width: state.threads * column - 4, height: 12, rx: 3, fill: "var(--control)", stroke: "var(--edge)", "stroke-dasharray": shown ? null : "3 4" }));
    if (!shown) return;
    step.partners.forEach((partner, t) => {
      if (partner === null) return;
      for (const source of findSources(state, step, t)) {
        const own = source === t && !HANDS_ON.includes(step.kind);
        const on = followed?.lines.has(`${row} ${source} ${t}`);
        const points = own || !memory ? [[middle(source), from], [middle(t), to]] : [[middle(source), from], [middle(source), strip], [middle(t), to]];
        wires.push(path(points, { stroke: on || (current && !followed) ? "var(--ink)" : "var(--quiet)", "stroke-width": on ? 3 : current && !followed ? 1.6 : 0.8, "stroke-dasharray": own ? "2 4" : null, opacity: followed && !on ? 0.3 : null, "pointer-events": "none" }));
      }
    });
  });
  const names = range(state.threads, (t) => text(middle(t), top - 12, wide && column > 54 ? tr`thread ${t}` : String(t), { anchor: "middle", size: SMALL, fill: "var(--quiet)" }));
  const bands = top > 26 && range(state.threads / state.warp, (w) => {
    const [x, end] = [left + w * state.warp * column - 2, left + (w + 1) * state.warp * column - 2];
    return [w % 2 === 0 && svg("rect", { x, y: 4, width: end - x, height: lineTop(rows - 1) + box, fill: "var(--control)", opacity: 0.7 }), text((x + end) / 2, 14, tr`warp ${w}`, { anchor: "middle", size: SMALL, bold: true })];
  });
  const bottom = lineTop(rows - 1) + box + 22;
  const key = legend([
    { words: tr`at work now`, fill: "var(--active)" }, { words: tr`holds a number`, fill: "var(--done)" }, { words: tr`idle`, fill: "var(--masked)", hatch: "masked" },
    { words: tr`its own number`, fill: "var(--quiet)", line: "2 4" }, { words: tr`another thread's`, fill: "var(--quiet)", line: "" }, { words: tr`not yet`, fill: "var(--waiting)" }], left, bottom, width - left - 4);
  return { draw: [bands, names, wires, values, lines, heads.filter(Boolean), wide && text(left - 12, top + box / 2, tr`values`, { anchor: "end", size: SMALL, fill: "var(--quiet)" }), key.draw], height: bottom + key.height };
}

/** Where there is no room beside the lines, their names stand on them. */
const headOver = (x, y, words, current) => [
  svg("rect", { x: x - 2, y: y - 8, width: measure(words, SMALL, current ? "600" : "normal") + 6, height: 16, fill: "var(--paper)" }),
  text(x, y, words, { size: SMALL, bold: current, fill: current ? "var(--ink)" : "var(--quiet)" })];

const describeKind = (step) => ({ shared: tr`stride ${step.stride}`, shuffle: `xor ${step.stride}`, meet: tr`warps meet`, share: tr`to all` })[step.kind];
