  // The table of the line is the same for everybody; a visitor finds the own place in it by the time of arrival. Until its turn comes
  // the page then checks in once a minute; what happens between two check-ins is read from the table every ten seconds.
  let look = 1 / 0, open;
  mark = "+table";

  const sooner = seconds => { if (now() + seconds * 1e3 < due) plan(seconds); };

  // People ahead and seconds to wait, between the two nearest knots; nothing for an arrival that the table does not know yet.
  const place = (table, joined) => {
    const after = table.arrivedMs, i = after.findIndex(ms => ms + table.fromMs >= joined);
    if (i < 1) return i ? 0 : [table.ahead[0], table.waitSeconds[0]];
    const part = (joined - table.fromMs - after[i - 1]) / (after[i] - after[i - 1]);
    return [table.ahead, table.waitSeconds].map(row => row[i - 1] < 0 || row[i] < 0 ? -1 : row[i - 1] + part * (row[i] - row[i - 1]));
  };

  const find = table => {
    const joined = seen.joined, found = place(table, joined), waited = (table.madeMs - joined) / 1e3;
    if (table.checkInUpToMs >= joined) sooner(Math.random() * table.spreadSeconds);
    // Closed, or open again: the words for that come with a check-in.
    if (open !== undefined && open !== table.open) sooner(Math.random() * 20);
    open = table.open;
    if (!found) return;
    const id = at("position").textContent ? "position" : "hero";
    const number = value => new Intl.NumberFormat(document.documentElement.lang, { useGrouping: data.grouping }).format(value);
    shown = Math.min(shown, Math.round(found[0]) + 1);
    document.title = document.title.replace(at(id).textContent, number(shown));
    set(id, number(shown));
    set("ahead", number(shown - 1));
    came = now();
    ago();
    if (found[1] >= 0) advance(joined, Math.min(99, 100 * waited / (waited + found[1]) | 0));
  };

  const read = async () => {
    let pause = 10;
    look = 1 / 0;
    // A check-in that comes as soon knows more. Views without a number have nothing to read.
    if (seen.joined && shown && !over && !busy && due > now() + 1e4) {
      try {
        const answer = await fetch(data.table, { credentials: "omit", referrerPolicy: "no-referrer", signal: AbortSignal.timeout?.(1e4) });
        if (answer.status < 429) {
          const table = (await answer.json().catch(() => 0)).greenroomLine;
          if (table) {
            find(table);
            pause = table.nextSeconds;
          } else {
            // There is no table any more: as without one.
            mark = "";
            sooner(Math.random() * 20);
            return;
          }
        }
      } catch {}
    }
    pause *= 900 + Math.random() * 200;
    look = now() + pause;
    setTimeout(() => look < now() + 50 && read(), pause);
    bell?.postMessage(pause);
  };
  bell?.addEventListener("message", () => { if (look < now() + 50) read(); });
  setTimeout(read, 5e3 + Math.random() * 1e4);
