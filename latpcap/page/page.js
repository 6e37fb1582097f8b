"use strict";
// Sorts tables by a column, finds rows, zooms pictures and shows what stands behind a mark. Reads the page's own
// texts and numbers, and writes only through textContent and attributes: nothing of a capture becomes markup.
(() => {
  const key = (row, n) => {
    const cell = row.cells[n];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const sort = (table, n, up) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => [key(row, n), row]);
    rows.sort(([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
    if (!up) rows.reverse();
    for (const [, row] of rows) body.appendChild(row);
  };
  for (const head of document.querySelectorAll("table.sorts th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(head.closest("table"), head.cellIndex, up);
    });
  }
  for (const box of document.querySelectorAll("input[type=search]")) {
    const rows = document.getElementById(box.dataset.table).tBodies[0].rows;
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }
  for (const svg of document.querySelectorAll("svg.zooms")) {
    const whole = svg.viewBox.baseVal;
    const [x0, y0, w0, h0] = [whole.x, whole.y, whole.width, whole.height];
    let [x, y, scale] = [x0, y0, 1];
    const show = () => {
      x = Math.min(Math.max(x, x0), x0 + w0 - w0 / scale);
      y = Math.min(Math.max(y, y0), y0 + h0 - h0 / scale);
      svg.setAttribute("viewBox", `${x} ${y} ${w0 / scale} ${h0 / scale}`);
    };
    const zoom = (by, px, py) => {
      const next = Math.min(Math.max(scale * by, 1), 40);
      x = px - ((px - x) * scale) / next;
      y = py - ((py - y) * scale) / next;
      scale = next;
      show();
    };
    const place = (event) => {
      const box = svg.getBoundingClientRect();
      return [x + ((event.clientX - box.left) / box.width) * (w0 / scale),
              y + ((event.clientY - box.top) / box.height) * (h0 / scale)];
    };
    const bar = document.createElement("div");
    bar.className = "zoom";
    for (const [text, label, act] of [
      ["+", "zoom in", () => zoom(1.6, x + w0 / scale / 2, y + h0 / scale / 2)],
      ["\u2212", "zoom out", () => zoom(1 / 1.6, x + w0 / scale / 2, y + h0 / scale / 2)],
      ["1:1", "show all", () => { scale = 1; show(); }],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", act);
      bar.appendChild(button);
    }
    svg.parentNode.before(bar);
    svg.addEventListener("dblclick", (event) => zoom(2, ...place(event)));
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, ...place(event));
    }, { passive: false });
    let from = null;
    svg.addEventListener("pointerdown", (event) => { if (scale > 1) from = [event.clientX, event.clientY]; });
    window.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const box = svg.getBoundingClientRect();
      x -= ((event.clientX - from[0]) / box.width) * (w0 / scale);
      y -= ((event.clientY - from[1]) / box.height) * (h0 / scale);
      from = [event.clientX, event.clientY];
      show();
    });
  }
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.appendChild(tip);
  const tell = (event) => {
    const mark = event.target.closest("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
  };
  document.addEventListener("pointermove", tell);
  document.addEventListener("pointerdown", tell);
})();
