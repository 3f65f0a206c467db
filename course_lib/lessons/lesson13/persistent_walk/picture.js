// Lesson 13: the persistent kernel. P programs walk over the tiles of x and dy; a second stage adds up their partial sums.

import { SMALL, arrow, cell, choice, count, joinSentences, legend, list, number, slider, stepper, svg, text, tr } from "../../kit/kit.js";

const LINE = 22; // px from row to row
const add = (a, b) => a.map((value, i) => value + b[i]);

/** The walk: which tile each program takes in which turn, and all sums up to the frame. */
export function explain(data, { m, programs, tile, frame }) {
  const zeros = data.products[0].map(() => 0);
  const tiles = Math.ceil(m / tile);
  const turns = Math.ceil(tiles / programs);
  const frames = 1 + turns + 1 + programs; // the start, the turns, the store, the additions of stage two
  const at = Math.min(frame, frames - 1);
  const rowsOf = (number) => Array.from({ length: tile }, (_, i) => number * tile + i).filter((row) => row < m);
  const walks = Array.from({ length: programs }, (_, program) => {
    const own = Array.from({ length: turns }, (_, turn) => program + turn * programs).filter((number) => number < tiles);
    const taken = own.slice(0, at);
    const rows = taken.flatMap(rowsOf);
    return { own, rows, now: at >= 1 && at <= turns && own.length >= at ? own[at - 1] : null, partial: rows.map((row) => data.products[row]).reduce(add, zeros) };
  });
  const added = Math.max(at - turns - 1, 0); // programs whose partial sums stage two has added
  return {
    at, frames, tiles, turns, walks, added, rowsOf, stored: at > turns,
    dw: walks.slice(0, added).map(({ partial }) => partial).reduce(add, zeros),
    owner: (row) => walks.findIndex(({ rows }) => rows.includes(row)),
  };
}

export function makeTitle({ programs, m }, seen) {
  const { at, turns, walks, added } = seen;
  if (at === 0) return tr`${count(programs, "program")}, ${count(seen.tiles, "tile")}: nothing is read yet`;
  if (at <= turns) {
    const adding = list(walks.map(({ now }, program) => (now === null ? null : tr`program ${program} adds tile ${now}`)).filter(Boolean));
    return tr`Turn ${at}: ${adding}`;
  }
  if (added === 0) return tr`No tile is left: each program stores its partial dw, once`;
  if (added < programs) return tr`Stage two adds the partial dw of program ${added - 1}`;
  return tr`dw is complete: ${count(programs, "row")} of partial sums were stored for ${count(m, "row")} of dy`;
}

export function makeCaption({ programs, tile }, seen) {
  const { at, turns, walks, added, dw } = seen;
  if (at === 0) return tr`Program p takes the tiles p, p + ${programs}, p + ${2 * programs}, ... of ${count(tile, "row")} each, until no tile is left. The partial dw of each program begins at 0, and stays in registers.`;
  if (at > turns && added) return tr`The order of the additions is fixed, program 0 first, whichever program was ready first. dw is ${list(dw.map((value) => number(value)))}.`;
  const words = walks.map(({ rows, own }, program) => {
    if (!rows.length) return tr`Program ${program} has no tile, and stores zeros.`;
    const taken = rows.length > 1 ? tr`rows ${list(rows)}` : tr`row ${list(rows)}`;
    return own.length < at && at <= turns ? tr`Program ${program} has added ${taken}, and has no tile left.` : tr`Program ${program} has added ${taken}.`;
  });
  return joinSentences(words);
}

export function picture(data) {
  return {
    start: data.start,
    explain: (state) => explain(data, state),
    controls: [
      [slider("m", tr`M rows`, { min: 1, max: data.products.length }), choice("tile", tr`rows per tile`, data.tiles), choice("programs", tr`programs P`, data.counts)],
      [stepper("frame", tr`step`, (state) => explain(data, state).frames, { interval: 1100 })],
    ],
    render(state, width) {
      const seen = explain(data, state);
      const title = makeTitle(state, seen);
      const { draw, height } = drawWalk(data, state, seen, width);
      return { title, caption: makeCaption(state, seen), height, draw,
        alt: tr`Rows of dy times xhat in tiles on the left; beside them a partial dw for each program, and dw, which a second stage adds up from them.` };
    },
  };
}

