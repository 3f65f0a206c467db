// The charts of the lessons: panels of lines and dots, bars, cells, or boxes, which wrap below one another. Pointing, or the arrow keys, read a value.

import { FONT, LINE_HEIGHT, SMALL, along, arrow, axes, cell, choice, drawLines, handle, labels, legend, linear, log, measure, number, path, roundUp, splitAtBreaks, svg, text, tr, wrapWords } from "../../kit/kit.js";

const GAP = 28; // px between panels
const read = (value) => (value === null ? NaN : value === "Inf" ? Infinity : value === "-Inf" ? -Infinity : value);
const paint = (colour) => `var(--${colour.replaceAll("_", "-")})`;
const inked = (colour) => `color-mix(in srgb, ${paint(colour)} 65%, var(--ink))`; // text in a colour, dark or light enough to read

/** Every tick, or every second, third ..., so that no words lie on others; of uneven ticks those that have room. */
function thin(ticks, scale, size = SMALL) {
  const edges = ([value, words]) => [scale(value) - measure(words, size) / 2 - 3, scale(value) + measure(words, size) / 2 + 3];
  for (let step = 1; step <= 4; step++) {
    const some = ticks.filter((_, i) => i % step === 0);
    if (some.every((tick, i) => i === 0 || edges(some[i - 1])[1] <= edges(tick)[0])) return some;
  }
  let end = -Infinity;
  return ticks.filter((tick) => edges(tick)[0] >= end && ([, end] = edges(tick)));
}

/** The scale of an axis over these values, and its ticks. */
function scaleOf(axis, values, range, upright) {
  const finite = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const room = axis.log && upright ? (most / least) ** 0.03 : 1;
  const low = axis.low ?? (upright && !axis.log ? Math.min(0, least) : least / room);
  const high = axis.high ?? (upright && !axis.log ? roundUp(most * 1.02) : most * room);
  const scale = (axis.log ? log : linear)([low, high], range);
  const inside = (value) => scale(Math.min(Math.max(value, low), high));
  const ticks = axis.ticks?.map((tick) => (Array.isArray(tick) ? tick : [tick, number(tick, 6)]));
  return Object.assign(inside, { invert: scale.invert, ticks: (about) => ticks ?? scale.ticks(about) });
}

