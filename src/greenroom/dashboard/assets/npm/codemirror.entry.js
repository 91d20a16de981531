// CodeMirror 6, as window.codemirror.
export * from "@codemirror/state";
export * from "@codemirror/view";
export * from "@codemirror/commands";
export * from "@codemirror/language";
export * from "@codemirror/autocomplete";
export * from "@codemirror/lint";
export * from "@codemirror/search";
export { html } from "@codemirror/lang-html";
export { tags } from "@lezer/highlight";
