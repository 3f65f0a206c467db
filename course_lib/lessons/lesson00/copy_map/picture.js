// Lesson 00: x above, y below, and between them the lanes, each over the element it copies. All of it is whole numbers, worked out here.

import { SMALL, arrow, cell, choice, count, handle, joinSentences, measure, slider, svg, target, text, toggle, tr } from "../../kit/kit.js";

const MEMORY = 64; // numbers from the start of x, and from the start of y; 40 elements in blocks of 16 and one program more reach so far
const OLD = -1; // what the tensor behind y holds
const GRIDS = { floor: "n // BLOCK", cdiv: "cdiv(n, BLOCK)", more: "cdiv(n, BLOCK) + 1" };

/** What lies at `offset` from the start of x: two digits, so that nobody takes a value for an offset. */
const valueAt = (offset) => 99 - offset;

/** Run the launch. `y` is what lies from the start of y afterwards: null is an element that keeps its old value. */
export function explain({ n, block, masked, grid }) {
  const needed = Math.ceil(n / block);
  const programs = { floor: Math.floor(n / block), cdiv: needed, more: needed + 1 }[grid];
  const y = Array.from({ length: MEMORY }, (_, offset) => (offset < n ? null : OLD));
  for (let program = 0; program < programs; program++) {
    for (let lane = 0; lane < block; lane++) {
      const offset = program * block + lane;
      if (!masked || offset < n) y[offset] = valueAt(offset);
    }
  }
  const lanes = programs * block;
  return { needed, programs, lanes, y, missed: Math.max(n - lanes, 0), spare: Math.max(lanes - n, 0), overwritten: masked ? 0 : Math.max(lanes - n, 0) };
}

export function makeTitle({ n, block, masked }, seen) {
  if (seen.programs === 0) return tr`A grid of 0 programs writes nothing to y, and raises no error`;
  if (seen.missed) {
    const few = seen.programs === 1 ? tr`1 program is too few` : tr`${seen.programs} programs are too few`;
    return seen.missed === 1 ? tr`${few}: 1 element of y is never written` : tr`${few}: ${seen.missed} elements of y are never written`;
  }
  if (seen.overwritten === 1) return tr`y is right, and 1 number of another tensor is gone`;
  if (seen.overwritten) return tr`y is right, and ${seen.overwritten} numbers of another tensor are gone`;
  if (seen.programs > seen.needed) return tr`One program more than needed: the mask holds all its lanes back`;
  if (seen.spare) return tr`The mask holds back ${count(seen.spare, "lane")} of program ${seen.programs - 1}, and the memory behind y stays as it was`;
  if (masked) return tr`${n} is ${seen.programs} \u00d7 ${block}: every lane has an element, and the mask changes nothing`;
  return tr`${n} is ${seen.programs} \u00d7 ${block}: every lane has an element, and nothing shows that the mask is missing`;
}

/** What the chosen lane does, and then the launch as a whole. */
export function makeCaption({ n, block, masked, at }, seen) {
  const [program, lane] = [Math.floor(at / block), at % block];
  const head = tr`Program ${program}, lane ${lane}: offset ${program} \u00b7 ${block} + ${lane} = ${at}.`;
  const here = at >= seen.lanes
    ? at < n ? tr`No lane has offset ${at}, so y[${at}] keeps its old value.` : tr`Offset ${at} lies behind y, and no lane has this offset.`
    : at < n ? joinSentences([head, tr`The lane reads x[${at}] = ${valueAt(at)} and writes this value to y[${at}].`])
      : masked ? joinSentences([head, tr`${at} < ${n} is false: the lane reads nothing and writes nothing.`])
        : joinSentences([head, tr`No mask compares this offset with n = ${n}: the lane reads ${valueAt(at)} from behind x, and overwrites ${OLD} behind y.`]);
  const launch = tr`${count(seen.programs, "program")} of ${count(block, "lane")} for n = ${n}: ${count(seen.lanes, "lane")}.`;
  const wrong = [
    seen.missed && (seen.missed === 1 ? tr`Element ${n - 1} of y was never written.` : tr`Elements ${seen.lanes} to ${n - 1} of y were never written.`),
    seen.overwritten && (seen.overwritten === 1 ? tr`Offset ${n} lies outside y, and was overwritten.` : tr`Offsets ${n} to ${seen.lanes - 1} lie outside y, and were overwritten.`),
  ].filter(Boolean);
  return joinSentences([here, launch, ...wrong]);
}

