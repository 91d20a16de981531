// Keeps the waiting page current without reloading it. The server words everything; this only puts the words in place.
(() => {
  "use strict";
  const at = id => document.getElementById(id), room = at("room"), data = room.dataset;
  const words = ["heading", "lead", "label", "hero", "position", "ahead", "wait", "chance", "waiting", "next"];
  let timer, due = Infinity, failures = 0, busy = false, over = false, said = "", saidAt = 0, seen = {};

  const set = (id, text) => {
    const element = at(id), row = element.closest("[data-row]") || element;
    if (element.textContent !== text) element.textContent = text;
    row.hidden = !text;
  };
  const clock = () => {
    const element = at("updated"), time = new Date(element.dateTime);
    if (!isNaN(time)) element.textContent = time.toLocaleTimeString();
  };

  // Not chatty: a change of state is spoken at once, progress at most once a minute.
  const say = (text, urgent) => {
    if (text === said || (!urgent && Date.now() - saidAt < 6e4)) return;
    said = text;
    saidAt = Date.now();
    at("say").textContent = text;
  };
  const notice = text => { at("notice").textContent = text; };

  // The bar remembers how far it has been for this ticket, in this tab, and never goes back.
  const bar = (joined, value) => {
    try { seen = JSON.parse(sessionStorage.greenroom) || seen; } catch {}
    if (seen.joined !== joined) seen = { joined, value: -1 };
    if (value > seen.value) seen.value = value;
    if (seen.value >= 0) at("bar").value = seen.value;
    else at("bar").removeAttribute("value");
    try { sessionStorage.greenroom = JSON.stringify(seen); } catch {}
  };

  const plan = seconds => {
    clearTimeout(timer);
    due = seconds > 0 ? Date.now() + seconds * 1e3 : Infinity;
    if (seconds > 0) timer = setTimeout(update, seconds * 1e3);
  };

  const show = news => {
    const mine = news.greenroom, text = mine.words, changed = data.view !== text.view;
    data.view = text.view;
    document.title = text.title;
    for (const id of words) set(id, text[id]);
    at("way").hidden = !text.bar;
    at("keep").hidden = at("leave").hidden = !text.stays;
    at("again").hidden = text.stays;
    at("updated").dateTime = news.cfWaitingRoom.lastUpdated;
    clock();
    bar(Date.parse(mine.joinedAt) || 0, mine.progressKnown ? mine.progress : -1);
    offer();
    say([changed ? text.heading : "", text.label, text.hero, text.wait].filter(Boolean).join(". "), changed);
    plan(mine.nextTrySeconds);
  };

  // Let in: say so where it is seen, and load the page once, so that the origin sees one page load. A visitor who is looking
  // elsewhere gets half a minute of "It is your turn" in the tab first: the session has begun, so not longer.
  const enter = () => {
    over = true;
    clearTimeout(timer);
    document.title = "● " + data.turn;
    set("heading", data.turn);
    set("lead", data.turnLead);
    at("bar").value = 100;
    say(data.turn, true);
    try { if (Notification.permission === "granted") new Notification(data.turn, { body: location.host, tag: "greenroom" }).onclick = () => focus(); } catch {}
    const go = () => location.reload();
    if (!document.hidden) return setTimeout(go, 600);
    document.addEventListener("visibilitychange", go, { once: true });
    setTimeout(go, 3e4);
  };

  const update = async () => {
    if (busy || over) return;
    busy = true;
    try {
      const answer = await fetch(location.href, {
        headers: { "Greenroom-Update": "1", Accept: "application/json" }, cache: "no-store", credentials: "same-origin",
        signal: AbortSignal.timeout && AbortSignal.timeout(2e4)
      });
      const json = /json/.test(answer.headers.get("Content-Type"));
      const news = json ? await answer.json() : {};
      if (over) return;
      const held = news.cfWaitingRoom;
      if (!held && !answer.ok) throw answer.status;
      failures = 0;
      notice("");
      if (held && held.inWaitingRoom) show(news);
      else enter();
    } catch {
      if (over) return;
      const wait = Math.ceil(Math.min(60, 2 ** ++failures) * (.75 + Math.random() / 2));
      notice(data.offline.replace("{n}", wait));
      plan(wait);
    } finally {
      busy = false;
    }
  };
  const catchUp = () => { if (!document.hidden && Date.now() >= due) update(); };

  const left = () => {
    over = true;
    clearTimeout(timer);
    document.title = data.left;
    for (const id of words) set(id, "");
    set("heading", data.left);
    set("lead", data.leftLead);
    set("again", data.join);
    for (const element of room.querySelectorAll("#way, dl, h2, #keep, #tell, #leave")) element.hidden = true;
    notice("");
    say(data.left, true);
    at("again").focus();
  };
  at("leave").addEventListener("submit", async event => {
    event.preventDefault();
    try {
      const answer = await fetch(location.href, { method: "POST", headers: { "Greenroom-Update": "leave" }, credentials: "same-origin" });
      if (!(await answer.json()).greenroom.left) throw 0;
      left();
    } catch {
      event.target.submit();
    }
  });

  const tell = at("tell");
  const offer = () => { tell.hidden = over || at("leave").hidden || !window.Notification || !isSecureContext || Notification.permission !== "default"; };
  tell.addEventListener("click", async () => {
    if (await Notification.requestPermission() !== "granted") return offer();
    tell.textContent = data.told;
    tell.disabled = true;
  });

  clock();
  bar(+data.joined, at("bar").hasAttribute("value") ? at("bar").value : -1);
  offer();
  // The Refresh header is for visitors without a script: stopping the finished load takes it back, and nothing reloads.
  addEventListener("load", () => setTimeout(() => { stop(); plan(+data.next); }));
  addEventListener("online", () => { if (failures) update(); });
  addEventListener("pageshow", catchUp);
  document.addEventListener("visibilitychange", catchUp);
})();
