// Lesson 08: what the compiler makes of a kernel, for 1 to 32 warps: registers, spills, widths of loads, what fits a multiprocessor, and
// the PTX and SASS of a source line. All numbers are the compiler's; the words are made here.

import { FONT, LINE_HEIGHT, MONO, SMALL, breakCode, cell, choice, code, count, drawLines, joinClauses, joinSentences, legend, list, measure, number, slider, svg, target, text, tr } from "../../kit/kit.js";

const MOST_REGISTERS = 255; // of a thread, on every architecture here
const RESOURCES = { warps: () => tr`warps`, programs: () => tr`programs`, registers: () => tr`registers`, "shared memory": () => tr`shared memory` };
const warpsOf = (many) => count(many, "warp");
const limitsOf = (column) => list(column.limited.map((name) => RESOURCES[name]()));

/** "1 and 2 warps", "4 to 32 warps", of all the numbers of warps tried. */
function listWarps(chosen, all) {
  if (chosen.length === 1) return warpsOf(chosen[0]);
  const whole = all.filter((warps) => warps >= chosen[0] && warps <= chosen.at(-1)).length === chosen.length;
  return whole && chosen.length > 2 ? tr`${chosen[0]} to ${chosen.at(-1)} warps` : tr`${list(chosen)} warps`;
}

/** The one message of a compiled kernel, from the reports themselves. */
export function makeTitle({ block, columns }, warps) {
  const chosen = columns.find((column) => column.warps === warps);
  if (chosen.refused) return tr`The compiler makes no kernel for ${warpsOf(warps)}`;
  const known = columns.filter((column) => !column.refused);
  const all = known.map((column) => column.warps);
  const spilling = known.filter((column) => column.spill).map((column) => column.warps);
  if (spilling.length && spilling.length < known.length) return tr`BLOCK = ${block} spills registers with ${listWarps(spilling, all)}, and not with ${listWarps(all.filter((each) => !spilling.includes(each)), all)}`;
  if (spilling.length) return tr`BLOCK = ${block} spills registers with every number of warps tried`;
  const [first, last] = [known[0], known.at(-1)];
  if (first === last || first.registers <= last.registers) return tr`BLOCK = ${block} spills no registers: ${chosen.registers} registers per thread`;
  return tr`More warps, fewer registers per thread: ${first.registers} with ${warpsOf(first.warps)}, ${last.registers} with ${warpsOf(last.warps)}`;
}

const bitsOf = (widths) => list(widths.map(([bits]) => bits));

const describeAccesses = ({ loads, stores }) => [
  loads.length ? tr`Loads from global memory move ${bitsOf(loads)} bits per thread.` : tr`Nothing is loaded from global memory.`,
  stores?.length ? tr`Stores move ${bitsOf(stores)} bits per thread.` : tr`Nothing is stored.`,
];

export function makeCaption(set, warps) {
  const column = set.columns.find((each) => each.warps === warps);
  const head = joinClauses([set.kernel, set.words, warpsOf(warps), set.arch]);
  if (column.refused) return joinSentences([tr`${head}.`, column.refused]);
  const spilled = column.spill ? tr`${column.spill} bytes per thread are spilled` : tr`nothing is spilled`;
  const words = [tr`${head}: ${column.registers} registers per thread, ${spilled}, ${column.shared} bytes of shared memory per program.`];
  if (column.loads) words.push(...describeAccesses(column));
  if (!column.resident) words.push(tr`A multiprocessor has not enough ${limitsOf(column)} for one program.`);
  else if (column.limited.length) words.push(tr`${column.resident} of the ${column.most} warps that a multiprocessor can hold are resident, limited by ${limitsOf(column)}.`);
  else words.push(tr`${column.resident} of the ${column.most} warps that a multiprocessor can hold are resident: no place is free.`);
  return joinSentences(words);
}

/** The first line with a load that became instructions; the first line with any, if there is none. */
export function findFirstLine(set) {
  const column = set.columns.find((each) => !each.refused);
  const carried = set.source.filter(([line]) => column.code[line]);
  return (carried.find(([, , words]) => words.includes("tl.load(")) ?? carried[0] ?? set.source[0])?.[0] ?? 0;
}

/** What a line became, as PTX and as SASS: how many instructions, how many of each kind, the first few. */
const made = (column, line) => column.code?.[line] ?? [[0, [], []], [0, [], []]];

