// The heatmap of health analytics: the median of each region and hour. Its other charts are those of analytics.js.
const { chart, colour, plain } = window.greenroomCharts;

const element = document.querySelector("[data-heat]");
const root = document.getElementById("analytics");

if (element && window.echarts) {
  const { rows, cells } = JSON.parse(root.dataset.charts).heat;
  const times = [...new Set(cells.map(([at]) => at))].sort((one, other) => one - other);
  const values = cells.map(([, , value]) => value);
  const moment = new Intl.DateTimeFormat("en-GB", { timeZone: root.dataset.zone, day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" });
  element.hidden = false;
  chart(element, () => {
    const base = plain(root.dataset.zone, String);
    return {
      ...base,
      tooltip: {
        ...base.tooltip,
        trigger: "item",
        formatter: ({ value: [at, row, ms] }) => `${moment.format(times[at])}\n${rows[row]}: ${ms.toFixed(1)} ms`,
      },
      grid: { left: 8, right: 16, top: 12, bottom: 48, containLabel: true },
      xAxis: { type: "category", data: times, axisLabel: { color: colour("ink-2"), hideOverlap: true, formatter: (at) => moment.format(Number(at)) }, axisTick: { show: false } },
      yAxis: { type: "category", data: rows, axisLabel: { color: colour("ink-2") }, axisTick: { show: false } },
      visualMap: {
        min: Math.min(...values),
        max: Math.max(...values),
        orient: "horizontal",
        left: "center",
        bottom: 0,
        itemHeight: 160,
        itemWidth: 12,
        text: [`${Math.max(...values).toFixed(0)} ms`, `${Math.min(...values).toFixed(0)} ms`],
        textStyle: { color: colour("ink-2") },
        inRange: { color: [colour("accent-soft"), colour("yellow"), colour("red")] },
      },
      series: [{ type: "heatmap", data: cells.map(([at, row, ms]) => [times.indexOf(at), rows.indexOf(row), ms]), itemStyle: { borderWidth: 1, borderColor: colour("card") } }],
    };
  });
}
