// Keeps the waiting page current without reloading it. The server words everything; this only puts the words in place.
(() => {
  const at = id => document.getElementById(id), room = at("room"), data = room.dataset, bar = at("bar"), tell = at("tell"), now = () => Date.now();
  let timer, bell, next, due = 1 / 0, failed = 0, busy, over, said, saidAt, seen = {}, view = data.view, kind = room.className, looks = 0, loads = 0, came = now(), shown, mark = "";

  const set = (id, text) => {
    const element = at(id);
    element.textContent = text;
    (element.closest("dl div,#draw") || element).hidden = !text;
  };
  // "5 seconds ago", in the language of the page: the visitor's clock may be wrong, so the time since the news came counts.
  const ago = () => {
    const past = (now() - came) / 1e3 | 0, late = past > 59;
    try { at("updated").textContent = new Intl.RelativeTimeFormat(document.documentElement.lang).format(late ? -(past / 60 | 0) : -past, late ? "minute" : "second"); } catch {}
  };

  // Not chatty: a change of state is spoken at once, progress at most once a minute.
  const say = (text, urgent) => {
    if (text === said || !urgent && now() < saidAt + 6e4) return;
    saidAt = now();
    at("say").textContent = said = text;
  };

  // The bar remembers how far it has been for this ticket, in this tab, and never goes back.
  const advance = (joined, value) => {
    try { seen = JSON.parse(sessionStorage.greenroom); } catch {}
    if (seen.joined !== joined) seen = { joined, value: -1 };
    if (value > seen.value) seen.value = value;
    if (seen.value >= 0) bar.value = seen.value;
    try { sessionStorage.greenroom = JSON.stringify(seen); } catch {}
  };

  const plan = (seconds, then = update) => {
    clearTimeout(timer);
    next = then;
    due = seconds ? now() + seconds * 1e3 : 1 / 0;
    if (seconds) {
      timer = setTimeout(then, seconds * 1e3);
      bell?.postMessage(seconds * 1e3);
    }
  };

  const turn = (layout, title, lead) => {
    over = 1;
    plan(0);
    room.className = layout;
    document.title = title + (data.site || "");
    set("heading", title);
    set("lead", lead);
    set("notice", "");
    say(title, 1);
  };

  // Loads the page once, however many events ask for it: a second load would use up a one-time link. A page after a form
  // takes the event and sends the form instead (form.js).
  const load = () => loads++ || dispatchEvent(new Event("turn", { cancelable: 1 })) && location.reload();

  // Who has no place at every look brings no ticket back: cookies are blocked, even where the browser does not say so.
  const check = () => {
    room.className = kind;
    if (data.blocked && (looks > 2 || !navigator.cookieEnabled)) {
      set("notice", data.blocked);
      say(data.blocked, 1);
      room.className = "left";
    }
  };

  // News have only the words that changed, or all of them when another view is to be shown.
  const show = news => {
    const text = news.words, changed = text.view && kind !== text.layout, words = id => at(id).textContent;
    if (text.view) {
      view = text.view;
      kind = text.layout;
    }
    if (text.title) document.title = text.title;
    // A page from before the pre-queue has no room for the receipt, one from before the first offer none for offers.
    for (const id in text) at(id) ? set(id, text[id]) : text[id] && /^[or]/.test(id) && load();
    came = now();
    ago();
    advance(news.joinedMs, news.progress);
    shown = news.position;
    const wait = words("wait") && at("wait").previousElementSibling.textContent + ": " + words("wait");
    say([...["heading", "label", "hero"].map(words), wait, words("change")].filter(Boolean).join(". "), changed);
    plan(news.nextTrySeconds);
    looks = news.joinedMs || /^tr/.test(view) ? 0 : looks + 1;
    check();
  };

  // Let in: say so where it is seen, and load the page once, so that the origin sees one page load. A visitor who is looking
  // elsewhere gets half a minute of "It is your turn" in the tab first: the session has begun, so not longer.
  const enter = () => {
    turn("bar", data.turn, data.turnLead);
    bar.value = 100;
    try { if (Notification.permission === "granted") new Notification(data.turn, { body: location.host }).onclick = () => focus(); } catch {}
    // A page that is left for the origin's is hidden too, before it is gone (Cross-Origin-Opener-Policy).
    addEventListener("visibilitychange", load);
    plan(document.hidden ? 30 : .7, load);
  };

  const update = async () => {
    if (busy || over) return;
    busy = 1;
    try {
      const answer = await fetch(location.href, {
        headers: { "Greenroom-Update": view + mark, Accept: "application/json" }, cache: "no-store", referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout?.(2e4)
      });
      const news = /json/.test(answer.headers.get("Content-Type")) ? await answer.json() : {}, held = news?.greenroom;
      // Proxies that ask may pass our answer on with such a status, also when it says that the visitor is let in.
      if (!held && !news?.cfWaitingRoom && (answer.status > 499 || answer.status === 429)) throw 0;
      if (!over) {
        failed = 0;
        set("notice", "");
        held?.words ? show(held) : held?.moved ? load() : enter();
      }
    } catch {
      const wait = Math.ceil(Math.min(60, 2 ** ++failed) * (.75 + Math.random() / 2));
      if (!over) {
        set("notice", data.offline.replace("{n}", wait));
        say(at("notice").textContent);
        plan(wait);
      }
    }
    busy = 0;
  };

  // In a tab that nobody looks at, browsers run timers once a minute, too late for whoever is next. A worker's are on time.
  try {
    bell = new Worker(URL.createObjectURL(new Blob(["onmessage=e=>setTimeout(postMessage,e.data,0)"])));
    bell.onmessage = () => now() >= due - 50 && next();
  } catch {}

  at("leave").onsubmit = async event => {
    event.preventDefault();
    if (over) return;
    // An update under way must not admit who is leaving.
    over = 1;
    try {
      const answer = await fetch(location.href, { method: "POST", headers: { "Greenroom-Update": "leave" } });
      if (!(await answer.json()).greenroom.left) throw 0;
      turn("left", data.left, data.leftLead);
      set("again", data.join);
      at("again").focus();
    } catch {
      event.target.submit();
    }
  };

  // On a phone the question would open below the window.
  at("leave").ontoggle = event => event.target.scrollIntoView({ block: "end" });

  tell.hidden = window.Notification?.permission !== "default";
  tell.onclick = async () => {
    if (await Notification.requestPermission() === "granted") set("notice", data.told);
    tell.hidden = 1;
  };

  // The browser of another app has cookies of its own: its visitors are offered their own browser, not another device.
  data.app && navigator.userAgent.match(data.inApp) && set("move", data.app);

  setInterval(ago, 1e3);
  ago();
  check();
  advance(+data.joined, bar.position < 0 ? -1 : bar.value);
  // The Refresh header is for visitors without a script: stopping the finished load takes it back, and nothing reloads.
  addEventListener("load", () => setTimeout(() => { stop(); plan(+data.next); }));
  const catchUp = () => !document.hidden && (failed || now() >= due) && update();
  for (const moment of ["online", "pageshow", "visibilitychange"]) addEventListener(moment, catchUp);
})();