export function picture(data) {
  const names = data.sets.map((set) => joinClauses([set.kernel, set.words, set.arch].filter(Boolean)));
  const options = names.map((name, index) => [index, names.indexOf(name, index + 1) > 0 ? tr`${name}, before the change` : name]); // a file that has changed
  const setOf = (state) => data.sets[state.set];
  const lineOf = (state) => (setOf(state).source.some(([line]) => line === state.line) ? state.line : findFirstLine(setOf(state)));
  const carried = (state) => { const column = setOf(state).columns.find((each) => each.warps === state.warps); return setOf(state).source.map(([line]) => line).filter((line) => column.code?.[line]); };
  const start = { set: data.chosen, warps: data.warps, line: findFirstLine(data.sets[data.chosen]) };
  const warps = data.sets[0].columns.map((column) => column.warps);
  const lines = (stage) => { // over the lines that became instructions, which depend on the column
    const index = slider("line", tr`line`, {
      min: 0, max: (state) => Math.max(carried(state).length - 1, 0), format: () => String(lineOf(stage.state)),
    })({ get state() { return stage.state; }, set: ({ line }) => stage.set({ line: carried(stage.state)[line] }) });
    return { ...index, show: () => index.show(Math.max(carried(stage.state).indexOf(lineOf(stage.state)), 0)) };
  };
  return {
    start, makeTitle, makeCaption,
    controls: [
      ...(data.sets.length > 1 ? [[choice("set", tr`compiled`, options)]] : []),
      [slider("warps", "num_warps", { values: warps }), lines],
    ],
    render(state, width) {
      const set = setOf(state);
      const line = lineOf(state);
      const column = set.columns.find((each) => each.warps === state.warps);
      const wide = width >= 780;
      const chart_width = wide ? Math.round(width * 0.47) : width;
      const chart = drawColumns(set, state.warps, chart_width);
      const places = drawResidency(column, chart_width, chart.bottom + 20);
      const source = drawSource(set, column, line, wide ? { left: chart_width + 26, top: 0, width: width - chart_width - 26 } : { left: 0, top: places.bottom + 18, width });
      const panes = drawPanes(column, line, chart_width, (wide ? places.bottom : source.bottom) + 8);
      const title = makeTitle(set, state.warps);
      const [ptx, sass] = made(column, line);
      const said = column.refused ? [] : [tr`Line ${line} became ${count(ptx[0], "PTX instruction")} and ${count(sass[0], "SASS instruction")}.`];
      return { title, caption: joinSentences([makeCaption(set, state.warps), ...said]), height: Math.max(panes.bottom, source.bottom), draw: [chart.draw, places.draw, source.draw, panes.draw] };
    },
  };
}

const widthsOf = (widths, times) => (widths === null ? ["-"] : widths.length ? widths.map(([bits, many]) => `${many}${times}${bits}`) : [tr`none`]);