export function picture(data) {
  return {
    start: data.start,
    explain,
    controls: [
      [slider("n", "n", { min: 1, max: data.maxN }), choice("block", "BLOCK", data.blocks), toggle("masked", "mask = offsets < n")],
      [choice("grid", tr`grid`, Object.entries(GRIDS)), slider("at", tr`offset`, { min: 0, max: MEMORY - 1 })],
    ],
    render(state, width) {
      const seen = explain(state);
      const columns = width >= 760 ? 32 : 16;
      const [left, step] = [56, Math.min((width - 64) / columns, 30)];
      const lines = Math.ceil(Math.min(Math.max(seen.lanes, state.n + 3, state.at + 1), MEMORY) / columns);
      const tall = 174;
      const title = makeTitle(state, seen);
      const caption = makeCaption(state, seen);
      return {
        title, caption,
        alt: tr`${MEMORY} numbers of memory from the start of x above, from the start of y below, and the lanes between them.`,
        height: lines * tall + (columns === 32 ? 30 : 70),
        draw: [
          Array.from({ length: lines }, (_, line) => drawLine(state, seen, { first: line * columns, columns, left, step, top: line * tall + 8 })),
          drawEnd(data, state, { columns, left, step, tall }),
          drawLegend(state, seen, lines * tall + 16, width),
        ],
      };
    },
  };
}

const ROW = { x: 20, lanes: 66, y: 112, foot: 152 }; // tops, from the top of a line
const TALL = 26;
const FOREIGN = { fill: "transparent", ink: "var(--quiet)", "stroke-dasharray": "3 3" }; // memory that is not x's or y's

/** A piece of memory: x, the lanes over it, y. A column is pressed to look at it. */
function drawLine(state, seen, { first, columns, left, step, top }) {
  const last = Math.min(first + columns, MEMORY);
  const place = (offset) => left + (offset - first) * step;
  const here = state.at >= first && state.at < last;
  const names = [[tr`program`, ROW.x - 12, seen.lanes > first], ["x", ROW.x + TALL / 2, true], [tr`lanes`, ROW.lanes + TALL / 2, seen.lanes > first], ["y", ROW.y + TALL / 2, true]];
  return [
    names.map(([name, y, shown]) => shown && text(left - 8, top + y, name, { anchor: "end", size: SMALL, fill: "var(--quiet)" })),
    drawPrograms(state, seen, first, last, place, top),
    Array.from({ length: last - first }, (_, i) => drawColumn(state, seen, first + i, place(first + i), step, top)),
    here && drawPath(state, seen, place(state.at) + step / 2, top),
  ];
}

/** A bracket over the lanes of each program. */
function drawPrograms({ block }, seen, first, last, place, top) {
  const programs = [];
  for (let program = Math.floor(first / block); program * block < Math.min(last, seen.lanes); program++) {
    const [from, to] = [place(Math.max(program * block, first)) + 2, place(Math.min((program + 1) * block, last)) - 2];
    programs.push(
      svg("path", { d: `M${from},${top + ROW.x - 4}v-4H${to}v4`, fill: "none", stroke: "var(--quiet)" }),
      text((from + to) / 2, top + ROW.x - 12, String(program), { anchor: "middle", size: SMALL, halo: true }));
  }
  return programs;
}

