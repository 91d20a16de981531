// The charts of the analytics page. Dragging over one opens its span for all: the address changes, so the back button steps out.
const { brief, chart, colour, duration, numbers, plain, tick } = window.greenroomCharts;

const root = document.getElementById("analytics");
const { zone, language, address, compare, kept } = root?.dataset ?? {};
const number = numbers(language);
const known = (write) => (value) => (value === null || value === undefined ? "–" : write(value));
const FORMATS = {
  seconds: known(duration),
  percent: known((value) => `${value.toFixed(value % 1 ? 2 : 0)} %`),
  ms: known((value) => `${value < 10 ? value.toFixed(1) : number.format(Math.round(value))} ms`),
};
const format = (unit) => FORMATS[unit] ?? known((value) => number.format(value));
const AXES = { percent: { min: ({ min }) => Math.floor(Math.min(99, min)), max: 100, minInterval: 0 } };
const LEAST = 600000;
const even = (unit, panel) => {
  if (unit !== "seconds") return AXES[unit];
  const most = Math.max(0, ...panel.series.flatMap((one) => [...one.values, ...(one.before ?? []), ...(one.upper ?? [])]).filter(Number.isFinite));
  const interval = tick(most);
  return { interval, max: Math.max(1, Math.ceil(most / interval)) * interval, axisLabel: { formatter: brief } };
};

const withAxis = (base, more) => ({ ...base, ...more, axisLabel: { ...base.axisLabel, ...more?.axisLabel } });

// A band is the line of its values, and on it the area up to `upper`: the third number is what the tooltip says.
function band(one, middle) {
  const few = one.values.filter((value) => value !== null).length < 3;
  const shared = { type: "line", stack: `band ${one.label}`, showSymbol: few, itemStyle: { color: colour(one.tone) } };
  return [
    { ...shared, name: one.label, lineStyle: { color: colour(one.tone), width: 2 }, data: one.values.map((value, index) => [middle(index), value]) },
    {
      ...shared,
      name: "p95",
      lineStyle: { width: 0 },
      areaStyle: { color: colour(one.tone), opacity: 0.2 },
      data: one.upper.map((value, index) => [middle(index), value === null ? null : value - one.values[index], value]),
    },
  ];
}

function seriesOf(data, panel) {
  const at = (index) => data.from + index * data.step;
  const made = panel.series.flatMap((one) => {
    if (one.kind === "band") return band(one, (index) => at(index) + data.step / 2);
    const bars = one.kind === "bar";
    const few = one.values.filter((value) => value !== null).length < 3;
    return {
      name: one.label,
      type: bars ? "bar" : "line",
      stack: one.stack ? "all" : undefined,
      barCategoryGap: "12%",
      large: false,
      showSymbol: few, // a line needs two points beside each other
      step: one.kind === "limit" ? "middle" : undefined,
      connectNulls: false,
      itemStyle: { color: colour(one.tone) },
      lineStyle: { color: colour(one.tone), width: one.kind === "limit" ? 1.5 : 2, type: one.kind === "limit" ? "dashed" : "solid" },
      data: one.values.map((value, index) => [at(index) + data.step / 2, value]),
    };
  });
  const first = panel.series[0];
  if (!first) return made;
  if (first.before) {
    made.push({
      name: `${first.label}, earlier`,
      type: "line",
      showSymbol: false,
      itemStyle: { color: colour("ink-2") },
      lineStyle: { color: colour("ink-2"), width: 1.5, type: "dotted" },
      data: first.before.map((value, index) => [at(index) + data.step / 2, value]),
    });
  }
  made[0].markArea = {
    silent: true,
    itemStyle: { color: colour("blue"), opacity: 0.08 },
    label: { color: colour("ink-2"), position: "insideTop" },
    data: data.marks.map(([name, opens, , end]) => [{ name, xAxis: Math.max(opens, data.from) }, { xAxis: Math.min(end, data.to) }]),
  };
  made[0].markLine = {
    silent: true,
    symbol: "none",
    label: { show: false },
    lineStyle: { color: colour("blue"), type: "solid", width: 1 },
    data: data.marks.filter(([, , start]) => start > data.from && start < data.to).map(([, , start]) => ({ xAxis: start })),
  };
  return made;
}

function zoom(from, to) {
  const half = Math.max(0, (LEAST - (to - from)) / 2);
  const query = new URLSearchParams(kept);
  query.set("from", String(Math.floor((from - half) / 1000)));
  query.set("to", String(Math.ceil((to + half) / 1000)));
  if (compare) query.set("compare", compare);
  location.assign(`${address}?${query}`);
}

if (root && window.echarts) {
  const data = JSON.parse(root.dataset.charts);
  const made = [];
  document.querySelector(".only-charts").hidden = false;
  for (const element of root.querySelectorAll("[data-panel]")) {
    element.hidden = false;
    const panel = data.panels[element.dataset.panel];
    const one = chart(element, () => {
      const base = plain(zone, format(panel.unit), data.step);
      return {
        ...base,
        xAxis: { ...base.xAxis, min: data.from, max: data.to },
        yAxis: withAxis(base.yAxis, even(panel.unit, panel)),
        brush: {
          toolbox: [],
          xAxisIndex: 0,
          brushType: "lineX",
          brushMode: "single",
          transformable: false,
          brushStyle: { color: colour("accent"), borderColor: colour("accent"), borderWidth: 1, opacity: 0.18 },
        },
        series: seriesOf(data, panel),
      };
    });
    const select = () => one.made.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "lineX", brushMode: "single" } });
    select();
    new MutationObserver(select).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
    one.made.on("brushEnd", (event) => {
      const range = event.areas[0]?.coordRange;
      if (range && range[1] - range[0] > data.step / 2) zoom(range[0], range[1]);
    });
    made.push(one.made);
  }
  made.forEach((one) => (one.group = "analytics"));
  window.echarts.connect("analytics");
}
