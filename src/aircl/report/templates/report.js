"use strict";
(() => {
  const { experiments, colours, tables, ranks } = JSON.parse(document.getElementById("data").textContent);
  const state = { experiment: 0, metric: "accuracy", hidden: new Set(), pair: [null, null], seeds: [null, null], sort: null, more: false };
  const root = document.documentElement;
  const tooltip = document.getElementById("tooltip");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const current = () => experiments[state.experiment];
  const shown = () => current().methods.filter((method) => !state.hidden.has(method.name));

  // -- elements --
  const svg = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const html = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };
  const colour = (style) => `var(--m${style % colours})`;
  const dashes = (style) => ["none", "7 4", "2 4", "8 3 2 3"][Math.floor(style / colours) % 4];

  // Beyond the colours there are, markers and bars are hollow; so are bounds where methods are points.
  const outlined = (shape, style) => {
    Object.assign(shape.style, { fill: "var(--ground)", stroke: colour(style), strokeWidth: 2 });
    return shape;
  };
  const painted = (shape, style) => {
    shape.setAttribute("fill", colour(style));
    return Math.floor(style / colours) % 2 ? outlined(shape, style) : shape;
  };

  // The markers of the matplotlib figures: circle, square, triangle up, diamond, triangle down, plus, cross, triangle
  // left, triangle right, star, pentagon, hexagon.
  const regular = (corners, radius) => Array.from({ length: corners }, (_, k) => {
    const angle = 2 * Math.PI * k / corners;
    return [radius(k) * Math.sin(angle), -radius(k) * Math.cos(angle)];
  });
  const marker = (style, x, y, r = 3.6) => {
    const at = (dx, dy) => `${x + dx * r} ${y + dy * r}`;
    const polygon = (...points) => `M${points.map(([dx, dy]) => at(dx, dy)).join("L")}Z`;
    const plus = [[-.35, -1.1], [.35, -1.1], [.35, -.35], [1.1, -.35], [1.1, .35], [.35, .35], [.35, 1.1], [-.35, 1.1],
      [-.35, .35], [-1.1, .35], [-1.1, -.35], [-.35, -.35]];
    const turned = plus.map(([dx, dy]) => [(dx - dy) * .74, (dx + dy) * .74]);
    const shapes = [
      () => `M${at(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
      () => polygon([-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]),
      () => polygon([0, -1.15], [1.1, .9], [-1.1, .9]),
      () => polygon([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]),
      () => polygon([0, 1.15], [1.1, -.9], [-1.1, -.9]),
      () => polygon(...plus),
      () => polygon(...turned),
      () => polygon([-1.15, 0], [.9, -1.1], [.9, 1.1]),
      () => polygon([1.15, 0], [-.9, -1.1], [-.9, 1.1]),
      () => polygon(...regular(10, (k) => k % 2 ? .55 : 1.35)),
      () => polygon(...regular(5, () => 1.15)),
      () => polygon(...regular(6, () => 1.15)),
    ];
    return painted(svg("path", { d: shapes[style % shapes.length](), class: "point" }), style);
  };
  const swatch = (style) => svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, marker(style, 7, 7, 5));

  // -- numbers --
  const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const few = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
  const plain = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1000) return whole.format(value);
    return size >= 0.001 ? String(+value.toPrecision(3)) : String(+value.toPrecision(2));
  };
  const percent = (value) => `${value.toFixed(2)} %`;
  const withError = (format, value, error) => format(value) + (error == null ? "" : ` ± ${format(error).replace(" %", "")}`);

  const niceStep = (span, count) => {
    const raw = span / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  };
  const linear = (low, high, from, to, count, whole = false) => {
    if (!(high > low)) high = low + (Math.abs(low) || 1);
    const step = whole ? Math.max(1, niceStep(high - low, count)) : niceStep(high - low, count);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(+(k * step).toPrecision(12));
    const scale = (value) => from + (value - low) / (high - low) * (to - from);
    return Object.assign(scale, { ticks, low, high });
  };
  const logarithmic = (low, high, from, to) => {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const ticks = [];
    for (let k = Math.floor(a); k <= Math.ceil(b); k++) {
      for (const factor of b - a < 2 ? [1, 2, 5] : [1]) {
        const tick = factor * 10 ** k;
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    const scale = (value) => from + (Math.log10(value) - a) / (b - a || 1) * (to - from);
    return Object.assign(scale, { ticks, low, high });
  };
  // The next of 1, 2, 5, 10, .. below (-1) or above (1), so that a logarithmic axis ends there too.
  const roundedLog = (value, side) => {
    const power = 10 ** Math.floor(Math.log10(value));
    const factors = [1, 2, 5, 10].map((factor) => factor * power);
    return side < 0 ? factors.findLast((factor) => factor <= value * 1.001) : factors.find((factor) => factor >= value * 0.999);
  };
  // Widen a range to whole steps, so that the axis begins and ends at a tick.
  const rounded = (low, high, count) => {
    const step = niceStep(high - low || Math.abs(high) || 1, count);
    return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  };

  // -- tooltip --
  const showTooltip = (title, pairs, x, y) => {
    tooltip.replaceChildren(html("b", "", title), ...pairs.map(([name, value, style]) => {
      const label = html("span", "", ...(style == null ? [] : [swatch(style)]), name);
      return html("div", "pair", label, html("span", "", value));
    }));
    tooltip.hidden = false;
    const box = tooltip.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth - 8 ? x - 16 - box.width : x + 16;
    const top = Math.min(Math.max(8, y - box.height / 2), innerHeight - box.height - 8);
    tooltip.style.left = `${Math.max(8, left)}px`;
    tooltip.style.top = `${top}px`;
  };
  const hideTooltip = () => { tooltip.hidden = true; };
  const hover = (element, title, pairs) => {
    element.addEventListener("pointermove", (event) => showTooltip(title, pairs, event.clientX, event.clientY));
    element.addEventListener("pointerleave", hideTooltip);
  };

  // -- charts --
  const frame = (host, height, margin, label) => {
    host.querySelector("svg.chart")?.remove();
    const width = Math.max(240, host.clientWidth);
    const box = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
    const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
    host.append(chart);
    return { chart, box, width, height };
  };
  const caption = (host) => host.querySelector("figcaption").textContent.trim().replace(/\s+/g, " ");
  const text = (x, y, string, anchor = "middle", className = "") => svg("text", { x, y, "text-anchor": anchor, class: className }, string);
  const empty = (host, why) => {
    const { chart, width } = frame(host, 120, { left: 0, right: 0, top: 0, bottom: 0 }, why);
    chart.append(text(width / 2, 60, why, "middle", "empty"));
  };
  const yAxis = (chart, box, scale, format) => {
    for (const tick of scale.ticks) {
      const y = Math.round(scale(tick));
      chart.append(svg("line", { x1: box.left, x2: box.right, y1: y, y2: y, class: "grid" }), text(box.left - 8, y + 4, format(tick), "end"));
    }
  };

  /* Lines with a band or whiskers. `series`: [{name, style, x, mean, error}], in the units that are shown. */
  const lines = (host, series, options) => {
    if (!series.length) return empty(host, options.none);
    const known = series.flatMap((one) => one.mean.flatMap((value, i) => value == null ? [] : [value - (one.error?.[i] ?? 0), value + (one.error?.[i] ?? 0)]));
    const means = series.flatMap((one) => one.mean.filter((value) => value != null));
    if (!means.length) return empty(host, options.none);
    const log = options.log && Math.min(...means) > 0 && Math.max(...means) / Math.min(...means) > 50;
    const { chart, box, width } = frame(host, options.height ?? 270, { left: 46, right: 12, top: options.divides ? 20 : 10, bottom: 40 }, `${caption(host)}: ${series.map((one) => one.name).join(", ")}`);
    const xs = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const pad = options.discrete ? 14 : 4;
    const xScale = linear(xs[0], xs.at(-1), box.left + pad, box.right - pad, Math.min(options.discrete ? xs.length : 9, width / 70), true);
    const [low, high] = log ? [roundedLog(Math.min(...means), -1), roundedLog(Math.max(...means), 1)] : rounded(options.zero ? Math.min(0, ...known) : Math.min(...known), Math.max(...known), 5);
    const limit = options.maximum == null ? high : Math.min(high, options.maximum);
    const yScale = log ? logarithmic(low, high, box.bottom, box.top) : linear(low, limit, box.bottom, box.top, 5);
    yAxis(chart, box, yScale, plain);
    for (const tick of xScale.ticks) chart.append(text(xScale(tick), box.bottom + 17, (options.xTick ?? plain)(tick)));
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }));
    chart.append(text((box.left + box.right) / 2, box.bottom + 35, options.xLabel + (log ? " (logarithmic scale)" : "")));
    for (const { at, from, label } of options.divides ?? []) {
      if (from != null) chart.append(svg("line", { x1: xScale(from), x2: xScale(from), y1: box.top - 12, y2: box.bottom, class: "divide" }));
      chart.append(text(xScale(at), box.top - 7, label));
    }
    const clamp = (value) => Math.max(box.top, Math.min(box.bottom, yScale(value)));
    for (const one of [...series].reverse()) {  // the first, which matter most, on top
      const group = svg("g", { "data-method": one.name, class: one.style < 2 ? "main" : "" });
      const stroke = colour(one.style);
      const points = one.x.map((x, i) => [xScale(x), one.mean[i] == null ? null : yScale(one.mean[i]), i]);
      const parts = [];  // a gap where there is no value
      for (const point of points) {
        if (point[1] == null) parts.push([]);
        else (parts.at(-1) ?? parts[parts.push([]) - 1]).push(point);
      }
      for (const part of parts.filter((part) => part.length)) {
        if (options.band && one.error) {
          const edge = (sign) => part.map(([x, , i]) => `${x} ${clamp(one.mean[i] + sign * (one.error[i] ?? 0))}`);
          group.append(svg("path", { d: `M${edge(1).join("L")}L${edge(-1).reverse().join("L")}Z`, fill: stroke, class: "band" }));
        }
        group.append(svg("path", { d: `M${part.map(([x, y]) => `${x} ${y}`).join("L")}`, stroke, class: "line", "stroke-dasharray": dashes(one.style) }));
      }
      const dense = points.length > (options.band ? 14 : 30);
      for (const [x, y, i] of points) {
        if (y == null) continue;
        if (!options.band && !dense && one.error?.[i]) {
          group.append(svg("line", { x1: x, x2: x, y1: clamp(one.mean[i] - one.error[i]), y2: clamp(one.mean[i] + one.error[i]), stroke, "stroke-width": 1.5 }));
        }
        if (!dense) group.append(marker(one.style, x, y));
      }
      chart.append(group);
    }
    // One cursor for all lines: the values at the nearest place, by pointer or by arrow keys.
    const cursor = svg("line", { y1: box.top, y2: box.bottom, class: "cursor", visibility: "hidden" });
    chart.append(cursor);
    let place = -1;
    const show = (index) => {
      place = Math.max(0, Math.min(xs.length - 1, index));
      const x = xs[place];
      const at = chart.getBoundingClientRect();
      const ratio = at.width / width;
      cursor.setAttribute("x1", xScale(x));
      cursor.setAttribute("x2", xScale(x));
      cursor.setAttribute("visibility", "visible");
      const pairs = series.flatMap((one) => {
        const i = one.x.indexOf(x);
        return i < 0 || one.mean[i] == null ? [] : [[one.name, withError(options.format, one.mean[i], one.error?.[i]), one.style, one.mean[i]]];
      }).sort((a, b) => b[3] - a[3]);
      showTooltip(options.title(x), pairs, at.left + xScale(x) * ratio, at.top + (box.top + box.bottom) / 2);
    };
    const leave = () => { cursor.setAttribute("visibility", "hidden"); hideTooltip(); };
    chart.addEventListener("pointermove", (event) => {
      const at = chart.getBoundingClientRect();
      const x = (event.clientX - at.left) * width / at.width;
      show(xs.reduce((best, value, i) => Math.abs(xScale(value) - x) < Math.abs(xScale(xs[best]) - x) ? i : best, 0));
    });
    chart.addEventListener("pointerleave", leave);
    chart.addEventListener("blur", leave);
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
      if (step) { event.preventDefault(); show(place + step); }
      if (event.key === "Escape") leave();
    });
  };

  /* Bars in groups, with a note below each. `series`: [{name, style, values: [[mean, error] or null, ..]}]. */
  const groupedBars = (host, groups, series, notes = []) => {
    const there = groups.map((_, g) => g).filter((g) => series.some((one) => one.values[g]));
    if (!there.length) return empty(host, "No method shown has these groups.");
    const { chart, box } = frame(host, 270, { left: 46, right: 12, top: 10, bottom: 40 }, `${caption(host)}: ${series.map((one) => one.name).join(", ")}`);
    const most = Math.max(...series.flatMap((one) => one.values.filter(Boolean).map(([mean, error]) => mean + (error ?? 0))));
    const yScale = linear(0, Math.min(100, rounded(0, most, 5)[1]), box.bottom, box.top, 5);
    yAxis(chart, box, yScale, plain);
    const slot = (box.right - box.left) / there.length;
    const bar = Math.min(34, slot * 0.82 / series.length);
    there.forEach((g, place) => {
      const middle = box.left + slot * (place + 0.5);
      series.forEach((one, k) => {
        if (!one.values[g]) return;
        const [mean, error] = one.values[g];
        const x = middle + (k - series.length / 2) * bar;
        const y = yScale(mean);
        const group = svg("g", { "data-method": one.name },
          painted(svg("rect", { x: x + 1, y, width: Math.max(1, bar - 2), height: Math.max(0, box.bottom - y), class: "bar" }), one.style));
        if (error) group.append(svg("line", { x1: x + bar / 2, x2: x + bar / 2, y1: Math.max(box.top, yScale(mean + error)), y2: Math.min(box.bottom, yScale(mean - error)), class: "whisker" }));
        hover(group, groups[g], [[one.name, withError(percent, mean, error), one.style]]);
        chart.append(group);
      });
      chart.append(text(middle, box.bottom + 18, groups[g]), text(middle, box.bottom + 34, notes[g] ?? ""));
    });
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }));
  };

  /* One horizontal bar a method, its value at its end; points where the largest would leave nothing of the others. */
  const horizontalBars = (host, series, unit) => {
    if (!series.length) return empty(host, "No method is shown.");
    const wide = Math.max(...series.map((one) => one.name.length)) * 7 + 14;
    const values = series.map((one) => one.value[0]);
    const log = Math.min(...values) > 0 && Math.max(...values) > 50 * Math.min(...values);
    const row = log ? 24 : 30;
    const { chart, box } = frame(host, series.length * row + (log ? 46 : 14), { left: Math.min(wide, 150), right: 86, top: 4, bottom: log ? 38 : 6 }, `${caption(host)}: ${series.map((one) => one.name).join(", ")}`);
    const scale = log ? logarithmic(roundedLog(Math.min(...values), -1), roundedLog(Math.max(...values), 1), box.left + 6, box.right) : linear(0, Math.max(...values) || 1, box.left, box.right, 4);
    for (const tick of log ? scale.ticks : []) {
      chart.append(svg("line", { x1: scale(tick), x2: scale(tick), y1: box.top, y2: box.bottom, class: "grid" }), text(scale(tick), box.bottom + 15, plain(tick)));
    }
    if (log) chart.append(text((box.left + box.right) / 2, box.bottom + 32, `${unit} (logarithmic scale)`));
    series.forEach((one, k) => {
      const y = box.top + row * k + (log ? 1 : 4);
      const [mean, error] = one.value;
      const group = svg("g", { "data-method": one.name }, text(box.left - 10, y + 15, one.name, "end", "value"),
        log ? marker(one.style, scale(mean), y + 11, 5) : painted(svg("rect", { x: box.left, y, width: Math.max(1, scale(mean) - box.left), height: 20, class: "bar" }), one.style),
        text(scale(mean) + (log ? 11 : 8), y + 15, `${plain(mean)} ${unit}`, "start", "value"));
      hover(group, one.name, [["mean", `${plain(mean)} ${unit}`], ...(error == null ? [] : [["standard error", `${plain(error)} ${unit}`]])]);
      chart.append(group);
    });
  };

  const expand = (runs, length) => {
    const values = new Float64Array(length);
    let place = 0;
    for (const value of runs) {
      if (value < 0) place -= value;
      else values[place++] = value;
    }
    return values;
  };
  const ramp = (share, power) => `rgba(${getComputedStyle(root).getPropertyValue("--ramp")}, ${share ** power})`;

  const streamMap = (host) => {
    const { stream } = current();
    if (!stream) return empty(host, "The details of this stream are not there.");
    const width = stream.classes.length;
    const counts = expand(stream.cells, width * stream.phases);
    const column = (c) => Array.from({ length: stream.phases }, (_, p) => counts[p * width + c]);
    // By the phase that has most of a class's samples, those that keep to it first; then by label.
    const order = stream.classes.map((label, c) => {
      const own = column(c);
      return { c, label, main: own.indexOf(Math.max(...own)), spread: own.filter(Boolean).length };
    }).sort((a, b) => a.main - b.main || a.spread - b.spread || a.c - b.c);
    const most = Math.max(2, ...counts);
    const row = Math.max(8, Math.min(40, 230 / stream.phases));
    const { chart, box } = frame(host, row * stream.phases + 50, { left: 46, right: 12, top: 10, bottom: 40 }, `${caption(host)}: ${width} classes in ${stream.phases} phases`);
    const cell = (box.right - box.left) / width;
    for (let p = 0; p < stream.phases; p++) {
      const y = box.top + p * row;
      chart.append(svg("line", { x1: box.left, x2: box.right, y1: y, y2: y, class: "grid" }));
      if (stream.phases <= 20 || p % 5 === 4) chart.append(text(box.left - 8, y + row / 2 + 4, String(p + 1), "end"));
      order.forEach(({ c, label }, k) => {
        const n = counts[p * width + c];
        if (!n) return;
        const shade = 0.12 + 0.88 * Math.log(n) / Math.log(most);
        const rect = svg("rect", { x: box.left + k * cell, y: y + 0.5, width: cell > 5 ? cell - 1 : cell, height: row - 1, fill: ramp(shade, 1), class: "cell" });
        hover(rect, `Class ${label}, phase ${p + 1}`, [["training samples", whole.format(n)]]);
        chart.append(rect);
      });
    }
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }),
      text((box.left + box.right) / 2, box.bottom + 17, `classes by their main phase; up to ${whole.format(most)} samples a cell`),
      text((box.left + box.right) / 2, box.bottom + 33, "(logarithmic shades)"));
  };

  /* A point for each method: accuracy over a cost; a line joins those that nothing beats in both. */
  const scatter = (host, points, options) => {
    const known = points.filter((one) => one.x > 0);
    if (!known.length) return empty(host, "No method shown has these values.");
    const { chart, box } = frame(host, 300, { left: 46, right: 16, top: 12, bottom: 40 }, `${caption(host)}: ${known.map((one) => one.name).join(", ")}`);
    const costs = known.map((one) => one.x);
    const xScale = logarithmic(roundedLog(Math.min(...costs) / 1.05, -1), roundedLog(Math.max(...costs) * 1.05, 1), box.left + 8, box.right - 8);
    const values = known.map((one) => one.y);
    const [low, high] = rounded(Math.min(...values) - 1, Math.max(...values) + 1, 5);
    const yScale = linear(low, Math.max(Math.min(high, 100), Math.max(...values)), box.bottom, box.top, 5);
    yAxis(chart, box, yScale, plain);
    for (const tick of xScale.ticks) chart.append(text(xScale(tick), box.bottom + 17, plain(tick)));
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }),
      text((box.left + box.right) / 2, box.bottom + 35, `${options.xLabel} (logarithmic scale)`));
    const front = [];
    for (const one of known.filter((one) => !one.is_bound).sort((a, b) => a.x - b.x || b.y - a.y)) {
      if (!front.length || one.y > front.at(-1).y) front.push(one);
    }
    chart.append(svg("path", { d: `M${front.map((one) => `${xScale(one.x)} ${yScale(one.y)}`).join("L")}`, class: "front" }));
    // Names where there is room: on the right, unless the edge is near, on the left, above or below.
    const placed = known.map((one) => ({ x: xScale(one.x) - 7, y: yScale(one.y) + 4, width: 14, of: one.name }));
    for (const one of [...known].sort((a, b) => b.y - a.y)) {
      const [x, y] = [xScale(one.x), yScale(one.y)];
      const point = one.is_bound ? outlined(marker(one.style, x, y, 6), one.style) : marker(one.style, x, y, 6);
      const group = svg("g", { "data-method": one.name }, point);
      const width = 6.4 * one.name.length;
      const free = (name) => name.x >= box.left && name.x + width <= box.right && name.y > 8 && name.y < box.bottom
        && !placed.some((other) => other.of !== one.name && Math.abs(other.y - name.y) < 12 && other.x < name.x + width && name.x < other.x + other.width);
      const sides = [["start", x + 10, x + 10, y + 4], ["end", x - 10, x - 10 - width, y + 4], ["middle", x, x - width / 2, y - 10], ["middle", x, x - width / 2, y + 19]];
      const side = sides.find(([, , from, at]) => free({ x: from, y: at }));
      if (side) {
        const [anchor, place, from, at] = side;
        placed.push({ x: from, y: at, width });
        group.append(text(place, at, one.name, anchor, "value name"));
      }
      hover(group, one.name, [["last accuracy", percent(one.y)], [options.what, `${plain(one.x)} ${options.unit}`]]);
      chart.append(group);
    }
  };

  /* Mean ranks over streams, the best on top; bars join what cannot be told apart. */
  const rankChart = (host) => {
    const { critical_difference: width, p, streams } = ranks;
    const visible = ranks.methods.map((_, k) => k).filter((k) => !state.hidden.has(ranks.methods[k]));
    const [methods, means] = [visible.map((k) => ranks.methods[k]), visible.map((k) => ranks.ranks[k])];
    if (!methods.length) return empty(host, "No method is shown.");
    const row = 24;
    const wide = Math.max(...methods.map((name) => name.length)) * 7 + 14;
    const { chart, box } = frame(host, row * methods.length + 56, { left: Math.min(wide, 160), right: 20, top: 8, bottom: 44 }, `${caption(host)}: ${methods.join(", ")}`);
    const scale = linear(1, ranks.methods.length, box.left + 6, box.right - 6, ranks.methods.length, true);
    for (const tick of scale.ticks) {
      chart.append(svg("line", { x1: scale(tick), x2: scale(tick), y1: box.top, y2: box.bottom, class: "grid" }), text(scale(tick), box.bottom + 16, String(tick)));
    }
    let reached = -1;
    means.forEach((mean, k) => {
      const last = means.findLastIndex((other) => other - mean <= width);
      const y = box.top + row * (k + 0.5);
      if (last > reached && last > k) {
        chart.append(svg("line", { x1: scale(mean), x2: scale(means[last]), y1: y + 8, y2: y + 8, class: "clique" }));
      }
      reached = Math.max(reached, last);
      const style = experiments.flatMap((one) => one.methods).find((one) => one.name === methods[k])?.style ?? 0;
      const group = svg("g", { "data-method": methods[k] }, text(box.left - 10, y + 4, methods[k], "end", "value"), marker(style, scale(mean), y, 5));
      hover(group, methods[k], [["mean rank", mean.toFixed(2)]]);
      chart.append(group);
    });
    chart.append(text((box.left + box.right) / 2, box.bottom + 36, `mean rank over ${streams} streams; critical difference ${width.toFixed(2)}, Friedman p = ${plain(p)}`));
  };

  // -- confusion matrices --
  const withConfusion = () => shown().filter((method) => method.confusion.length);
  // What was chosen, or another one where that is hidden.
  const pair = () => {
    const names = withConfusion().map((method) => method.name);
    const wanted = [state.pair[0] ?? "acil", state.pair[1] ?? "air"];
    const free = names.filter((name) => !wanted.includes(name));
    return wanted.map((name) => names.includes(name) ? name : free.shift() ?? names[0] ?? null);
  };
  const drawConfusion = (host, side) => {
    const method = withConfusion().find((one) => one.name === pair()[side]);
    const output = host.querySelector("output");
    document.querySelector(".ramp").hidden = !method;
    if (!method) { output.textContent = ""; return empty(host, "No method shown has one."); }
    const { classes } = current();
    const [seed, cells] = method.confusion.find(([seed]) => String(seed) === String(state.seeds[side])) ?? method.confusion[0];
    const size = classes.length;
    const counts = expand(cells, size * size);
    const totals = classes.map((_, r) => counts.subarray(r * size, (r + 1) * size).reduce((sum, n) => sum + n, 0));
    const right = totals.reduce((sum, total, r) => sum + (total ? counts[r * size + r] / total : 0), 0);
    output.textContent = `class-balanced accuracy ${percent(100 * right / totals.filter(Boolean).length)}`;
    // As many names as can be read, cut where they are long.
    const step = size <= 30 ? 1 : Math.ceil(size / 15);
    const short = (name) => name.length > 14 ? `${name.slice(0, 13)}…` : name;
    const names = classes.map((name, k) => k % step ? "" : short(name));
    const longest = Math.max(...names.map((name) => name.length));
    const room = Math.min(100, 12 + 6.6 * longest);
    const turned = longest > 3;
    const width = Math.min(600, Math.max(240, host.clientWidth));
    const side_ = width - room - 8;
    const { chart } = frame(host, side_ + 24 + (turned ? room : 24), { left: room, right: 8, top: 20, bottom: 20 }, `Confusion matrix of ${method.name}, seed ${seed}, ${size} classes, ${output.textContent}`);
    const [left, top, cell] = [room, 20, side_ / size];
    chart.append(svg("rect", { x: left, y: top, width: side_, height: side_, class: "ground" }));
    counts.forEach((n, i) => {
      if (!n) return;
      const [r, c] = [Math.floor(i / size), i % size];
      const share = n / totals[r];
      chart.append(svg("rect", { x: left + c * cell, y: top + r * cell, width: cell + .3, height: cell + .3, fill: ramp(share, .5), class: "cell" }));
      if (cell >= 20) chart.append(text(left + (c + .5) * cell, top + (r + .5) * cell + 4, whole.format(n), "middle", Math.sqrt(share) > .55 ? "inverse" : "value"));
    });
    names.forEach((name, k) => {
      if (!name) return;
      const middle = left + (k + .5) * cell;
      chart.append(text(left - 6, top + (k + .5) * cell + 4, name, "end"));
      const below = text(middle, top + side_ + 16, name, turned ? "end" : "middle");
      if (turned) below.setAttribute("transform", `rotate(-60 ${middle} ${top + side_ + 14})`);
      chart.append(below);
    });
    for (const { from, at, label } of divides()) {
      chart.append(text(left + (at + .5) * cell, 12, label));
      if (from == null) continue;
      const place = (from + .5) * cell;
      chart.append(svg("line", { x1: left + place, x2: left + place, y1: top - 14, y2: top + side_, class: "divide" }),
        svg("line", { x1: left, x2: left + side_, y1: top + place, y2: top + place, class: "divide" }));
    }
    let at = [0, 0];
    const tell = (row, column, x, y) => {
      const n = counts[row * size + column];
      showTooltip(`${method.name}, seed ${seed}: true ${classes[row]}, predicted ${classes[column]}`, [
        ["test samples", `${whole.format(n)} of ${whole.format(totals[row])}`],
        ["share", totals[row] ? percent(100 * n / totals[row]) : "–"],
        ["training samples", `${plain(current().counts[row])} / ${plain(current().counts[column])}`],
      ], x, y);
    };
    const within = (value) => Math.max(0, Math.min(size - 1, value));
    chart.addEventListener("pointermove", (event) => {
      const place = chart.getBoundingClientRect();
      at = [within(Math.floor((event.clientY - place.top - top) / cell)), within(Math.floor((event.clientX - place.left - left) / cell))];
      tell(...at, event.clientX, event.clientY);
    });
    chart.addEventListener("pointerleave", hideTooltip);
    chart.addEventListener("blur", hideTooltip);
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      at = at.map((value, i) => within(value + step[i]));
      const place = chart.getBoundingClientRect();
      tell(...at, place.left + left + (at[1] + .5) * cell, place.top + top + (at[0] + .5) * cell);
    });
  };
  const chooseConfusions = () => {
    const names = withConfusion().map((method) => method.name);
    all("figcaption select[data-what=method]").forEach((select, side) => {
      select.replaceChildren(...names.map((name) => new Option(name, name, false, name === pair()[side])));
      select.disabled = !names.length;
    });
    chooseSeeds();
  };
  const chooseSeeds = () => all("figcaption select[data-what=seed]").forEach((select, side) => {
    const seeds = (withConfusion().find((one) => one.name === pair()[side])?.confusion ?? []).map(([seed]) => String(seed));
    if (!seeds.includes(String(state.seeds[side]))) state.seeds[side] = seeds[0] ?? null;
    select.replaceChildren(...seeds.map((seed) => new Option(seed, seed, false, seed === String(state.seeds[side]))));
    select.disabled = seeds.length < 2;
  });

  // Where head, middle and tail begin, in classes from the most frequent to the rarest.
  const divides = () => {
    const { counts } = current();
    const parts = [["head", (n) => n > 100], ["middle", (n) => n >= 20 && n <= 100], ["tail", (n) => n < 20]];
    const present = parts.map(([label, is]) => ({ label, places: counts.flatMap((n, i) => is(n) ? [i] : []) })).filter(({ places }) => places.length);
    return present.map(({ label, places }, k) => ({ label, at: (places[0] + places.at(-1)) / 2, from: k ? places[0] - 0.5 : null }));
  };

  const perClass = (key, none) => (host) => {
    const { classes, counts } = current();
    const series = shown().filter((method) => method[key]).map((method) => ({ ...method[key], name: method.name, style: method.style, x: classes.map((_, i) => i) }));
    lines(host, series, {
      none, log: key === "train_loss", zero: true, height: 290, format: plain, divides: divides(), xLabel: "classes, most frequent first",
      xTick: (place) => String(classes[place] ?? ""), discrete: classes.length <= 40,
      title: (place) => `Class ${classes[place]}, ${plain(counts[place])} training samples`,
    });
  };
  const course = (key, options) => (host) => {
    const series = shown().map((method) => ({ ...(method[key]?.[state.metric] ?? (method[key]?.mean ? method[key] : null)), name: method.name, style: method.style }));
    lines(host, series.filter((one) => one.mean), { maximum: 100, format: percent, none: "No method shown has these values.", ...options });
  };
  const phase = (x) => `Phase ${x}`;
  const charts = {
    anytime: course("anytime", { band: true, xLabel: "training samples seen", title: (x) => `${whole.format(x)} samples seen` }),
    phases: course("phases", { discrete: true, xLabel: "phase", title: phase }),
    class_phases: course("class_phases", { discrete: true, zero: true, xLabel: "phase that brought the classes", title: (x) => `Classes of phase ${x}` }),
    groups: (host) => groupedBars(host, current().groups, shown().map((method) => ({ name: method.name, style: method.style, values: method.groups })), ["> 100 samples", "20 to 100", "< 20"]),
    expected: (host) => {
      const sure = shown().filter((method) => method.expected);
      if (!sure.length) return empty(host, "No method shown gives probabilities.");
      groupedBars(host, ["expected", "measured"], sure.map((method) => ({ name: method.name, style: method.style, values: [method.expected, method.last.accuracy] })));
    },
    weight_norms: perClass("weight_norms", "No method shown has a linear classifier."),
    test_loss: perClass("test_loss", "No method shown regresses on targets."),
    train_loss: perClass("train_loss", "No method shown regresses on targets."),
    stream: streamMap,
    seconds: (host) => horizontalBars(host, shown().filter((method) => method.seconds).map((method) => ({ name: method.name, style: method.style, value: method.seconds })), "s"),
    memory: (host) => horizontalBars(host, shown().filter((method) => method.memory).map((method) => ({ name: method.name, style: method.style, value: method.memory })), "MB"),
    pareto_seconds: (host) => scatter(host, costs("seconds"), { xLabel: "seconds of learning", what: "learning", unit: "s" }),
    pareto_state: (host) => scatter(host, costs("memory"), { xLabel: "state, MB", what: "state", unit: "MB" }),
    ranks: rankChart,
    confusion: (host) => drawConfusion(host, host.dataset.side === "left" ? 0 : 1),
  };
  const costs = (key) => shown().filter((method) => method[key] && method.last[state.metric])
    .map((method) => ({ ...method, x: method[key][0], y: method.last[state.metric][0] }));

  // -- who is best, of the methods that are shown --
  const headline = () => {
    const host = document.querySelectorAll("section.comparison")[state.experiment]?.querySelector("[data-headline]");
    if (!host) return;
    const ranked = shown().filter((one) => !one.is_bound && one.last[state.metric]).sort((a, b) => b.last[state.metric][0] - a.last[state.metric][0]);
    const [best, next] = ranked;
    if (!best) return host.replaceChildren("No method is shown that finished.");
    const kind = state.metric === "accuracy" ? "accuracy" : "class-balanced accuracy";
    const parts = [html("b", "", best.name), ` ends at ${best.last[state.metric][0].toFixed(2)} % ${kind}`];
    const against = (other) => {
      const found = current().contrasts[state.metric].find(([a, b]) => (a === best.name && b === other.name) || (b === best.name && a === other.name));
      if (!found) return null;
      const [a, , , low, high, clear] = found;
      return a === best.name ? { low, high, clear } : { low: -high, high: -low, clear };
    };
    // Samples where each counts the same; of classes that weigh the same, only points can be told.
    const { n_test: total } = current();
    const counted = state.metric === "accuracy" && total;
    const amount = (points) => (counted ? few.format(points * total / 100) : points.toFixed(1)).replace(/^-0(\.0)?$/, "0");
    const lead = (other) => amount(best.last[state.metric][0] - other.last[state.metric][0]);
    if (next) {
      if (counted) parts.push(": it is right about ", html("b", "", `${lead(next)} more`), ` of ${whole.format(total)} test samples than the runner-up, ${next.name}`);
      else parts.push(", ", html("b", "", `${lead(next)} points`), ` above the runner-up, ${next.name}`);
      const test = against(next);
      if (test) {
        parts.push(` (95 % interval ${amount(test.low)} to ${amount(test.high)}), `, html("b", "", test.clear ? "a clear difference" : "no clear difference"));
        const equal = ranked.filter((other) => other !== next && other !== best && against(other)?.clear === false).length;
        const others = equal === 1 ? "one other does" : `${equal} others do`;
        if (equal) parts.push(`; ${others} not differ clearly from the best${test.clear ? "" : " either"}`);
      }
    }
    const acil = ranked.find((one) => one.name === "acil");
    if (acil && acil !== best && acil !== next) parts.push(counted ? `. Compared with acil it is ${lead(acil)} more` : `. It is ${lead(acil)} points above acil`);
    host.replaceChildren(...parts, ".");
  };

  // -- the best of each column, of the methods that are shown --
  const SAID = { 1: " (best)", 2: " (second best)", tied: " (cannot be told from the best)" };
  const setMark = (cell, mark) => {
    cell.dataset.mark = mark;
    cell.querySelector(".sign").textContent = mark === "tied" ? "≈" : "";
    cell.querySelector(".hidden").textContent = SAID[mark] ?? "";
  };
  const markBest = () => {
    const section = document.querySelectorAll("section.comparison")[state.experiment];
    if (!section) return;
    let unmarked = false;
    const kind = state.metric === "accuracy" ? "sample" : "balanced";
    const rows = all("table.sortable tbody tr:not([data-bound])", section);
    const keys = all("table.sortable thead tr:last-child th", section).map((header) => header.dataset.key);
    keys.forEach((key, index) => {
      const cells = rows.map((row) => ({ row, name: row.dataset.method, td: row.children[index], cell: row.children[index].querySelector(`.of-${kind}[data-all]`) })).filter(({ cell }) => cell);
      if (!cells.some(({ cell }) => cell.dataset.all)) return;  // a column without marks
      const number = ({ cell }) => Number(cell.querySelector(".number").textContent.replaceAll(",", ""));
      const value = ({ td }) => Number(td.dataset[kind]);
      const top = (these) => these.reduce((best, one) => value(one) > value(best) ? one : best);
      const here = cells.filter(({ row }) => !row.hidden);
      if (here.length === cells.length) return cells.forEach(({ cell }) => setMark(cell, cell.dataset.all));
      cells.forEach(({ cell }) => setMark(cell, ""));
      if (here.length < 2) return;
      const best = top(here);
      let ties = here.filter(({ cell }) => cell.dataset.all === "tied");
      if (key === "A_last") {
        ties = here.filter(({ name }) => current().contrasts[state.metric].some(([a, b, , , , clear]) => !clear && ((a === best.name && b === name) || (b === best.name && a === name))));
        if (ties.length) ties.push(best);
      } else if (best !== top(cells)) {  // how far others are from this one was not tested
        unmarked = true;
        return;
      }
      const places = [...new Set(here.map(number))].sort((a, b) => b - a);
      here.forEach((one) => setMark(one.cell, ties.length > 1 && ties.includes(one) ? "tied" : String(places.indexOf(number(one)) + 1).replace(/^(?![12]$).*/, "")));
    });
    section.querySelector("[data-unmarked]").hidden = !unmarked;
  };

  // -- downloads --
  const save = (name, type, content) => {
    const link = html("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const fileName = (...parts) => parts.filter(Boolean).join("-").replace(/[^\w+.-]+/g, "_");
  // Colours and fonts come from the style sheet, which a file of its own does not have.
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];
  const asFile = (chart) => {
    const copy = chart.cloneNode(true);
    const [from, to] = [[chart, ...chart.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
    from.forEach((element, k) => {
      const style = getComputedStyle(element);
      for (const name of KEPT) {
        to[k].removeAttribute(name);
        to[k].style.setProperty(name, style.getPropertyValue(name));
      }
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", chart.viewBox.baseVal.width);
    const ground = svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor });
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy);
  };
  const draw = () => {
    hideTooltip();
    if (!experiments.length) return;
    chooseConfusions();
    all("figure[data-chart]").forEach((host) => charts[host.dataset.chart](host));
    all("tbody tr[data-method]").forEach((row) => { row.hidden = state.hidden.has(row.dataset.method); });
    markBest();
    headline();
    remember();
  };

  // -- table --
  const sortKey = (cell) => {
    const value = cell.dataset.value ?? cell.dataset[document.body.dataset.accuracy];
    return cell.tagName === "TH" ? cell.textContent.trim().toLowerCase() : value == null ? null : Number(value);
  };
  const sort = (header, wanted) => {
    const table = header.closest("table");
    const index = [...header.parentElement.children].indexOf(header);
    // Numbers begin with the largest, names with the first.
    const first = index === 0 ? "ascending" : "descending";
    const second = index === 0 ? "descending" : "ascending";
    const direction = wanted ?? (header.getAttribute("aria-sort") === first ? second : first);
    if (header.dataset.key) state.sort = [header.dataset.key, direction];
    all("th[aria-sort]", table).forEach((other) => other.setAttribute("aria-sort", other === header ? direction : "none"));
    const sign = direction === "ascending" ? 1 : -1;
    const rows = all("tbody tr", table).map((row) => ({ row, key: sortKey(row.children[index]) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);  // what is missing comes last
      return sign * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
  };

  // -- controls --
  all("table.sortable th button").forEach((button) => button.addEventListener("click", () => { sort(button.parentElement); remember(); }));
  all("[data-style]").forEach((element) => element.prepend(swatch(Number(element.dataset.style))));
  const toggle = (button, show) => {
    button.setAttribute("aria-pressed", String(show));
    state.hidden[show ? "delete" : "add"](button.dataset.toggle);
  };
  all("[data-toggle]").forEach((button) => button.addEventListener("click", () => {
    toggle(button, button.getAttribute("aria-pressed") === "false");
    draw();
  }));
  all("[data-toggle-all]").forEach((button) => button.addEventListener("click", () => {
    all("[data-toggle]").forEach((chip) => toggle(chip, button.dataset.toggleAll === "show"));
    draw();
  }));
  all("input[name=accuracy]").forEach((input) => input.addEventListener("change", () => {
    document.body.dataset.accuracy = input.value;
    state.metric = input.value === "sample" ? "accuracy" : "balanced_accuracy";
    draw();
  }));
  all("figcaption select").forEach((select) => select.addEventListener("change", () => {
    const side = select.dataset.side === "left" ? 0 : 1;
    if (select.dataset.what === "method") state.pair = pair();
    state[select.dataset.what === "method" ? "pair" : "seeds"][side] = select.value;
    draw();
  }));
  const choose = (index) => {
    state.experiment = index;
    all(".experiments button").forEach((button, i) => button.setAttribute("aria-pressed", String(i === index)));
    all("section.comparison").forEach((section, i) => { section.hidden = i !== index; });
    const here = new Set(current().methods.map((method) => method.name));
    all("[data-toggle]").forEach((chip) => { chip.hidden = !here.has(chip.dataset.toggle); });
    draw();
  };
  all(".experiments button").forEach((button, i) => button.addEventListener("click", () => choose(i)));
  const showMore = (more) => {
    state.more = more;
    document.body.classList.toggle("more", more);
    all("[data-more]").forEach((button) => { button.setAttribute("aria-pressed", String(more)); button.textContent = more ? "Fewer columns" : "More columns"; });
    // A heading over several columns is as wide as those that are shown.
    all(".groups .ours").forEach((head) => { head.colSpan = all("tr:last-child th:not(.published)", head.closest("thead")).filter((th) => getComputedStyle(th).display !== "none").length - 2; });
  };
  all("[data-more]").forEach((button) => button.addEventListener("click", () => { showMore(!state.more); remember(); }));
  all("[data-table]").forEach((button) => button.addEventListener("click", () => {
    const kind = button.dataset.table;
    save(`${fileName(current().title)}.${kind}`, "text/plain", tables[state.experiment][kind]);
  }));
  all("figure[data-chart]").forEach((host) => {
    const button = html("button", "plain save", "SVG");
    button.type = "button";
    button.setAttribute("aria-label", `Download as SVG: ${host.querySelector("figcaption b")?.textContent ?? "confusion matrix"}`);
    button.addEventListener("click", () => {
      const chart = host.querySelector("svg.chart");
      const which = host.dataset.side ? pair()[host.dataset.side === "left" ? 0 : 1] : "";
      if (chart) save(`${fileName(current().title, host.dataset.chart, which)}.svg`, "image/svg+xml", asFile(chart));
    });
    host.querySelector("figcaption").append(button);
  });

  // -- what is shown is in the address, so that it can be passed on --
  const VIEW = "#view:";
  const remember = () => {
    const view = new URLSearchParams();
    if (state.experiment) view.set("experiment", state.experiment);
    if (state.metric !== "accuracy") view.set("accuracy", "balanced");
    if (state.hidden.size) view.set("hide", [...state.hidden].join(","));
    if (state.sort) view.set("sort", state.sort.join(" "));
    if (state.more) view.set("more", "1");
    const text = view.toString();
    if (text || location.hash.startsWith(VIEW)) history.replaceState(null, "", text ? VIEW + text : location.pathname);
  };
  const recall = () => {
    if (!location.hash.startsWith(VIEW)) return;
    const view = new URLSearchParams(location.hash.slice(VIEW.length));
    const index = Number(view.get("experiment") ?? 0);
    if (experiments[index]) state.experiment = index;
    const hidden = (view.get("hide") ?? "").split(",");
    all("[data-toggle]").forEach((chip) => { if (hidden.includes(chip.dataset.toggle)) toggle(chip, false); });
    if (view.get("accuracy") === "balanced") {
      state.metric = "balanced_accuracy";
      document.body.dataset.accuracy = "balanced";
      document.querySelector("input[name=accuracy][value=balanced]").checked = true;
    }
    const [key, direction] = (view.get("sort") ?? "").split(" ");
    all("table.sortable th[data-key]").filter((header) => header.dataset.key === key).forEach((header) => sort(header, direction));
    if (view.get("more")) state.more = true;
  };

  const theme = document.getElementById("theme");
  const paint = () => {
    theme.textContent = root.dataset.theme === "dark" ? "Use light colours" : "Use dark colours";
    all(".ramp i").forEach((bar) => { bar.style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map((share) => ramp(share, 1)).join(",")})`; });
    all(".ramp .ticks").forEach((ticks) => { ticks.textContent = "0 to 100 %, shades by the square root"; });
    draw();
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("aircl-theme", root.dataset.theme); } catch { /* then the next page asks the system again */ }
    paint();
  });
  all('a[href="#about"]').forEach((link) => link.addEventListener("click", () => { document.getElementById("facts").open = true; }));

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; requestAnimationFrame(draw); }
  });
  addEventListener("beforeprint", draw);
  addEventListener("scroll", hideTooltip, { passive: true });
  if (experiments.length) {
    recall();
    showMore(state.more);
    choose(state.experiment);
  }
  paint();
})();
