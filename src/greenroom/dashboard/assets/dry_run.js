// The chart of a dry run, which comes with its result: waiting visitors since the start, in seconds.
const { brief, chart, colour, duration, line, numbers, plain, tick } = window.greenroomCharts;

const LOOKS = [
  ["accent", "solid"],
  ["blue", "dashed"],
];

function draw() {
  const element = document.querySelector("[data-dry-run]:not([data-drawn])");
  if (!element || !window.echarts) return;
  element.dataset.drawn = "";
  element.hidden = false;
  const lines = JSON.parse(element.dataset.dryRun);
  const format = (value) => numbers(element.dataset.language).format(value);
  const times = lines.flatMap((one) => one.points.map(([second]) => second));
  const [min, max] = [Math.min(...times), Math.max(...times)];
  const when = (second) => `${duration(Math.abs(second))} ${second < 0 ? "before" : "after"} the start`;
  chart(element, () => {
    const base = plain("UTC", format);
    const label = { ...base.xAxis.axisLabel, formatter: brief, showMaxLabel: max % tick(max - min) === 0 };
    const series = lines.map((one, index) => {
      const [tone, type] = LOOKS[index];
      const made = line(one.label, tone, one.points);
      return { ...made, lineStyle: { ...made.lineStyle, type } };
    });
    if (min < 0) {
      const lineStyle = { color: colour("red"), type: "dotted", width: 1.5 };
      series[0].markLine = { silent: true, symbol: "none", label: { show: false }, lineStyle, data: [{ xAxis: 0 }] };
    }
    return {
      ...base,
      tooltip: {
        ...base.tooltip,
        formatter: (rows) => [when(rows[0].axisValue), ...rows.map((row) => `${row.seriesName}: ${format(row.value[1])} waiting`)].join("\n"),
      },
      xAxis: { ...base.xAxis, type: "value", min, max, interval: tick(max - min), axisLabel: label },
      yAxis: { ...base.yAxis, axisLine: { show: false } },
      series,
    };
  });
}

draw();
document.addEventListener("htmx:afterSettle", draw);