function drawColumn({ n, block, masked, at }, seen, offset, x, step, top) {
  const wide = step - 2;
  const own = offset < n;
  const lane = own ? "active" : masked ? "masked" : "fault";
  const y = seen.y[offset];
  const memory = own ? { state: y === null ? "waiting" : "done" } : y === OLD ? FOREIGN : { state: "fault" };
  const box = (row, label, look) => cell(x + 1, top + row, wide, TALL, label, { size: SMALL, ...look });
  return target(`at-${offset}`, { label: tr`offset ${offset}`, press: () => ({ at: offset }), pressed: offset === at, tabindex: -1 },
    svg("rect", { x, y: top + ROW.x, width: step, height: ROW.y + TALL - ROW.x, fill: "transparent" }),
    box(ROW.x, String(valueAt(offset)), own ? { state: "waiting" } : FOREIGN),
    offset < seen.lanes && box(ROW.lanes, String(offset % block), { state: lane, heavy: offset === at }),
    box(ROW.y, y === null ? "?" : String(y), { ...memory, heavy: offset === at }));
}

/** From x through the chosen lane to y: arrows where something is moved, a bar where the mask stops it. */
function drawPath({ n, masked, at }, seen, x, top) {
  if (at >= seen.lanes) return null;
  const gaps = [[top + ROW.x + TALL + 2, top + ROW.lanes - 1], [top + ROW.lanes + TALL + 2, top + ROW.y - 1]];
  if (at >= n && masked) {
    return gaps.map(([from, to]) => svg("path", { d: `M${x - 6},${(from + to) / 2}h12M${x},${from}V${(from + to) / 2}`, stroke: "var(--ink)", "stroke-width": 2.5, fill: "none" }));
  }
  return gaps.map(([from, to]) => arrow([x, from], [x, to], { colour: "var(--ink)", width: 2.5 }));
}

/** Where x and y end, to be dragged along the memory and from line to line. */
function drawEnd(data, { n }, { columns, left, step, tall }) {
  const line = Math.floor((n - 1) / columns);
  const [x, top] = [left + (n - line * columns) * step, line * tall + 8];
  const words = `n = ${n}`;
  const half = measure(words, SMALL, "600") / 2 + 8;
  const middle = Math.min(Math.max(x, left + half), left + columns * step - half + 4);
  const clamp = (value) => Math.min(Math.max(value, 1), data.maxN);
  return handle("n", x, top + ROW.foot, {
    label: tr`n, the number of elements of x and y`, value: n, min: 1, max: data.maxN, text: count(n, "element"),
    drag: (px, py) => ({ n: clamp(Math.max(0, Math.floor((py - 8) / tall)) * columns + Math.min(Math.max(Math.round((px - left) / step), 0), columns)) }),
    key: (dx, dy) => ({ n: clamp(n + (dx || dy)) }),
    shape: [
      svg("line", { x1: x, x2: x, y1: top + ROW.x - 3, y2: top + ROW.foot - 9, stroke: "var(--ink)", "stroke-width": 3 }),
      svg("rect", { x: middle - half, y: top + ROW.foot - 10, width: 2 * half, height: 20, rx: 10, fill: "var(--chosen)" }),
      text(middle, top + ROW.foot, words, { anchor: "middle", size: SMALL, bold: true, fill: "var(--on-chosen)" }),
    ],
  });
}

function drawLegend({ n, masked }, seen, top, width) {
  const used = [
    seen.lanes && ["active", "", tr`copies`],
    masked && seen.spare && ["masked", "", tr`masked off`],
    seen.lanes && ["done", "", tr`written`],
    seen.missed && ["waiting", "?", tr`never written`],
    ["neighbour", String(OLD), tr`another tensor`],
    seen.overwritten && ["fault", "", tr`another tensor, overwritten`],
  ].filter(Boolean);
  let [x, y] = [8, top];
  return used.map(([state, label, words]) => {
    const long = 30 + measure(words, SMALL) + 18;
    if (x + long > width) [x, y] = [8, y + 20];
    const at = x;
    x += long;
    return [
      cell(at, y - 8, 22, 16, label, { size: SMALL, ...(state === "neighbour" ? FOREIGN : { state }) }),
      text(at + 28, y, words, { size: SMALL }),
    ];
  });
}