/** A column a number of warps: registers, spilled bytes, and the rest of its report below. A column can be pressed. */
function drawColumns(set, warps, width) {
  const key = legend([
    { words: tr`registers per thread, 255 at most`, fill: "var(--x)", ink: "var(--quiet)" },
    { words: tr`bytes spilled per thread`, fill: "var(--fault)", hatch: "fault", ink: "var(--quiet)" },
  ], 2, 9, width - 2);
  const [top, tall] = [30 + key.height, 128];
  const step = width / set.columns.length;
  const base = top + tall;
  const size = Math.min(FONT, Math.max(SMALL, step / 5.6));
  const spilled = Math.max(...set.columns.map((column) => column.spill ?? 0));
  const times = step < 84 ? "\u00d7" : " \u00d7 ";
  const rows = [
    [tr`bytes of shared memory per program`, (column) => [number(column.shared, 6)]],
    [tr`loads from global memory: how many \u00d7 bits per thread`, (column) => widthsOf(column.loads, times)],
    [tr`stores`, (column) => widthsOf(column.stores, times)],
    [tr`resident warps of a multiprocessor`, (column) => [tr`${column.resident} of ${column.most}`]],
    [tr`limited by`, (column) => (column.limited.length ? column.limited.map((name) => (name === "shared memory" ? tr`shared` : RESOURCES[name]())) : [tr`warps`])],
  ];
  let y = base + 46;
  const table = rows.map(([name, read]) => {
    const cells = set.columns.map((column) => (column.refused ? ["-"] : read(column)));
    const height = 17 * Math.max(...cells.map((lines) => lines.length));
    const at = y;
    y += height + 27;
    return [
      svg("line", { x1: 0, x2: width, y1: at - 9, y2: at - 9, stroke: "var(--grid)" }),
      text(2, at + 2, name, { size: SMALL, fill: "var(--quiet)" }),
      cells.map((lines, i) => lines.map((words, k) => text((i + 0.5) * step, at + 20 + 17 * k, words, { anchor: "middle", size, bold: set.columns[i].warps === warps }))),
    ];
  });
  const bottom = y - 14;
  const limit = base - tall;
  const bar = Math.min(24, step * 0.36);
  const columns = set.columns.map((column, i) => {
    const middle = (i + 0.5) * step;
    const chosen = column.warps === warps;
    const name = warpsOf(column.warps);
    const bars = column.refused
      ? text(middle, base - 20, tr`refused`, { anchor: "middle", size: SMALL, fill: "var(--quiet)" })
      : [["registers", column.registers, MOST_REGISTERS, middle - bar - 1], ["spill", column.spill, spilled, middle + 1]].map(([name, value, most, x]) => {
        const high = value ? Math.max((tall * value) / most, 2) : 0;
        const label = String(value);
        const shift = name === "registers" ? Math.min(0, bar - measure(label, SMALL)) / 2 : Math.max(0, measure(label, SMALL) - bar) / 2;
        const outermost = width - measure(label, SMALL) / 2;
        const place = Math.min(x + bar / 2 + shift, outermost);
        const crowded = name === "spill" && (place === outermost || measure(label + column.registers, SMALL) + 8 > step) ? 13 : 0; // one above the other
        return [
          value > 0 && (name === "spill" ? cell(x, base - high, bar, high, "", { state: "fault" }) : svg("rect", { x, y: base - high, width: bar, height: high, fill: "var(--x)", stroke: "var(--edge)" })),
          text(place, base - high - 9 - crowded, label, { anchor: "middle", size: SMALL, halo: true })];
      });
    return [target(`warps-${column.warps}`, { label: column.refused ? tr`${warpsOf(column.warps)}: refused` : tr`${warpsOf(column.warps)}: ${column.registers} registers, ${column.spill} bytes spilled`, pressed: chosen, press: () => ({ warps: column.warps }) },
      svg("rect", { x: i * step + 1.5, y: top - 16, width: step - 3, height: bottom - top + 16, rx: 4, fill: chosen ? "var(--active)" : "transparent", "fill-opacity": 0.18, stroke: chosen ? "var(--ink)" : "transparent", "stroke-width": 1.5 }),
      text(middle, base + 14, measure(name, size, "600") < step ? name : String(column.warps), { anchor: "middle", size, bold: chosen })),
    svg("g", { "pointer-events": "none" }, bars)];
  });
  return { bottom, draw: [key.draw, svg("line", { x1: 0, x2: width, y1: limit, y2: limit, stroke: "var(--quiet)", "stroke-dasharray": "5 4" }), svg("line", { x1: 0, x2: width, y1: base, y2: base, stroke: "var(--quiet)" }), columns, svg("g", { "pointer-events": "none" }, table)] };
}

/** The places that a multiprocessor has for warps: those taken, program by program, and those left empty. */
function drawResidency(column, width, top) {
  if (column.refused) return { draw: [], bottom: top };
  const across = 32;
  const size = Math.min(15, (width - 4) / across);
  const rows = Math.ceil(column.most / across);
  const programs = column.resident / column.warps;
  const held = tr`${count(programs, "program")} of ${warpsOf(column.warps)} on a multiprocessor`;
  const words = !column.resident ? tr`a multiprocessor cannot hold even one program` : column.limited.length ? tr`${held}, then ${limitsOf(column)} run out` : held;
  const said = drawLines(words, 2, top + 6 - LINE_HEIGHT / 2, width - 2, { size: SMALL });
  const squares_top = top + said.height + 1;
  const place = (i) => [2 + (i % across) * size, squares_top + Math.floor(i / across) * (size + 2)];
  const kinds = [["var(--active)", (i) => i < column.resident && Math.floor(i / column.warps) % 2 === 0], ["var(--done)", (i) => i < column.resident && Math.floor(i / column.warps) % 2 === 1], ["var(--waiting)", (i) => i >= column.resident]];
  const squares = kinds.map(([fill, holds]) => {
    const d = Array.from({ length: column.most }, (_, i) => (holds(i) ? `M${place(i).join(",")}h${size - 2}v${size - 2}h${2 - size}Z` : "")).join("");
    return d && svg("path", { d, fill, stroke: "var(--edge)", "stroke-dasharray": fill === "var(--waiting)" ? "2 2" : null });
  });
  return { draw: [said.draw, squares], bottom: squares_top + rows * (size + 2) };
}

