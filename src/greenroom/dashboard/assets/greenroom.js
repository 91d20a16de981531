// Small conveniences. Every page works without them.

const base = document.querySelector('meta[name="base-path"]').content;
const year = 31536000;

// The viewer's time zone, unless another one was chosen.
if (!/(^|; )greenroom_tz=/.test(document.cookie)) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  document.cookie = `greenroom_tz=${encodeURIComponent(zone)}; path=${base}; max-age=${year}; samesite=lax`;
}

// `/` goes to the search box, Escape leaves it.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const search = document.getElementById("search");
  if (event.key === "/" && !typing && search && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Escape" && event.target === search) {
    search.blur();
    document.getElementById("search-found").replaceChildren();
  }
});

// Buttons with data-confirm-click ask first: one of several in a form.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-confirm-click]");
  if (button && !window.confirm(button.dataset.confirmClick)) event.preventDefault();
});

// Forms with data-confirm ask first; each form is sent once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) {
    event.preventDefault();
    return;
  }
  if (form.method === "post" && !form.hasAttribute("hx-post") && !event.submitter?.formTarget) {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
    window.setTimeout(() => delete form.dataset.sent, 4000);
  }
});
window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

// Writes of htmx carry the session's token.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf-token"]').content;
});

// On a phone the menu is folded up until it is wanted.
const narrow = window.matchMedia("(max-width: 60rem)");
const sidebar = document.querySelector(".sidebar");
const fold = () => sidebar && (sidebar.open = !narrow.matches);
fold();
narrow.addEventListener("change", fold);

// Tabs that do not fit scroll: the one that is open is in view.
const tab = document.querySelector(".tabs [aria-current]");
if (tab) tab.closest(".tabs").scrollLeft = tab.offsetLeft - (tab.closest(".tabs").clientWidth - tab.offsetWidth) / 2;

// A text file put into a field, so that it is sent, checked and shown like text that was typed.
for (const chooser of document.querySelectorAll("[data-file-into]")) {
  const [input, problem] = [chooser.querySelector("input"), chooser.querySelector(".problem")];
  const most = Number(chooser.dataset.fileMax);
  chooser.hidden = false;
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    const large = file.size > 4 * most;
    const text = large ? "" : await file.text();
    const wrong = large || text.length > most ? `The file is too long: at most ${most} characters.` : text.includes("\ufffd") ? "The file is not text in UTF-8." : "";
    problem.textContent = wrong;
    problem.hidden = !wrong;
    if (!wrong) {
      const field = document.getElementById(chooser.dataset.fileInto);
      field.value = text.replace(/^\ufeff/, "");
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    input.value = "";
  });
}

// After a refused form the first wrong field has the focus.
document.querySelector(".has-problem input, .has-problem textarea, .has-problem select")?.focus();
