// The times of the event form as a timeline that follows what is typed. Times are those of the form's zone.
const root = document.getElementById("event-timeline");
const [opens, start, end] = ["prequeue_start_time", "event_start_time", "event_end_time"].map((name) => document.getElementsByName(name)[0]);
const [before, event] = root.querySelectorAll("rect");
const [now, words] = [root.querySelector("line"), root.querySelector("p")];
const MINUTE = 60000;

const typed = (input) => (input.value ? Date.parse(`${input.value}Z`) : NaN);
const clock = new Intl.DateTimeFormat("sv-SE", { timeZone: root.dataset.zone, dateStyle: "short", timeStyle: "medium" });
const here = () => Date.parse(`${clock.format(Date.now()).replace(" ", "T")}Z`);

function length(ms) {
  const minutes = Math.round(ms / MINUTE);
  const [days, hours, rest] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60), minutes % 60];
  return [days && `${days} d`, hours && `${hours} h`, (rest || minutes === 0) && `${rest} min`].filter(Boolean).join(" ");
}

function say(from, starts, ends) {
  if (Number.isNaN(starts) || Number.isNaN(ends)) return "Fill in the start and the end.";
  if (ends <= starts) return "The end must be after the start.";
  if (starts - from < 5 * MINUTE && from < starts) return "The pre-queue must open at least 5 minutes before the start.";
  if (from > starts) return "The pre-queue must open before the start.";
  const at = here();
  const when = at < starts ? `starts in ${length(starts - at)}` : at < ends ? "is running" : "is over";
  return `${from < starts ? `Pre-queue ${length(starts - from)}, then the` : "The"} event for ${length(ends - starts)}. It ${when}.`;
}

function draw() {
  const [starts, ends] = [typed(start), typed(end)];
  const from = opens.value ? typed(opens) : starts;
  const right = from <= starts && starts < ends;
  root.hidden = false;
  root.classList.toggle("is-wrong", !right);
  const text = say(from, starts, ends);
  if (words.textContent !== text) words.textContent = text;
  if (!right) return;
  const margin = (ends - from) / 20;
  const place = (at) => (1000 * (at - from + margin)) / (ends - from + 2 * margin);
  for (const [bar, left, to] of [[before, from, starts], [event, starts, ends]]) {
    bar.setAttribute("x", place(left));
    bar.setAttribute("width", place(to) - place(left));
  }
  const at = Math.max(0, Math.min(1000, place(here())));
  for (const side of ["x1", "x2"]) now.setAttribute(side, at);
}

for (const input of [opens, start, end]) input.addEventListener("input", draw);
draw();
