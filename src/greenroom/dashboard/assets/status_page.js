// The preview follows the message while it is typed, and the page that is chosen.
const form = document.getElementById("status-form");
const show = document.getElementById("status-show");
const which = document.getElementById("status-which");
const frame = document.querySelector(".status-frame");
let coming;

function draw() {
  if (form?.elements.text.value.trim()) form.requestSubmit(show);
  else if (frame) frame.src = which ? which.selectedOptions[0].dataset.src : frame.src;
}

if (form && show) {
  form.addEventListener("input", () => {
    window.clearTimeout(coming);
    coming = window.setTimeout(draw, 600);
  });
}
which?.addEventListener("change", draw);
