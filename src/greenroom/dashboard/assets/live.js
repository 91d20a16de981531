// The live page: figures fresh every second over server-sent events, charts of the last hour, keys, and the large view.
const { area, chart, duration, limit, line, numbers, plain } = window.greenroomCharts;

const root = document.getElementById("live");
const { zone, language } = root.dataset;
const number = numbers(language);
const written = (value) => (value === null || value === undefined ? "unknown" : number.format(value));
const measured = (value) => (value === null || value === undefined ? "" : number.format(value));
const parts = new Map([...root.querySelectorAll("[data-live]")].map((element) => [element.dataset.live, element]));
const shares = [...root.querySelectorAll("[data-live-share]")];
const verdict = root.querySelector("[data-live-tone]");
const sign = document.getElementById("live-sign");
const spoken = document.getElementById("live-spoken");

const FORMATS = {
  active: (it) => written(it.active),
  active_limit: (it) => written(it.active_limit),
  minute: (it) => written(it.minute),
  minute_limit: (it) => written(it.minute_limit),
  waiting: (it) => written(it.waiting),
  wait: (it) => it.wait_words,
  wait_note: (it) => it.wait_note,
  arrivals: (it) => measured(it.arrivals),
  abandoned: (it) => measured(it.abandoned),
  waited_p50: (it) => (it.waited_p50_s === null ? "no one waited" : duration(it.waited_p50_s)),
  waited_p95: (it) => (it.waited_p95_s === null ? "no one waited" : duration(it.waited_p95_s)),
  origin: (it) => it.origin || "No health check",
  origin_errors: (it) => measured(it.origin_errors),
  origin_mean: (it) => (it.origin_mean_s === null ? "" : `${(it.origin_mean_s * 1000).toFixed(1)} ms`),
  capacity: (it) => it.capacity,
  capacity_reason: (it) => it.capacity_reason,
  title: (it) => it.title,
  text: (it) => it.text,
  event: (it) => it.event_words,
};

function countDown() {
  for (const element of document.querySelectorAll("[data-until]")) {
    const left = Math.ceil((Number(element.dataset.until) - Date.now()) / 1000);
    element.textContent = left > 0 ? `· ${duration(left)} left` : "· over";
  }
}
countDown();
setInterval(countDown, 1000);

const centers = document.getElementById("data-centers");
const asOf = (it) => (it.age_s === null ? "never heard" : it.silent ? `silent for ${duration(it.age_s)}` : `${Math.round(it.age_s)} s ago`);

// A row for each data center, where several share the room; the first one is this one.
function list(found) {
  centers.hidden = !found.length;
  const rows = found.map((it, index) => {
    const row = document.createElement("tr");
    const cells = [it.name || "all others", asOf(it), ...[it.active, it.last_minute, it.waiting, it.permits_unused].map(written)];
    for (const [place, text] of cells.entries()) {
      const cell = document.createElement(place ? "td" : "th");
      cell.textContent = text;
      if (!place) cell.scope = "row";
      if (!place && !index) cell.insertAdjacentHTML("beforeend", ' <span class="muted">(this one)</span>');
      if (place > 1) cell.className = "amount";
      row.append(cell);
    }
    return row;
  });
  centers.querySelector("[data-centers]").replaceChildren(...rows);
}

let shown = JSON.parse(root.dataset.frame);

function show(frame) {
  for (const [name, element] of parts) {
    const text = FORMATS[name](frame);
    if (element.textContent !== text) element.textContent = text;
    if (element.tagName === "DD") element.parentElement.hidden = !text;
  }
  for (const element of shares) {
    const name = element.dataset.liveShare;
    element.className = frame[name] > frame[`${name}_limit`] ? "over" : frame[name] >= frame[`${name}_limit`] ? "full" : "";
    element.value = frame[`${name}_limit`] ? Math.min(100, Math.round((100 * frame[name]) / frame[`${name}_limit`])) : 0;
  }
  list(frame.centers);
  if (frame.label !== shown.label || frame.tone !== shown.tone) {
    const badge = verdict.querySelector(".state");
    badge.className = `state state-${frame.tone}`;
    badge.lastChild.textContent = frame.label;
    verdict.className = `card live-verdict tone-${frame.tone}`;
  }
  if (frame.title !== shown.title) spoken.textContent = `${frame.label}. ${frame.title}`;
  document.title = `${frame.waiting ? `${written(frame.waiting)} waiting` : frame.label} – ${document.querySelector("h1").textContent} live – greenroom`;
  shown = frame;
}

// -- charts -------------------------------------------------------------------------------------------------------------------

const HOUR = 3600000;
const EVERY = 5000;
let points = [];

function add(frame) {
  const last = points.at(-1);
  const point = [frame.at_ms, frame.active, frame.active_limit, frame.minute, frame.minute_limit, frame.waiting];
  if (points.length > 1 && last[0] - points.at(-2)[0] < EVERY) points[points.length - 1] = point;
  else points.push(point);
  while (points.length && points[0][0] < frame.at_ms - HOUR) points.shift();
}

const GAP = 150000;
// Minutes that nobody recorded are a gap, and no line that leads across them.
const column = (index) =>
  points.flatMap((point, at) => {
    const here = [point[0], point[index]];
    return at && point[0] - points[at - 1][0] > GAP ? [[point[0] - 1, null], here] : [here];
  });
