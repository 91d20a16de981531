// Charts in the colours of the theme as `window.greenroomCharts`, for the live page and analytics. `window.echarts` comes from echarts.js.
// A global and no import: the names of static files carry hashes.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const numbers = (language) => {
  try {
    return new Intl.NumberFormat(language);
  } catch {
    return new Intl.NumberFormat("en");
  }
};

const clock = (zone, seconds) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });

// A length of time in words, as the server writes it.
function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "unknown";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} second${whole === 1 ? "" : "s"}`;
  const minutes = Math.ceil(whole / 60);
  if (minutes < 120) return `${minutes} minutes`;
  if (minutes >= 2880) return `${Math.round(minutes / 1440)} days`;
  const rest = minutes % 60;
  return rest ? `${Math.floor(minutes / 60)} h ${rest} min` : `${minutes / 60} h`;
}

// Ticks of durations are whole units, or their rounded labels would be uneven.
const NICE = [5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
const tick = (most) => NICE.find((step) => most / step <= 5) ?? 86400 * Math.ceil(most / 432000);
const brief = (seconds) => (seconds && seconds % 3600 === 0 ? `${seconds / 3600} h` : seconds && seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`);

// What all charts share: the axes, the grid and the tooltip. `zone` is the viewer's time zone; values stand for `step` ms around them.
function plain(zone, format, step) {
  const ink = colour("ink-2");
  const hours = clock(zone, false);
  // Dates as the server writes them.
  const day = new Intl.DateTimeFormat("sv-SE", { timeZone: zone });
  const moment = (at) => `${day.format(at)} ${hours.format(at)}`;
  const named = (at) => (step ? `${moment(at - step / 2)} to ${hours.format(at + step / 2)}` : moment(at));
  const label = (at) => (hours.format(at) === "00:00" ? day.format(at) : hours.format(at));
  return {
    animation: false,
    aria: { enabled: false },
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: ink },
    grid: { left: 8, right: 16, top: 12, bottom: 6, containLabel: true },
    legend: { show: false },
    toolbox: { show: false },
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      confine: true,
      backgroundColor: colour("card"),
      borderColor: colour("line"),
      textStyle: { color: colour("ink"), fontSize: 13 },
      axisPointer: { lineStyle: { color: ink } },
      formatter: (rows) => [named(rows[0].axisValue), ...rows.map((row) => `${row.seriesName}: ${format(row.value[2] ?? row.value[1])}`)].join("\n"),
    },
    xAxis: {
      type: "time",
      axisLine: { lineStyle: { color: colour("line") } },
      axisTick: { show: false },
      axisLabel: { color: ink, hideOverlap: true, formatter: label },
      splitLine: { show: false },
    },
    yAxis: {
      type: "value",
      min: 0,
      minInterval: 1,
      splitNumber: 3,
      axisLabel: { color: ink, formatter: format },
      splitLine: { lineStyle: { color: colour("line") } },
    },
  };
}

const line = (name, tone, data, more) => ({
  name,
  type: "line",
  showSymbol: false,
  data,
  lineStyle: { color: colour(tone), width: 2 },
  itemStyle: { color: colour(tone) },
  ...more,
});

const area = (name, tone, data) => line(name, tone, data, { areaStyle: { color: colour(tone), opacity: 0.16 } });

const limit = (name, data) =>
  line(name, "red", data, { step: "end", lineStyle: { color: colour("red"), width: 1.5, type: "dashed" } });

// A chart in an element: drawn again with new options, with the size of the element, and in the colours of a changed theme.
function chart(element, options) {
  const made = window.echarts.init(element, null, { renderer: "svg" });
  const draw = () => made.setOption(options(), { notMerge: true, lazyUpdate: true });
  new ResizeObserver(() => made.resize()).observe(element);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
  draw();
  return { draw, made };
}

window.greenroomCharts = { brief, colour, numbers, clock, duration, plain, line, area, limit, chart, tick };