/** What the point that is read says. */
function say(panel, [, s, i]) {
  const one = panel.series[s];
  const x = read(one.x[i]);
  const place = panel.x.ticks?.find((tick) => Array.isArray(tick) && tick[0] === x)?.[1] ?? number(x, 6);
  const name = panel.x.name.split(/ \(|[,:;\uff08\uff0c\uff1a\uff1b]/)[0];
  const value = number(read(one.y[i]), 3) + panel.y.unit;
  const words = name ? tr`${value} at ${name} = ${place + panel.x.unit}` : value + place + panel.x.unit;
  return one.name ? tr`${one.name}: ${words}` : words;
}

function drawPlot(panel, index, state, left, top, width, alone) {
  const value = state.at?.[0] === index ? panel.series[state.at[1]]?.y[state.at[2]] : null; // another view may have fewer points
  const at = Number.isNaN(read(value ?? null)) ? null : state.at;
  const head = drawLines(panel.title, left, top, width, { bold: true });
  const said = drawLines(at ? say(panel, at) : panel.y.name, left, top + head.height, width, at ? { bold: true, size: SMALL } : { size: SMALL });
  const nameLines = wrapWords(panel.y.name, width, SMALL).length;
  const y0 = top + head.height + LINE_HEIGHT * Math.max(nameLines, 1) + 9;
  const y1 = y0 + (alone ? 270 : 170);
  const all = panel.series.flatMap((one) => one.y.map(read)).concat(panel.levels.filter((level) => level.axis === "y").map((level) => level.value));
  const y = scaleOf(panel.y, all, [y1, y0], true);
  const yTicks = y.ticks(alone ? 7 : 5);
  const x0 = left + 12 + Math.max(0, ...yTicks.map(([, words]) => measure(words, SMALL)));
  const longest = Math.max(0, ...panel.series.filter((one) => one.line).map((one) => measure(one.name, FONT, "600")));
  const columns = panel.series.flatMap((one) => one.x.map(read));
  const last = panel.x.ticks?.at(-1) ?? Math.max(...columns.filter(Number.isFinite)); // its words stand half beyond the end of the axis
  const beyond = Math.max(12, measure(Array.isArray(last) ? last[1] : number(last, 6), SMALL) / 2);
  const x1 = left + width - (alone && width >= 640 ? Math.min(longest + 12, width * 0.3) : beyond);
  const x = scaleOf(panel.x, columns, [x0 + 8, x1 - 4], false);
  const box = [x0, y0, x1, y1];
  const points = panel.series.map((one) => one.x.map((value, i) => (Number.isNaN(read(one.y[i])) ? null : [x(read(value)), y(read(one.y[i]))])));
  const lines = panel.levels.map((level) => (level.axis === "y" ? [[x0, y(level.value)], [x1, y(level.value)]] : [[x(level.value), y0], [x(level.value), y1]]));
  const between = ([[ax, ay], [bx, by]]) => [0, 0.25, 0.5, 0.75, 1].map((part) => [ax + (bx - ax) * part, ay + (by - ay) * part]);
  const named = [
    ...panel.series.map((one, s) => ({ at: points[s].filter(Boolean).toReversed(), words: one.name, bold: true, fill: inked(one.colour) })),
    ...panel.levels.map((level, i) => ({ at: between(lines[i]), words: level.words, gap: 4, size: SMALL, fill: "var(--quiet)" })),
  ].filter((one) => one.words && one.at.length);
  const obstacles = [
    ...points.flatMap((some, s) => (panel.series[s].line ? along(some.filter(Boolean)) : [])),
    ...points.flat().filter(Boolean).map(([px, py]) => [px - 6, py - 6, px + 6, py + 6]),
    ...lines.map(([[ax, ay], [bx, by]]) => [ax - 1, ay - 1, bx + 1, by + 1]),
  ];
  const place = (some) => labels(some, [x0, y0 - 4, left + width, y1], obstacles);
  const large = place(named);
  const written = large.length === named.length ? large : place(named.map((one) => ({ ...one, size: SMALL, bold: false })));
  const there = new Set(written.map((label) => label.textContent));
  const rest = legend([ // what found no room in the plot
    ...panel.series.map((one) => ({ words: one.name, fill: paint(one.colour), line: one.line ? one.dash : null })),
    ...panel.levels.map((level) => ({ words: level.words, fill: "var(--quiet)", line: "5 4" })),
  ].filter(({ words }) => words && !there.has(words)), left, 0, width);
  const xTicks = thin(x.ticks(Math.max(2, Math.floor((x1 - x0) / 70))), x);
  const xName = drawLines(panel.x.name, left, y1 + 26, width, { size: SMALL });
  const below = y1 + 26 + xName.height;
  const missing = rest.draw.length > 0;
  const flat = points.flatMap((some, s) => some.map((point, i) => point && { point, at: [index, s, i] }).filter(Boolean));
  const nearest = (px, py) => flat.reduce((best, one) => {
    const distance = Math.hypot(one.point[0] - px, (one.point[1] - py) / 2); // the column first
    return distance < best.distance ? { ...one, distance } : best;
  }, { distance: Infinity }).at;
  const move = (dx, dy) => {
    if (!at) return { at: flat[0].at };
    const own = flat.filter((one) => one.at[1] === at[1]);
    if (dx) return { at: own[Math.min(Math.max(own.findIndex((one) => one.at[2] === at[2]) + dx, 0), own.length - 1)].at };
    const drawn = [...new Set(flat.map((one) => one.at[1]))]; // a series may have no point
    const other = drawn[(drawn.indexOf(at[1]) - dy + drawn.length) % drawn.length];
    const others = flat.filter((one) => one.at[1] === other);
    const here = points[at[1]][at[2]];
    return { at: others.reduce((best, one) => (Math.abs(one.point[0] - here[0]) < Math.abs(best.point[0] - here[0]) ? one : best)).at };
  };
  const here = at && points[at[1]][at[2]];
  return {
    height: below + (missing ? rest.height + 6 : 0) - top,
    draw: [
      head.draw, said.draw, axes(box, { x, y, xTicks, yTicks }),
      lines.map(([[ax, ay], [bx, by]]) => svg("line", { x1: ax, y1: ay, x2: bx, y2: by, stroke: "var(--quiet)", "stroke-dasharray": "5 4" })),
      panel.series.map((one, s) => one.line && path(points[s], { stroke: paint(one.colour), "stroke-width": 2.2, "stroke-dasharray": one.dash || null })),
      panel.series.map((one, s) => one.dots && points[s].map((point) => point && svg("circle", { cx: point[0], cy: point[1], r: one.line ? 3.5 : 4.5, fill: paint(one.colour), stroke: "var(--paper)" }))),
      written, xName.draw,
      missing && svg("g", { transform: `translate(0 ${below + 12})` }, rest.draw),
      here && svg("path", { d: `M${here[0]},${y0}V${y1}`, stroke: "var(--ink)", "stroke-width": 1, opacity: 0.5 }),
      here && svg("circle", { cx: here[0], cy: here[1], r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }),
      handle(`read-${index}`, 0, 0, {
        label: panel.title ? tr`${panel.title}: read a value` : tr`the chart: read a value`, value: at ? flat.findIndex((one) => String(one.at) === String(at)) : 0, min: 0, max: flat.length - 1,
        text: at ? say(panel, at) : tr`use the arrow keys`, drag: (px, py) => ({ at: nearest(px, py) }), key: move,
        shape: svg("rect", { x: x0, y: y0, width: x1 - x0, height: y1 - y0, fill: "transparent", class: "reading" }),
        hover: (px, py) => {
          const next = px === undefined ? null : nearest(px, py);
          return String(next) === String(state.at) ? null : { at: next };
        },
      }),
    ],
  };
}

function drawBars(panel, left, top, width) {
  const head = drawLines(panel.title, left, top, width, { bold: true });
  const key = legend(panel.parts.map(([words, colour]) => ({ words, fill: paint(colour) })), left, top + head.height + 9, width);
  const bars = panel.groups.flatMap(([, some]) => some);
  const sum = (bar) => bar.parts.reduce((total, [value]) => total + value, 0);
  const end = (bar) => bar.words ?? number(sum(bar), 3);
  const names = Math.max(...bars.map((bar) => measure(bar.name)));
  const beside = names < width * 0.45; // else a bar's name stands above it
  const x0 = left + (beside ? names + 10 : 0);
  const room = Math.max(...bars.map((bar) => measure(end(bar), FONT, "600"))) + 10;
  const most = panel.high ?? Math.max(panel.level?.[0] ?? 0, ...bars.map(sum));
  const [least, mark] = [Math.min(...bars.map(sum)), panel.level?.[0] ?? 1];
  // a logarithmic scale has no 0: bars begin at the level, where a bar is as long as its ratio to it, or at a power of ten below all of them
  const base = !panel.log ? 0 : least >= mark ? mark : 10 ** Math.floor(Math.log10(least));
  const scale = panel.log ? log([base, most], [x0, left + width - room]) : linear([0, most], [x0, left + width - room]);
  const start = scale(base);
  const y0 = top + head.height + (panel.parts.length ? key.height + 8 : 0);
  const draw = [];
  let y = y0;
  for (const [name, some] of panel.groups) {
    if (name) {
      const above = drawLines(name, left, y + 2.5, width, { bold: true, halo: true });
      draw.push(above.draw);
      y += above.height + 7;
    }
    for (const bar of some) {
      if (bar.name) draw.push(text(beside ? x0 - 8 : left, y + 10, bar.name, { anchor: beside ? "end" : "start", halo: true }));
      if (bar.name && !beside) y += 18;
      let [from, before] = [start, 0];
      for (const [value, colour] of bar.parts) {
        const to = scale((before += value));
        draw.push(svg("rect", { x: from, y, width: Math.max(to - from, 0), height: 18, fill: paint(colour), stroke: panel.edges ? "var(--paper)" : "none" }));
        from = to;
      }
      draw.push(text(from + 6, y + 9.5, end(bar), { bold: true, halo: true }));
      y += 24;
    }
    y += 8;
  }
  const level = panel.level && [
    svg("line", { x1: scale(panel.level[0]), x2: scale(panel.level[0]), y1: y0, y2: y, stroke: "var(--ink)", "stroke-dasharray": "5 4" }),
    text(scale(panel.level[0]) + 4, y + 2, panel.level[1], { size: SMALL, fill: "var(--quiet)" }),
  ];
  const unit = drawLines(panel.unit, left, y + (panel.level?.[1] ? 12 : 0), width, { size: SMALL, fill: "var(--quiet)" });
  return { height: y + (panel.level?.[1] ? 12 : 0) + unit.height - top, draw: [head.draw, panel.parts.length > 0 && key.draw, level, draw, unit.draw] };
}

function drawCells(panel, left, top, width) {
  const head = drawLines(panel.title, left, top, width, { bold: true });
  const rowName = drawLines(panel.row_name, left, top + head.height, width, { size: SMALL, fill: "var(--quiet)" });
  const names = Math.max(...panel.rows.map((words) => measure(words)));
  const longest = Math.max(1, ...panel.words.flat().filter(Boolean).map((words) => measure(words)), ...panel.columns.flatMap(splitAtBreaks).map((part) => measure(part.trim(), SMALL)));
  const fit = (room) => Math.min(room / panel.columns.length, Math.max(longest + 26, 44));
  const beside = names < 30 || fit(width - names - 10) >= Math.min(longest + 8, fit(width)); // else a row's name stands above its cells
  const x0 = left + (beside && names ? names + 10 : 0);
  const wide = fit(left + width - x0);
  const size = Math.min(FONT, (FONT * (wide - 8)) / longest);
  const small = Math.min(SMALL, size);
  const columns = panel.columns.map((words) => wrapWords(words, wide - 6, small));
  const lines = Math.max(...columns.map((words) => (words[0] ? words.length : 0)));
  const y0 = top + head.height + rowName.height + lines * 15 + 4;
  const high = 30 + (beside ? 0 : 20);
  const columnName = drawLines(panel.column_name, left, y0 + high * panel.rows.length + 4, width, { size: SMALL, fill: "var(--quiet)" });
  return {
    height: y0 + high * panel.rows.length + 4 + columnName.height - top,
    draw: [
      head.draw, rowName.draw, columnName.draw,
      columns.map((words, c) => words.map((line, i) => text(x0 + wide * (c + 0.5), y0 - 8 - 15 * (words.length - 1 - i), line, { anchor: "middle", size: small }))),
      panel.rows.map((name, r) => {
        const y = y0 + high * r + (beside ? 0 : 20);
        return [
          beside ? text(x0 - 8, y + 13, name, { anchor: "end" }) : text(left, y - 9, name),
          panel.words[r].map((words, c) => {
            if (words === null) return null;
            const look = panel.looks[r][c];
            const place = [x0 + wide * c, y, wide - 4, 26];
            if (typeof look === "string") return cell(...place, words, { state: look, size });
            return [cell(...place), svg("rect", { x: place[0], y, width: place[2], height: 26, rx: 2, fill: paint(look < 0 ? "y" : "x"), "fill-opacity": 0.55 * Math.abs(look) }), text(place[0] + place[2] / 2, y + 13, words, { anchor: "middle", size })];
          }),
        ];
      }),
    ],
  };
}

function drawBoxes(panel, left, top, width) {
  const head = drawLines(panel.title, left, top, width, { bold: true });
  const unit = width / panel.width;
  const places = panel.boxes.map(({ x, y, width: w, height: h }) => [left + x * unit, top + head.height + y * 30, w * unit, h * 30]);
  const lines = panel.boxes.map(({ words }) => words.split("\n"));
  const size = Math.min(FONT, ...lines.flatMap((some, i) => some.map((line) => (FONT * (places[i][2] - 6)) / measure(line))));
  return {
    height: head.height + 30 * Math.max(...panel.boxes.map(({ y, height }) => y + height)),
    draw: [
      head.draw,
      panel.boxes.map(({ look, at_top: atTop }, i) => {
        const [x, y, w, h] = places[i];
        const first = atTop ? y + 13 : y + h / 2 - (lines[i].length - 1) * size * 0.6;
        return [
          look && cell(x, y, w, h, "", { state: look }),
          lines[i].map((line, k) => text(x + w / 2, first + k * size * 1.2, line, { anchor: "middle", size, fill: look ? `var(--on-${look})` : "var(--ink)" })),
        ];
      }),
      panel.arrows.map(([from, to]) => {
        const [a, b] = [places[from], places[to]];
        const ends = a[0] < b[0] ? [a[0] + a[2] + 2, b[0] - 3] : [a[0] - 2, b[0] + b[2] + 3];
        const [ay, by] = [a[1] + a[3] / 2, b[1] + b[3] / 2];
        const level = (y, [, from, , high]) => y > from && y < from + high;
        return arrow([ends[0], level(by, a) ? by : ay], [ends[1], level(ay, b) ? ay : by], { colour: "var(--ink)" });
      }),
    ],
  };
}

/** The least width of a panel that stands beside others. */
const leastWidth = (panel, panels) => (panel.kind === "cells" ? Math.max(...panel.rows.map((words) => measure(words))) + panel.columns.length * 38 : panels.length > 2 ? 170 : 260);

export function picture(data) {
  return {
    start: data.start,
    controls: data.views.length > 1 ? [[choice("view", data.control, data.views.map((view, i) => [i, view.name]))]] : [],
    render(state, width) {
      const { title, panels, caption } = data.views[state.view];
      const many = Math.max(1, Math.min(panels.length, Math.floor((width + GAP) / (Math.max(...panels.map((panel) => leastWidth(panel, panels))) + GAP))));
      const rows = Math.ceil(panels.length / many);
      const columns = Math.ceil(panels.length / rows); // no panel alone in the last row if it can be helped
      const own = (width - GAP * (columns - 1)) / columns;
      const draw = [];
      let top = 2;
      for (let first = 0; first < panels.length; first += columns) {
        const drawn = panels.slice(first, first + columns).map((panel, i) => {
          const left = (own + GAP) * i;
          if (panel.kind === "plot") return drawPlot(panel, first + i, state, left, top, own, columns === 1 && panels.length < 3);
          return { bars: drawBars, cells: drawCells, boxes: drawBoxes }[panel.kind](panel, left, top, own);
        });
        draw.push(drawn.map((one) => one.draw));
        top += Math.max(...drawn.map((one) => one.height)) + 14;
      }
      return { title, caption, alt: data.alt, height: top - 8, draw };
    },
  };
}
