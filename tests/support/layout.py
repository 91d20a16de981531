"""Finds text on a page that is cut off, lies over other text, or is squeezed into a column."""

from playwright.sync_api import Page

PATIENCE = 10

FAULTS = """() => {
  const faults = [];
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) faults.push(`the page is ${wide} px wider than the window`);
  const isOpen = (one) => one.checkVisibility({opacityProperty: true, visibilityProperty: true,
    contentVisibilityAuto: true}) && !one.closest("[aria-hidden=true], .visually-hidden, iframe") && !isSqueezed(one);
  // Kept for screen readers alone.
  const isSqueezed = (one) => one && one !== document.body &&
    ((one.offsetWidth <= 1 && one.offsetHeight <= 1 && getComputedStyle(one).position === "absolute") || isSqueezed(one.parentElement));
  // What floats above the page, or scrolls in a frame of its own, meets only its own kind.
  const layer = (one) => {
    for (let at = one; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (["fixed", "sticky"].includes(style.position) || at.matches("dialog, [popover]")) return at;
      if (/auto|scroll/.test(style.overflowX + style.overflowY)) return at;
    }
    return document.body;
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, at = node.parentElement;
    const words = node.textContent.trim().replace(/\\s+/g, " ");
    if (!words || at.closest("script, style, template, noscript, option, textarea") || !isOpen(at)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((one) => one.width > 1 && one.height > 1);
    if (!rects.length) continue;
    const lines = new Set(rects.map((one) => Math.round(one.top))).size;
    const widest = Math.max(...rects.map((one) => one.width));
    if (lines > 4 && widest < 70 && words.length > 20)
      faults.push(`${lines} lines in ${Math.round(widest)} px: "${words.slice(0, 60)}"`);
    for (let box = at; box && box !== document.body; box = box.parentElement) {
      const style = getComputedStyle(box), frame = box.getBoundingClientRect();
      if (style.clipPath !== "none" || /auto|scroll/.test(style.overflowX + style.overflowY)) break;
      const cut = (over) => /hidden|clip/.test(over);
      const right = Math.max(...rects.map((one) => one.right)), left = Math.min(...rects.map((one) => one.left));
      const bottom = Math.max(...rects.map((one) => one.bottom)), top = Math.min(...rects.map((one) => one.top));
      if (!box.closest("svg") || box.tagName === "svg")
        if ((cut(style.overflowX) && (right > frame.right + 2 || left < frame.left - 2)) ||
            (cut(style.overflowY) && (bottom > frame.bottom + 4 || top < frame.top - 4))) {
          faults.push(`cut off: "${words.slice(0, 60)}" in ${box.tagName}.${box.className.baseVal ?? box.className}`);
          break;
        }
    }
    texts.push({words, at, rects, layer: layer(at)});
  }
  for (let one = 0; one < texts.length; one++)
    for (let other = one + 1; other < texts.length; other++) {
      const [a, b] = [texts[one], texts[other]];
      if (a.layer !== b.layer) continue;
      const over = a.rects.some((p) => b.rects.some((q) =>
        Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2 &&
        Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > Math.min(p.height, q.height) * 0.4));
      if (over) faults.push(`"${a.words.slice(0, 40)}" lies over "${b.words.slice(0, 40)}"`);
    }
  return faults;
}"""


def layout_faults(page: Page) -> list[str]:
    """In one sentence each, with the words concerned; those that last."""
    found: list[str] = page.evaluate(FAULTS)
    for _ in range(PATIENCE):
        if not found:
            break
        page.wait_for_timeout(200)  # charts follow the size of the window a moment later
        found = page.evaluate(FAULTS)
    return found
