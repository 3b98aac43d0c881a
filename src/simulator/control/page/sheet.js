// Sheets above the page: the browser keeps the focus inside, and its back button closes them.

import { byId } from "./dom.js";

/** Opens the sheet by its button; Escape, its cross, a tap beside it and the way back close it. */
export function sheet(id, opened = () => {}) {
  const box = byId(id);
  byId(`${id}-open`).addEventListener("click", () => {
    history.pushState({ sheet: id }, "");
    box.showModal();
    opened();
  });
  byId(`${id}-close`).addEventListener("click", () => box.close());
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => { if (history.state?.sheet === id) history.back(); });
  addEventListener("popstate", () => { if (box.open && history.state?.sheet !== id) box.close(); });
}
