// On the page after a form. It is sent once, when the page would load itself; one that was not kept is never repeated, as a reload would.
(() => {
  const form = document.getElementById("kept");
  let sent;
  addEventListener("turn", event => {
    event.preventDefault();
    if (!form) location.replace(location.href.split("#")[0]);
    else if (!sent) {
      sent = 1;
      // A field may be called submit.
      HTMLFormElement.prototype.submit.call(form);
    }
  });
})();
