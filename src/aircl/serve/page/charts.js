// Small charts as SVG, drawn by hand: lines over time, and points.
import { html, svg } from "./elements.js";

const text = (x, y, string, anchor = "middle", className = null) => svg("text", { x, y, "text-anchor": anchor, class: className }, string);

const niceStep = (span, count) => {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
};
const ticksOf = (low, high, count) => {
  const step = niceStep(high - low, count);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(+(k * step).toPrecision(12));
  return ticks;
};
const frame = (host, height, label) => {
  const width = Math.max(200, host.clientWidth);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  host.replaceChildren(chart);
  return { chart, width };
};

const minutes = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`);

// series: [{name, kind, values: [[time, value or null], ..]}]. A point holds until the next one. The axis spans `least`
// at least, so that its numbers differ as they are written.
export function drawLines(host, { series, format, label, least, low = null, high = null, empty }) {
  const height = 128, box = { left: 46, right: 8, top: 10, bottom: 20 };
  const values = series.flatMap((one) => one.values.map(([, value]) => value)).filter((value) => value !== null);
  const { chart, width } = frame(host, height, values.length ? label : empty);
  const right = width - box.right, bottom = height - box.bottom;
  if (!values.length) {
    chart.append(svg("line", { class: "axis", x1: box.left, x2: right, y1: bottom, y2: bottom }), text((box.left + right) / 2, height / 2, empty, "middle", "empty"));
    return;
  }
  let bottomValue = low ?? Math.min(...values), topValue = high ?? Math.max(...values);
  const more = Math.max(0, least - (topValue - bottomValue)) / (low === null && high === null ? 2 : 1);
  if (low === null) bottomValue = Math.max(0, bottomValue - more);
  if (high === null) topValue += more;
  const ticks = ticksOf(bottomValue, topValue, 3);
  const step = ticks[1] - ticks[0] || 1;
  if (low === null) bottomValue = Math.floor(bottomValue / step) * step;
  if (high === null) topValue = Math.ceil(topValue / step) * step;
  const y = (value) => bottom - (value - bottomValue) / (topValue - bottomValue || 1) * (bottom - box.top);
  const times = series.flatMap((one) => one.values.map(([time]) => time));
  const end = Math.max(...times), start = Math.min(Math.min(...times), end - 10);
  const x = (time) => box.left + (time - start) / (end - start) * (right - box.left);
  for (const tick of ticksOf(bottomValue, topValue, 3)) {
    chart.append(svg("line", { class: "grid", x1: box.left, x2: right, y1: y(tick), y2: y(tick) }), text(box.left - 6, y(tick) + 4, format(tick), "end"));
  }
  chart.append(text(box.left, height - 4, `${minutes(end - start)} ago`, "start"), text(right, height - 4, "now", "end"));
  for (const one of series) {
    let path = "", open = false, last = null;
    for (const [time, value] of one.values) {
      if (value === null) {
        if (open) path += `H${x(time).toFixed(1)}`;
        open = false;
        continue;
      }
      path += open ? `H${x(time).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      open = true;
      last = [time, value];
    }
    if (last === null) continue;
    chart.append(svg("path", { class: `line ${one.kind}`, d: open ? `${path}H${right}` : path }));
    if (open) chart.append(svg("circle", { class: `dot ${one.kind}`, cx: right, cy: y(last[1]), r: 3 }));
  }
  hoverLines(host, chart, { series, format, x, start, end, left: box.left, right, top: box.top, bottom });
}

function hoverLines(host, chart, { series, format, x, start, end, left, right, top, bottom }) {
  const cursor = svg("line", { class: "cursor", y1: top, y2: bottom, visibility: "hidden" });
  const told = html("div", { class: "told", hidden: true, "aria-hidden": "true" });
  chart.append(cursor);
  host.append(told);
  chart.addEventListener("pointermove", (event) => {
    const rect = chart.getBoundingClientRect();
    const time = start + (Math.min(right, Math.max(left, event.clientX - rect.left)) - left) / (right - left) * (end - start);
    const lines = series.map((one) => [one.name, one.values.findLast(([at]) => at <= time + 1e-6)?.[1] ?? null]).filter(([, value]) => value !== null);
    cursor.setAttribute("visibility", lines.length ? "visible" : "hidden");
    told.hidden = !lines.length;
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(time));
    told.replaceChildren(html("b", {}, `${minutes(end - time)} ago`), ...lines.map(([name, value]) => html("span", {}, `${name} ${format(value)}`)));
    told.style.left = `${Math.min(Math.max(0, x(time) - 50), right - 110)}px`;
  });
  chart.addEventListener("pointerleave", () => { told.hidden = true; cursor.setAttribute("visibility", "hidden"); });
}

// points: [{x, y, name, strong}]; x on a logarithmic axis, y a share.
export function drawPoints(host, { points, label, empty, xLabel, format }) {
  const height = 190, box = { left: 46, right: 14, top: 10, bottom: 34 };
  const { chart, width } = frame(host, height, points.length ? label : empty);
  const right = width - box.right, bottom = height - box.bottom;
  if (!points.length) {
    chart.append(svg("line", { class: "axis", x1: box.left, x2: right, y1: bottom, y2: bottom }), text(width / 2, height / 2, empty, "middle", "empty"));
    return;
  }
  const logs = points.map((point) => Math.log10(Math.max(0.5, point.x)));
  const fewest = logs.reduce((a, b) => Math.min(a, b)), most = logs.reduce((a, b) => Math.max(a, b));
  const wide = Math.max(0.8, most - fewest + 0.2); // points are not at the edge, and a narrow range is not torn apart
  const low = Math.max(Math.min(0, fewest), (fewest + most - wide) / 2), high = low + wide;
  const floor = Math.max(0, Math.floor(10 * points.reduce((least, point) => Math.min(least, point.y), 1) - 0.2) / 10);
  const x = (value) => box.left + (Math.log10(Math.max(0.5, value)) - low) / (high - low) * (right - box.left);
  const y = (value) => bottom - (value - floor) / (1 - floor) * (bottom - box.top);
  for (const tick of ticksOf(floor, 1, 4)) {
    chart.append(svg("line", { class: "grid", x1: box.left, x2: right, y1: y(tick), y2: y(tick) }), text(box.left - 6, y(tick) + 4, format(tick), "end"));
  }
  for (let power = Math.floor(Math.max(0, low)); power <= high; power++) {
    for (const factor of wide < 2 ? [1, 2, 5] : [1]) {
      const tick = factor * 10 ** power, at = Math.log10(tick);
      if (at >= low && at <= high) chart.append(text(x(tick), bottom + 15, tick.toLocaleString("en-US")));
    }
  }
  chart.append(text(right, height - 3, xLabel, "end"));
  for (const point of [...points].sort((a, b) => a.strong - b.strong)) {
    chart.append(svg("circle", { class: point.strong ? "point strong" : "point", cx: x(point.x), cy: y(point.y), r: point.strong ? 4.5 : 3 }, svg("title", {}, point.name)));
  }
}
