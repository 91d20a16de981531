// The form of a rule: rows that write the expression as they change, and an editor that marks what is wrong. Without it the buttons do.

const form = document.querySelector(".rule-form");

function begin(form) {
  const text = form.querySelector("#expression");
  const told = form.querySelector("#expression-problems");
  const rows = form.querySelector("#rows");
  const editor = window.codemirror ? edit(text) : null;
  let last = 0;

  async function check(of) {
    const turn = ++last;
    const body = new URLSearchParams(new FormData(form));
    body.set("of", of);
    const answer = await fetch(form.dataset.check, { method: "POST", body, headers: { Accept: "application/json" } });
    if (!answer.ok || turn !== last) return;
    const found = await answer.json();
    if (of === "rows" && found.expression !== null) put(found.expression);
    show(of === "rows" && found.expression === null ? found.problems : found.faults.map((fault) => fault.message));
    if (editor) mark(editor, found.faults);
  }

  function put(expression) {
    text.value = expression;
    if (editor && editor.state.doc.toString() !== expression)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: expression }, annotations: ours.of(true) });
  }

  function show(messages) {
    told.replaceChildren(...messages.map((message) => Object.assign(document.createElement("p"), { className: "problem", textContent: message })));
  }

  // Rows

  const later = debounced(() => check("rows"), 250);

  rows?.addEventListener("input", (event) => {
    if (event.target.dataset.part === "field") fit(event.target.closest("[data-row]"));
    if (event.target.dataset.part === "operator") fitValue(event.target.closest("[data-row]"));
    if (event.target.dataset.part === "list") event.target.closest("[data-row]").querySelector("[data-part=value]").value = event.target.value;
    later();
  });

  rows?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const group = button.closest("[data-group]");
    if (button.matches("[data-drop]") && drop(button.closest("[data-row]"), group)) event.preventDefault();
    else if (button.matches("[data-write]")) event.preventDefault();
    else return;
    later();
  });

  function drop(row, group) {
    if (group.querySelectorAll("[data-row]").length < 2) return false; // the server takes a group away
    const joined = row.previousElementSibling?.matches(".joined") ? row.previousElementSibling : row.nextElementSibling;
    if (joined?.matches(".joined")) joined.remove();
    row.remove();
    group.querySelector("select")?.focus();
    return true;
  }

  function fit(row) {
    const chosen = row.querySelector("[data-part=field]").selectedOptions[0];
    const operator = row.querySelector("[data-part=operator]");
    const before = operator.value;
    const labels = operatorLabels();
    operator.replaceChildren(...chosen.dataset.operators.split(" , ").map((word) => new Option(labels.get(word) ?? word, word)));
    operator.value = [...operator.options].some((option) => option.value === before) ? before : operator.options[0].value;
    row.querySelector("[data-part=key]").hidden = !chosen.dataset.named;
    fitValue(row);
  }

  function fitValue(row) {
    const word = row.querySelector("[data-part=operator]").value;
    const value = row.querySelector("[data-part=value]");
    const list = row.querySelector("[data-part=list]");
    const named = word.endsWith("list") && list.options.length > 1;
    list.hidden = !named;
    if (named && value.value.trim() !== list.value) value.value = list.value = [...list.options].some((one) => one.value === value.value.trim()) ? value.value.trim() : "";
    value.hidden = named || word === "true" || word === "false";
    value.placeholder = word.endsWith("in") ? "value, one per line" : word.endsWith("list") ? "there is no list yet" : "value";
  }

  rows?.querySelectorAll("[data-row]").forEach(fitValue);

  // The editor

  function edit(area) {
    const { EditorView, EditorState, keymap, defaultKeymap, history, historyKeymap, autocompletion, completionKeymap, lintGutter, drawSelection } = window.codemirror;
    const words = [
      ...[...document.querySelectorAll("#words dt code")].map((code) => ({ label: code.textContent, type: "property", info: code.closest("div").querySelector("dd").textContent })),
      ...[...document.querySelectorAll("[data-function]")].map((code) => ({ label: code.textContent, type: "function", apply: `${code.textContent}(` })),
      ...["and", "or", "xor", "not", "in", "eq", "ne", "contains", "matches", "wildcard"].map((label) => ({ label, type: "keyword" })),
      ...(form.dataset.lists ? form.dataset.lists.split(" ").map((name) => ({ label: `$${name}`, type: "variable" })) : []),
    ];
    const complete = (context) => {
      const word = context.matchBefore(/[$\w.]+/);
      return word || context.explicit ? { from: word ? word.from : context.pos, options: words, validFor: /^[$\w.]*$/ } : null;
    };
    const checked = debounced(() => check("expression"), 400);
    // In a shadow tree the editor's style sheets are adopted: the page's policy forbids <style>.
    const host = area.parentElement.insertBefore(document.createElement("div"), area);
    const root = host.attachShadow({ mode: "open" });
    const made = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: area.value,
        extensions: [
          history(), drawSelection(), lintGutter(), autocompletion({ override: [complete], icons: false }), language(), EditorView.lineWrapping,
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "Expression" }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            area.value = update.state.doc.toString();
            if (!update.transactions.some((one) => one.annotation(ours))) checked();
          }),
        ],
      }),
    });
    area.hidden = true;
    area.form.querySelector('label[for="expression"]').addEventListener("click", () => made.focus());
    return made;
  }
}

