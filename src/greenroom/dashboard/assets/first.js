// Runs before the page is drawn: the theme, and the one policy through which scripts may write HTML.
(function () {
  "use strict";
  var root = document.documentElement;
  root.setAttribute("data-scripts", ""); // styles keep room for what scripts will show, so that nothing moves when they do
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function follow() {
    if (root.dataset.theme === "auto") root.setAttribute("data-bs-theme", dark.matches ? "dark" : "light");
  }
  follow();
  dark.addEventListener("change", follow);

  // Our own server escapes everything. The policy refuses what could run a script all the same, and any address of a script elsewhere.
  var hostile = /<\s*(script|iframe|object|embed|base|link|meta)\b|[\s"'\/]on[a-z]+\s*=|javascript:/i;
  if (window.trustedTypes) {
    window.trustedTypes.createPolicy("default", {
      createHTML: function (text) {
        var page = /<(!doctype|html)\b/i.test(text.slice(0, 200));
        if (!page && hostile.test(text)) throw new TypeError("this HTML could run a script");
        return text;
      },
      createScriptURL: function (url) {
        if (new URL(url, location.href).origin !== location.origin) throw new TypeError("scripts come from here only");
        return url;
      },
    });
  }
})();
