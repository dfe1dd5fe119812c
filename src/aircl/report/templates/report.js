"use strict";
(() => {
  const { experiments, colours } = JSON.parse(document.getElementById("data").textContent);
  const state = { experiment: 0, metric: "accuracy", hidden: new Set(), pair: [null, null] };
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

  // The markers of the matplotlib figures: circle, square, triangle up, diamond, triangle down, plus, cross.
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
    ];
    return svg("path", { d: shapes[style % shapes.length](), fill: colour(style), class: "point" });
  };
  const swatch = (style) => svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, marker(style, 7, 7, 5));

  // -- numbers --
  const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const plain = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1000) return whole.format(value);
    return size >= 0.001 ? String(+value.toPrecision(3)) : value.toExponential(1);
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

  /* Bars in groups. `series`: [{name, style, values: [[mean, error] or null, ..]}]. */
  const groupedBars = (host, groups, series) => {
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
          svg("rect", { x: x + 1, y, width: Math.max(1, bar - 2), height: Math.max(0, box.bottom - y), fill: colour(one.style), class: "bar" }));
        if (error) group.append(svg("line", { x1: x + bar / 2, x2: x + bar / 2, y1: Math.max(box.top, yScale(mean + error)), y2: Math.min(box.bottom, yScale(mean - error)), class: "whisker" }));
        hover(group, groups[g], [[one.name, withError(percent, mean, error), one.style]]);
        chart.append(group);
      });
      chart.append(text(middle, box.bottom + 18, groups[g]), text(middle, box.bottom + 34, ["> 100 samples", "20 to 100", "< 20"][g]));
    });
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }));
  };

  /* One horizontal bar a method, its value at its end. */
  const horizontalBars = (host, series, unit) => {
    if (!series.length) return empty(host, "No method is shown.");
    const wide = Math.max(...series.map((one) => one.name.length)) * 7 + 14;
    const { chart, box } = frame(host, series.length * 30 + 14, { left: Math.min(wide, 150), right: 86, top: 4, bottom: 6 }, `${caption(host)}: ${series.map((one) => one.name).join(", ")}`);
    const scale = linear(0, Math.max(...series.map((one) => one.value[0])) || 1, box.left, box.right, 4);
    series.forEach((one, k) => {
      const y = box.top + 30 * k + 4;
      const [mean, error] = one.value;
      const group = svg("g", { "data-method": one.name }, text(box.left - 10, y + 15, one.name, "end", "value"),
        svg("rect", { x: box.left, y, width: Math.max(1, scale(mean) - box.left), height: 20, fill: colour(one.style), class: "bar" }),
        text(scale(mean) + 8, y + 15, `${plain(mean)} ${unit}`, "start", "value"));
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
      text((box.left + box.right) / 2, box.bottom + 17, `classes by their main phase; up to ${whole.format(most)} samples a cell (logarithmic shades)`));
  };

  // -- confusion matrices --
  const withConfusion = () => current().methods.filter((method) => method.confusion);
  const drawConfusion = (host, side) => {
    const method = withConfusion().find((one) => one.name === state.pair[side]);
    const canvas = host.querySelector("canvas");
    const output = host.querySelector("output");
    all(".matrix i, .matrix span", host).forEach((line) => line.remove());
    canvas.parentElement.hidden = document.querySelector(".ramp").hidden = !method;
    if (!method) { output.textContent = "No finished method has one."; return; }
    const { classes } = current();
    const size = classes.length;
    const counts = expand(method.confusion, size * size);
    const totals = classes.map((_, r) => counts.subarray(r * size, (r + 1) * size).reduce((sum, n) => sum + n, 0));
    canvas.width = canvas.height = size;
    const context = canvas.getContext("2d");
    const image = context.createImageData(size, size);
    const rgb = getComputedStyle(root).getPropertyValue("--ramp").split(",").map(Number);
    let right = 0;
    counts.forEach((n, i) => {
      const r = Math.floor(i / size);
      if (r === i % size) right += totals[r] ? n / totals[r] : 0;
      image.data.set([...rgb, totals[r] ? 255 * Math.sqrt(n / totals[r]) : 0], 4 * i);
    });
    context.putImageData(image, 0, 0);
    output.textContent = `class-balanced accuracy ${percent(100 * right / totals.filter(Boolean).length)}`;
    canvas.setAttribute("aria-label", `Confusion matrix of ${method.name}, ${size} classes, ${output.textContent}`);
    for (const { from, at, label } of divides()) {
      const name = html("span", "", label);
      name.style.left = `${100 * (at + 0.5) / size}%`;
      canvas.parentElement.append(name);
      if (from == null) continue;
      for (const [name, edge] of [["down", "left"], ["across", "top"]]) {
        const line = html("i", name);
        line.style[edge] = `${100 * (from + 0.5) / size}%`;
        canvas.parentElement.append(line);
      }
    }
    let cell = [0, 0];
    const tell = (row, column, x, y) => {
      const n = counts[row * size + column];
      showTooltip(`${method.name}: true ${classes[row]}, predicted ${classes[column]}`, [
        ["test samples", `${whole.format(n)} of ${whole.format(totals[row])}`],
        ["share", totals[row] ? percent(100 * n / totals[row]) : "–"],
        ["training samples", `${plain(current().counts[row])} / ${plain(current().counts[column])}`],
      ], x, y);
    };
    const within = (value) => Math.max(0, Math.min(size - 1, value));
    canvas.onpointermove = (event) => {
      const at = canvas.getBoundingClientRect();
      cell = [within(Math.floor((event.clientY - at.top) / at.height * size)), within(Math.floor((event.clientX - at.left) / at.width * size))];
      tell(...cell, event.clientX, event.clientY);
    };
    canvas.onpointerleave = canvas.onblur = hideTooltip;
    canvas.onkeydown = (event) => {
      const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      cell = cell.map((value, i) => within(value + step[i]));
      const at = canvas.getBoundingClientRect();
      tell(...cell, at.left + (cell[1] + 0.5) / size * at.width, at.top + (cell[0] + 0.5) / size * at.height);
    };
  };
  const chooseConfusions = () => {
    const names = withConfusion().map((method) => method.name);
    const wanted = [state.pair[0] ?? "acil", state.pair[1] ?? "air"];
    const free = names.filter((name) => !wanted.includes(name));
    state.pair = wanted.map((name) => names.includes(name) ? name : free.shift() ?? names[0] ?? null);
    all("figcaption select").forEach((select, side) => {
      select.replaceChildren(...names.map((name) => new Option(name, name, false, name === state.pair[side])));
      select.disabled = !names.length;
    });
  };

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
    groups: (host) => groupedBars(host, current().groups, shown().map((method) => ({ name: method.name, style: method.style, values: method.groups }))),
    weight_norms: perClass("weight_norms", "No method shown has a linear classifier."),
    test_loss: perClass("test_loss", "No method shown regresses on targets."),
    train_loss: perClass("train_loss", "No method shown regresses on targets."),
    stream: streamMap,
    seconds: (host) => horizontalBars(host, shown().filter((method) => method.seconds).map((method) => ({ name: method.name, style: method.style, value: method.seconds })), "s"),
    memory: (host) => horizontalBars(host, shown().filter((method) => method.memory).map((method) => ({ name: method.name, style: method.style, value: method.memory })), "MB"),
    confusion: (host) => drawConfusion(host, host.dataset.side === "left" ? 0 : 1),
  };
  const draw = () => {
    hideTooltip();
    if (experiments.length) all("figure[data-chart]").forEach((host) => charts[host.dataset.chart](host));
  };

  // -- table --
  const sortKey = (cell) => {
    const value = cell.dataset.value ?? cell.dataset[document.body.dataset.accuracy];
    return cell.tagName === "TH" ? cell.textContent.trim().toLowerCase() : value == null ? null : Number(value);
  };
  const sort = (header) => {
    const table = header.closest("table");
    const index = [...header.parentElement.children].indexOf(header);
    // Numbers begin with the largest, names with the first.
    const first = index === 0 ? "ascending" : "descending";
    const second = index === 0 ? "descending" : "ascending";
    const direction = header.getAttribute("aria-sort") === first ? second : first;
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
  all("table.sortable th button").forEach((button) => button.addEventListener("click", () => sort(button.parentElement)));
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
  all("figcaption select").forEach((select, side) => select.addEventListener("change", () => {
    state.pair[side] = select.value;
    draw();
  }));
  const choose = (index) => {
    state.experiment = index;
    all(".experiments button").forEach((button, i) => button.setAttribute("aria-pressed", String(i === index)));
    all("section.comparison").forEach((section, i) => { section.hidden = i !== index; });
    const here = new Set(current().methods.map((method) => method.name));
    all("[data-toggle]").forEach((chip) => { chip.hidden = !here.has(chip.dataset.toggle); });
    chooseConfusions();
    draw();
  };
  all(".experiments button").forEach((button, i) => button.addEventListener("click", () => choose(i)));

  const theme = document.getElementById("theme");
  const paint = () => {
    const dark = root.dataset.theme === "dark";
    theme.setAttribute("aria-pressed", String(dark));
    all(".ramp i").forEach((bar) => { bar.style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map((share) => ramp(share, 1)).join(",")})`; });
    all(".ramp .ticks").forEach((ticks) => { ticks.textContent = "0 to 100 %, shades by the square root"; });
    draw();
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("aircl-theme", root.dataset.theme); } catch { /* then the next page asks the system again */ }
    paint();
  });

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; requestAnimationFrame(draw); }
  });
  addEventListener("beforeprint", draw);
  addEventListener("scroll", hideTooltip, { passive: true });
  if (experiments.length) choose(0);
  paint();
})();