function drawWalk(data, state, seen, width) {
  const wide = width >= 700;
  const columns = data.products[0].length;
  const box = wide ? 44 : Math.min(34, (width - 166) / (2 * columns));
  const right = width - columns * box - 2;
  const [rowsAt, partialsAt] = [66, wide ? 66 + (right - 66) * 0.52 : right];
  const [dwAt, top] = [right, 34];
  const step = Math.max((state.m * LINE) / state.programs, 54);
  const partialTop = (program) => top + program * step + 20;
  const partialsEnd = top + state.programs * step;
  const dwTop = wide ? (top + partialsEnd) / 2 - LINE / 2 : partialsEnd + 36;
  const numbers = (values, x, y, look) => values.map((value, i) => cell(x + i * box, y, box, LINE - 2, look.empty ? "" : number(value), { size: SMALL, ...look }));
  const drawn = [text(rowsAt, 10, "dy \u00b7 xhat", { bold: true }), text(partialsAt, 10, tr`partial dw`, { bold: true })];

  for (let number = 0; number < seen.tiles; number++) {
    const rows = seen.rowsOf(number);
    const [from, until] = [top + rows[0] * LINE, top + (rows.at(-1) + 1) * LINE - 2];
    drawn.push(text(0, (from + until) / 2, tr`tile ${number}`, { size: SMALL }),
      svg("path", { d: `M${rowsAt - 22},${from}h-4V${until}h4`, fill: "none", stroke: "var(--quiet)" }));
    for (const row of rows) {
      const owner = seen.owner(row);
      const active = owner >= 0 && seen.walks[owner].now === number;
      const y = top + row * LINE;
      drawn.push(
        text(rowsAt - 5, y + LINE / 2 - 1, `${row}`, { anchor: "end", size: SMALL, fill: "var(--quiet)" }),
        numbers(data.products[row], rowsAt, y, { state: active ? "active" : owner >= 0 ? "done" : "waiting", heavy: active }),
        owner >= 0 && text(rowsAt + columns * box + 5, y + LINE / 2 - 1, `p${owner}`, { size: SMALL, bold: active }));
    }
  }
  seen.walks.forEach(({ now, own, partial }, program) => {
    const y = partialTop(program);
    const adding = seen.stored && seen.added === program + 1;
    const where = seen.stored ? tr`in memory` : seen.at > 0 && own.length < seen.at ? tr`no tile left` : tr`registers`;
    drawn.push(
      text(partialsAt, y - 11, wide ? tr`program ${program}: ${where}` : tr`p${program}: ${where}`, { size: SMALL }),
      numbers(partial, partialsAt, y, { state: now !== null || adding ? "active" : seen.stored ? "done" : "waiting", heavy: now !== null || adding }));
    if (now !== null) {
      const rows = seen.rowsOf(now);
      drawn.push(arrow([rowsAt + columns * box + 24, top + ((rows[0] + rows.at(-1) + 1) / 2) * LINE - 1], [partialsAt - 4, y + LINE / 2 - 1], { colour: "var(--ink)" }));
    }
    if (adding && wide) drawn.push(arrow([partialsAt + columns * box + 4, y + LINE / 2 - 1], [dwAt - 4, dwTop + LINE / 2 - 1], { colour: "var(--ink)" }));
    if (adding && !wide) drawn.push(arrow([partialsAt - 3, y + LINE / 2 - 1], [partialsAt - 3, dwTop + LINE / 2 - 1], { bend: 22, colour: "var(--ink)" }));
  });
  const complete = seen.added === state.programs;
  drawn.push(text(dwAt, dwTop - 12, wide ? tr`stage two: dw` : "dw", { bold: true }),
    numbers(seen.dw, dwAt, dwTop, { state: complete ? "done" : seen.added ? "active" : "waiting", heavy: seen.added > 0, empty: seen.added === 0 }));
  const bottom = Math.max(top + state.m * LINE, partialsEnd, dwTop + LINE) + 16;
  const key = legend([{ words: tr`not yet`, fill: "var(--waiting)" }, { words: tr`at work`, fill: "var(--active)" }, { words: tr`done; p: the program that added the row`, fill: "var(--done)" }], 0, bottom, width);
  return { draw: [drawn, key.draw], height: bottom + key.height };
}
