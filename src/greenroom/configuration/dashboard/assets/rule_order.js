// Rules are put in order by dragging a row by its handle; the buttons beside it do the same with the keyboard.
const body = document.querySelector("[data-order]");
let dragged = null;

function rows() {
  return [...body.querySelectorAll("tr")];
}

for (const row of body ? rows() : []) {
  const handle = row.querySelector(".drag-handle");
  if (!handle) continue; // the only rule
  handle.addEventListener("mousedown", () => (row.draggable = true));
  handle.addEventListener("mouseup", () => (row.draggable = false));
  row.addEventListener("dragstart", (event) => {
    dragged = row;
    row.classList.add("is-dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", "");
  });
  row.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault();
    const after = event.clientY > row.getBoundingClientRect().top + row.offsetHeight / 2;
    if (row !== dragged) row[after ? "after" : "before"](dragged);
  });
  row.addEventListener("drop", (event) => event.preventDefault());
  row.addEventListener("dragend", () => {
    row.draggable = false;
    row.classList.remove("is-dragged");
    dragged = null;
    const place = rows().indexOf(row) + 1;
    if (place === Number(row.dataset.place)) return;
    const form = row.querySelector("form");
    form.elements.place.value = place;
    form.requestSubmit(form.querySelector('[value="to"]'));
  });
}
