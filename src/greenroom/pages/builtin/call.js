// The page on which a visitor in line asks to be called.
(() => {
  const find = id => document.getElementById(id), ask = find("ask"), notice = find("notice"), push = find("push"), mail = find("mail"), stop = find("stop");
  const scope = location.pathname + "?greenroom=call", bytes = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), sign => sign.charCodeAt(0));

  const say = text => {
    notice.hidden = !text;
    notice.textContent = text;
  };

  const send = async left => {
    const answer = await fetch("?greenroom=call", { method: "POST", headers: { Accept: "application/json", "Greenroom-Call": JSON.stringify(left) }, cache: "no-store" });
    const call = (await answer.json()).greenroom.call;
    say(call.text);
    stop.hidden = call.state !== "on" && call.state !== "check";
  };

  const pressed = work => async event => {
    event.preventDefault();
    try {
      await work();
    } catch {
      say(ask.dataset.invalid);
    }
  };

  const travel = () => +find("travel").value;

  ask.hidden = false;
  find("plain").hidden = true;
  if (mail) mail.onsubmit = pressed(() => send({ channel: "email", to: find("to").value, travel: travel() }));
  stop.onclick = pressed(() => send({}));
  if (push && window.PushManager && navigator.serviceWorker) {
    push.hidden = false;
    push.onclick = pressed(async () => {
      if (await Notification.requestPermission() !== "granted") throw 0;
      // A scope of its own: the site's worker stays what it is.
      const worker = await navigator.serviceWorker.register("?greenroom=call.worker", { scope: scope });
      while (!worker.active) await new Promise(done => setTimeout(done, 50));
      const options = { userVisibleOnly: true, applicationServerKey: bytes(ask.dataset.key) };
      const known = await worker.pushManager.getSubscription();
      if (known) await known.unsubscribe();
      const found = (await worker.pushManager.subscribe(options)).toJSON();
      await send({ channel: "push", to: found.endpoint, travel: travel(), p256dh: found.keys.p256dh, auth: found.keys.auth, vapid: ask.dataset.vapid });
    });
  }
})();