const LEAST = 300000;
const span = () => ({ min: Math.min(shown.at_ms - LEAST, points.length ? points[0][0] : shown.at_ms), max: shown.at_ms });
const most = (index) => Math.max(0, ...points.map((point) => point[index]));
// A line much longer than the limit has its own axis, or nothing else could be seen.
const apart = () => most(5) > 3 * Math.max(most(1), most(2));
const CHARTS = {
  main: () => {
    document.getElementById("live-right").hidden = !apart();
    const waiting = { ...line("Waiting", "yellow", column(5)), yAxisIndex: apart() ? 1 : 0 };
    return [area("Active visitors", "accent", column(1)), limit("Limit", column(2)), waiting];
  },
  minute: () => [area("Let in per minute", "blue", column(3)), limit("Limit", column(4))],
};

const charts = [];
if (window.echarts) {
  for (const element of root.querySelectorAll("[data-chart]")) {
    charts.push(
      chart(element, () => {
        const base = plain(zone, written);
        const right = { ...base.yAxis, splitLine: { show: false } };
        return { ...base, xAxis: { ...base.xAxis, ...span() }, yAxis: [base.yAxis, right], series: CHARTS[element.dataset.chart]() };
      }),
    );
  }
}
const draw = () => document.visibilityState === "visible" && charts.forEach((one) => one.draw());

// -- the stream ---------------------------------------------------------------------------------------------------------------

let source;
let heard = Date.now();

function say(text, tone) {
  if (sign.textContent !== text) sign.textContent = text;
  sign.dataset.tone = tone;
}

function open() {
  source = new EventSource(root.dataset.stream);
  source.addEventListener("history", (event) => {
    points = JSON.parse(event.data);
    draw();
  });
  source.addEventListener("message", (event) => {
    heard = Date.now();
    const frame = JSON.parse(event.data);
    show(frame);
    add(frame);
    draw();
    say("Live", "green");
  });
  source.addEventListener("over", () => {
    source.close();
    say("Connecting again", "yellow");
    window.setTimeout(again, 1500);
  });
  source.addEventListener("error", () => {
    say("Connecting again", "yellow");
    if (source.readyState === EventSource.CLOSED) window.setTimeout(again, 2000);
  });
}

// The stream ended for good: greenroom stops, or the session ended. Looks whether the page is there, and where it leads.
async function again() {
  try {
    const answer = await fetch(location.href, { redirect: "manual", cache: "no-store" });
    if (answer.ok) open();
    else if (answer.type === "opaqueredirect" || answer.status < 500) location.reload();
    else window.setTimeout(again, 3000);
  } catch {
    window.setTimeout(again, 3000);
  }
}

window.setInterval(() => {
  if (Date.now() - heard > 5000) say(`No figures for ${Math.round((Date.now() - heard) / 1000)} seconds`, "red");
}, 1000);
window.addEventListener("pagehide", () => source.close());
window.addEventListener("pageshow", (event) => event.persisted && open());
open();

// -- actions beside the figures ---------------------------------------------------------------------------------------------------

const panel = document.getElementById("live-panel");
const panelBody = document.getElementById("live-panel-body");
const panelTitle = document.getElementById("live-panel-title");
let opener = null;

function place(text, url) {
  const found = new DOMParser().parseFromString(text, "text/html");
  const action = found.getElementById("action");
  if (!action) return location.assign(url);
  panelTitle.textContent = found.querySelector("h1").textContent;
  panelBody.replaceChildren(...action.childNodes);
  panelBody.dataset.url = url;
  panel.hidden = false;
  document.getElementById("live-top").classList.add("is-acting");
  if (window.matchMedia("(max-width: 60rem)").matches) verdict.scrollIntoView();
  (panelBody.querySelector("[autofocus], .has-problem input, input:not([type=hidden]), textarea") ?? panelTitle).focus({ preventScroll: true });
}

const bar = root.querySelector(".live-bar");
let asking = false;

// Until the answer is here nothing else can be pressed: the page that it leads to would take it away.
function wait(on) {
  panel.setAttribute("aria-busy", String((asking = on)));
  if (bar) bar.inert = on;
}

async function ask(url, sent) {
  wait(true);
  try {
    const answer = await fetch(url, sent);
    if (answer.redirected) return location.assign(answer.url);
    place(await answer.text(), url);
    wait(false);
  } catch {
    location.assign(url);
  }
}

window.addEventListener("pageshow", (event) => event.persisted && wait(false));

function closePanel() {
  panel.hidden = true;
  document.getElementById("live-top").classList.remove("is-acting");
  opener?.focus();
}

const ACTION = /\/live\/do\/[a-z-]+$/;
root.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const path = new URL(link.href).pathname;
  if (ACTION.test(path)) {
    event.preventDefault();
    if (asking) return;
    if (!panel.contains(link)) opener = link;
    link.closest("details")?.removeAttribute("open");
    ask(link.href);
  } else if (panel.contains(link) && path === location.pathname) {
    event.preventDefault();
    closePanel();
  }
});
panel.addEventListener("submit", (event) => {
  event.preventDefault();
  if (asking) return;
  ask(panelBody.dataset.url, { method: "POST", body: new URLSearchParams(new FormData(event.target, event.submitter)) });
});
document.getElementById("live-panel-close").addEventListener("click", closePanel);

const toast = document.getElementById("live-toast");
if (toast) window.setTimeout(() => toast.remove(), 10000);

// -- keys and the large view ----------------------------------------------------------------------------------------------------

const large = document.getElementById("live-large");
large.hidden = false;

function enlarge() {
  const on = document.body.classList.toggle("live-is-large");
  large.setAttribute("aria-pressed", String(on));
  large.textContent = on ? "Normal view" : "Large view";
  if (on) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
}

large.addEventListener("click", enlarge);
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement && document.body.classList.contains("live-is-large")) enlarge();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !panel.hidden) closePanel();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "f") enlarge();
  else root.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
});
