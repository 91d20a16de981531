// Shows the messages to a visitor who wants to be called. After the last one nothing of it stays in the browser.
self.onpush = event => {
  const said = event.data.json(), place = self.registration;
  event.waitUntil((async () => {
    await place.showNotification(said.title, { body: said.body, tag: "greenroom", renotify: true, requireInteraction: said.last, data: said.url, lang: said.lang, dir: said.dir });
    if (said.last) {
      const known = await place.pushManager.getSubscription();
      if (known) await known.unsubscribe();
    }
  })());
};

self.onnotificationclick = event => {
  event.notification.close();
  event.waitUntil(clients.openWindow(event.notification.data));
};