/** The kernel's lines, each with a bar of the SASS instructions that it became. A line with any can be pressed. */
function drawSource(set, column, chosen, { left, top, width }) {
  const bars = 74;
  const code_left = left + bars + 36;
  const room = Math.floor((left + width - code_left) / MONO);
  const most = Math.max(1, ...Object.values(column.code ?? {}).map(([, sass]) => sass[0]));
  const draw = [text(left, top + 8, tr`SASS instructions of each line: press a line`, { size: SMALL, fill: "var(--quiet)" })];
  let y = top + 32;
  for (const [line, indent, words] of set.source) {
    const became = column.code?.[line];
    const parts = breakCode(words, room - indent);
    const height = 18 + 14 * (parts.length - 1);
    const inside = [
      svg("rect", { x: left, y: y - 9, width, height, rx: 3, fill: line === chosen ? "var(--active)" : "transparent", "fill-opacity": 0.25, stroke: line === chosen ? "var(--ink)" : "transparent" }),
      became && svg("rect", { x: left + 34, y: y - 4, width: Math.max(((bars - 40) * became[1][0]) / most, 1), height: 8, fill: "var(--x)" }),
      text(code_left - 6, y, String(line), { anchor: "end", size: SMALL, fill: "var(--quiet)" }),
      parts.map((part, i) => code(code_left + (indent + (i ? 4 : 0)) * MONO, y + 14 * i, part, { fill: became ? "var(--ink)" : "var(--quiet)" })),
    ];
    // the slider reaches every line by keyboard: a stop of the Tab key on each would be in the way
    draw.push(became ? target(`line-${line}`, { label: count(became[1][0], "SASS instruction"), pressed: line === chosen, press: () => ({ line }), tabindex: -1 }, inside) : inside);
    if (became) draw.push(text(left + 30, y, String(became[1][0]), { anchor: "end", size: SMALL, fill: "var(--quiet)", "pointer-events": "none" }));
    y += height;
  }
  return { draw, bottom: y };
}

/** What the chosen line became: how many instructions of each kind, and the first few as they are written. */
function drawPanes(column, line, width, top) {
  let y = top;
  const draw = ["PTX", "SASS"].map((name, i) => {
    const start = y + 8;
    const inside = [];
    const [many, kinds, first] = made(column, line)[i];
    inside.push(text(10, start + 16, column.refused ? tr`${name}: there is no report, see the words below` : tr`${name} of line ${line}: ${count(many, "instruction")}`, { bold: true }));
    y = start + 40;
    if (!many && !column.refused) {
      for (const words of tr`No instruction belongs to this line: its result is known
at compile time, or another line's instructions include it.`.split("\n")) { inside.push(text(10, y, words, { size: SMALL, fill: "var(--quiet)" })); y += 16; }
    }
    let x = 10;
    for (const [kind, times] of kinds) {
      const words = `${times} \u00d7 ${kind}`;
      const room = measure(words, SMALL) + 18;
      if (x + room > width - 8 && x > 10) { x = 10; y += 24; }
      inside.push(svg("rect", { x, y: y - 10, width: room - 6, height: 20, rx: 4, fill: "var(--paper)", stroke: "var(--edge)" }), text(x + 6, y, words, { size: SMALL }));
      x += room;
    }
    if (kinds.length) y += 26;
    for (const instruction of first) {
      breakCode(instruction, Math.floor((width - 24) / MONO)).forEach((part, k) => { inside.push(code(10 + (k ? 4 * MONO : 0), y, part)); y += 16; });
    }
    if (many > first.length) { inside.push(text(10, y, tr`and ${many - first.length} more`, { size: SMALL, fill: "var(--quiet)" })); y += 16; }
    return [svg("rect", { x: 0, y: start, width, height: y - start, rx: 5, fill: "var(--control)", stroke: "var(--edge)" }), inside];
  });
  return { bottom: y + 4, draw };
}
