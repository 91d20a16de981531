// The form of the waiting page: its preview follows what is typed, and the editor marks what is wrong. Without it the button Show does.

const form = document.querySelector(".page-form");
const button = form.querySelector("#show-preview");
const template = form.querySelector("#template");
let turn = 0;
let frames = 0;

// A new frame for each preview: one that navigates would fill the browser's history. The old one stays until the new one has loaded.
// Each has a name of its own, because a frame keeps the name that it was made with.
function fresh() {
  const old = form.querySelector("iframe:not(.coming)");
  form.querySelectorAll("iframe.coming").forEach((one) => one.remove());
  const coming = old.cloneNode();
  coming.removeAttribute("src");
  coming.name = `preview-${++frames}`;
  coming.classList.add("coming");
  if (button) button.formTarget = coming.name;
  coming.addEventListener("load", () => {
    if (!coming.isConnected || coming.dataset.asked !== "yes") return;
    coming.classList.remove("coming");
    old.remove();
  });
  old.after(coming);
  coming.dataset.asked = "yes";
  return coming;
}

// A chosen file becomes part of the form as text, so that the preview shows it and one Save is enough.
function chooseLogo() {
  const file = form.querySelector("#logo-file");
  if (!file) return;
  file.hidden = false;
  file.addEventListener("change", () => {
    const reader = new FileReader();
    reader.addEventListener("load", () => { form.elements.logo.value = reader.result; preview(); });
    if (file.files[0]) reader.readAsDataURL(file.files[0]);
    else { form.elements.logo.value = ""; preview(); }
  });
}

chooseLogo();

// A colour picker beside the field, which alone can be empty.
function pickColour() {
  const field = form.querySelector("#f-accent_color");
  if (!field) return;
  const picker = Object.assign(document.createElement("input"), { type: "color", className: "form-control form-control-color" });
  picker.setAttribute("aria-label", "Pick a colour");
  const follow = () => { if (/^#[0-9a-f]{6}$/i.test(field.value.trim())) picker.value = field.value.trim(); };
  picker.addEventListener("input", () => {
    field.value = picker.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", follow);
  field.after(picker);
  follow();
}

pickColour();

function preview() {
  const frame = fresh();
  if (button) return form.requestSubmit(button);
  const wanted = new URLSearchParams(["state", "language", "theme"].map((name) => [name, form.elements[name].value]));
  frame.src = `${frame.dataset.visitor}?${wanted}`;
}

async function check() {
  const now = ++turn;
  const answer = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" } });
  if (!answer.ok || now !== turn) return;
  const found = await answer.json();
  const faults = form.elements.own.checked ? found.faults : [];
  form.querySelector("#template-problems").replaceChildren(...faults.map((fault) => problem(`Line ${fault.line}: ${fault.message}`)));
  mark(faults);
  form.querySelector("#shades").replaceChildren(...found.shades.map(shade));
}

function problem(text) {
  return Object.assign(document.createElement("p"), { className: "problem", textContent: text });
}

function shade(one) {
  const line = Object.assign(document.createElement("p"), { className: "shade" });
  const said = document.createElement("span");
  said.textContent = `${one.theme === "light" ? "Light" : "Dark"}: ${one.color}, contrast ${one.ratio} : 1${one.changed ? ", adjusted so that it can be read" : ""}`;
  line.append(swatch(one), said);
  return line;
}

function swatch(one) {
  const made = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const picture = made("svg", { width: 44, height: 22, "aria-hidden": "true" });
  picture.append(made("rect", { width: 44, height: 22, rx: 4, fill: one.ground }), made("rect", { x: 4, y: 4, width: 36, height: 14, rx: 3, fill: one.color }));
  return picture;
}

// The editor

let editor = null;

function edit() {
  const cm = window.codemirror;
  const words = [...form.querySelectorAll("#variables dt code")].map((code) => ({
    label: code.textContent, type: "variable", info: code.closest("div").querySelector("dd").textContent,
  }));
  const complete = (context) => {
    const word = context.matchBefore(/\{\{[#^/{&]?\s*\w*/);
    if (!word) return null;
    return { from: word.from + word.text.search(/\w*$/), options: words, validFor: /^\w*$/ };
  };
  const completing = cm.EditorState.languageData.of(() => [{ autocomplete: complete }]);
  // In a shadow tree the editor's style sheets are adopted: the page's policy forbids <style>.
  const host = template.parentElement.insertBefore(document.createElement("div"), template);
  const root = host.attachShadow({ mode: "open" });
  editor = new cm.EditorView({
    parent: root,
    root,
    state: cm.EditorState.create({
      doc: template.value,
      extensions: [
        cm.lineNumbers(), cm.history(), cm.drawSelection(), cm.lintGutter(), cm.html(), completing, cm.autocompletion({ icons: false }), cm.EditorView.lineWrapping,
        cm.syntaxHighlighting(style()), cm.EditorView.theme(looks),
        cm.keymap.of([...cm.completionKeymap, ...cm.defaultKeymap, ...cm.historyKeymap, ...cm.searchKeymap]),
        cm.EditorView.contentAttributes.of({ "aria-label": "HTML", tabindex: "0" }),
        cm.EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          template.value = update.state.doc.toString();
          later();
        }),
      ],
    }),
  });
  template.hidden = true;
  form.querySelector('label[for="template"]').addEventListener("click", () => editor.focus());
}

function style() {
  const { HighlightStyle, tags } = window.codemirror;
  return HighlightStyle.define([
    { tag: tags.tagName, color: "var(--blue)" }, { tag: tags.attributeName, color: "var(--ink-2)" }, { tag: tags.string, color: "var(--green)" },
    { tag: tags.comment, color: "var(--ink-2)" }, { tag: tags.keyword, color: "var(--red)" }, { tag: tags.propertyName, color: "var(--blue)" },
  ]);
}

const looks = {
  "&": { border: "1px solid var(--line)", borderRadius: "8px", background: "var(--card)", color: "var(--ink)", fontSize: ".88rem" },
  "&.cm-focused": { outline: "3px solid var(--blue)", outlineOffset: "1px" },
  ".cm-scroller": { maxHeight: "32rem", overflow: "auto", fontFamily: 'ui-monospace, Menlo, "Liberation Mono", monospace' },
  ".cm-content": { caretColor: "var(--ink)", minHeight: "14rem" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { background: "var(--paper)", color: "var(--ink-2)", border: "0" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--blue-soft) !important" },
  ".cm-tooltip": { background: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
};

function mark(faults) {
  if (!editor) return;
  const lines = editor.state.doc;
  const found = faults.map((fault) => {
    const line = lines.line(Math.min(Math.max(1, fault.line), lines.lines));
    return { from: line.from, to: line.to, severity: "error", message: fault.message };
  });
  editor.dispatch(window.codemirror.setDiagnostics(editor.state, found));
}

// What is typed

let timer = 0;

function later() {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (button) check();
    preview();
  }, 400);
}

form.addEventListener("input", (event) => {
  if (event.target.name !== "size" && event.target.name !== "starter") later();
});
if (window.codemirror && template) edit();
// A file was chosen.
template?.addEventListener("change", () => {
  if (editor) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: template.value } });
  else later();
});
form.elements.theme.value = document.documentElement.dataset.bsTheme === "dark" ? "dark" : "light";
window.addEventListener("load", preview);
