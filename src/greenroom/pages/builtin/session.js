// For an application's own pages: warns before the session ends, and asks for more time at a press.
(() => {
  const address = document.currentScript.src.replace(/\.js$/, ""), make = name => box.appendChild(document.createElement(name));
  const box = document.createElement("div"), text = make("p"), more = make("button"), now = () => Date.now();
  let timer, ends = 0, warned;

  box.id = "greenroom-session";
  more.type = "button";
  // The region stands in the page before its text changes, or screen readers would not say the change.
  text.setAttribute("aria-live", "polite");
  box.style.cssText = "position:fixed;inset:auto 1rem 1rem auto;z-index:2147483647;max-width:20rem;padding:.75rem 1rem;border:1px solid;border-radius:.5rem;background:Canvas;color:CanvasText;font:1rem/1.4 system-ui,sans-serif";
  text.style.margin = 0;
  more.style.cssText = "font:inherit;margin-top:.5rem;min-height:2.75rem";

  const show = (said, button) => {
    box.style.clipPath = said ? "" : "inset(50%)";
    if (text.textContent !== said) text.textContent = said;
    more.hidden = !button;
  };

  const plan = seconds => {
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(seconds, 86400) * 1e3);
  };

  const look = async method => {
    try {
      const answer = await fetch(address, { method: method || "GET", headers: { Accept: "application/json" }, cache: "no-store" });
      const session = (await answer.json()).greenroom.session, words = session.words, left = session.secondsLeft;
      more.textContent = words.more;
      if (session.over) {
        show(words.over);
        return;
      }
      ends = now() + left * 1e3;
      const warns = left <= session.warnSeconds;
      if (method) show(session.all ? words.given : words.last);
      else if (warns) show(words.soon, 1);
      else if (warned) show("");
      warned = warns || method;
      plan(warns ? Math.min(left + 1, 30) : left - session.warnSeconds);
    } catch {
      plan(30);
    }
  };

  more.onclick = () => look("POST");
  // A page that slept, or that was out of sight while another one was used.
  document.addEventListener("visibilitychange", () => document.hidden || ends && look());
  show("");
  document.body.append(box);
  look();
})();