const looks = {
  "&": { border: "1px solid var(--line)", borderRadius: "8px", background: "var(--card)", color: "var(--ink)", minHeight: "5.5rem", fontSize: ".92rem" },
  "&.cm-focused": { outline: "3px solid var(--blue)", outlineOffset: "1px" },
  ".cm-content": { caretColor: "var(--ink)", padding: ".5rem 0", fontFamily: 'ui-monospace, Menlo, "Liberation Mono", monospace' },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { background: "transparent", border: "0" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--blue-soft) !important" },
  ".cm-tooltip": { background: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
};

const ours = window.codemirror?.Annotation.define();

function language() {
  const { EditorView, StreamLanguage, syntaxHighlighting, HighlightStyle, tags } = window.codemirror;
  const parser = {
    name: "rules",
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^r#*"[^]*?"#*|^"(\\.|[^"\\])*"?/)) return "string";
      if (stream.match(/^(and|or|xor|not|in|eq|ne|lt|le|gt|ge|contains|matches|strict|wildcard|true|false)\b/)) return "keyword";
      if (stream.match(/^\$[\w.]+/)) return "variableName";
      if (stream.match(/^[0-9][\w.:/]*/)) return "number";
      if (stream.match(/^[A-Za-z_][\w.]*/)) return "propertyName";
      stream.next();
      return "operator";
    },
  };
  const style = HighlightStyle.define([
    { tag: tags.keyword, color: "var(--blue)", fontWeight: 600 }, { tag: tags.string, color: "var(--green)" },
    { tag: tags.number, color: "var(--yellow)" }, { tag: tags.variableName, color: "var(--red)" },
  ]);
  return [StreamLanguage.define(parser), syntaxHighlighting(style), EditorView.theme(looks)];
}

function mark(editor, faults) {
  const length = editor.state.doc.length;
  const found = faults.map((fault) => ({ from: Math.min(fault.from, length), to: Math.min(fault.to, length), severity: "error", message: fault.message }));
  editor.dispatch(window.codemirror.setDiagnostics(editor.state, found));
}

function operatorLabels() {
  const labels = new Map();
  for (const option of document.querySelector("#operator-labels")?.content.querySelectorAll("option") ?? []) labels.set(option.value, option.textContent);
  return labels;
}

function debounced(run, wait) {
  let timer = 0;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(run, wait);
  };
}

if (form) begin(form);
