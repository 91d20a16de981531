// The preview follows the message, or the page, while it is typed, and the page that is chosen.
const form = document.getElementById("status-form");
const show = document.getElementById("status-show");
const which = document.getElementById("status-which");
const frame = document.querySelector(".status-frame");
const message = form?.elements.text;
let coming;

function draw() {
  if (form && show && (!message || message.value.trim())) form.requestSubmit(show);
  else if (frame) frame.src = which ? which.selectedOptions[0].dataset.src : frame.src;
}

// A box for all leaves nothing to choose by name.
function choose() {
  for (const box of form.querySelectorAll("fieldset")) {
    const every = box.querySelector('input[value="*"]');
    for (const input of box.querySelectorAll(".status-names input")) input.disabled = every.checked;
  }
}

if (form && show) {
  form.addEventListener("input", () => {
    if (!message) choose();
    window.clearTimeout(coming);
    coming = window.setTimeout(draw, 600);
  });
}
if (form && !message) {
  choose();
  draw();
}
which?.addEventListener("change", draw);
