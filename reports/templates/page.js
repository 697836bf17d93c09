"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Sort: a heading becomes a button; a table's bodies move whole, so that a finding keeps its detail.
  const number = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : null);
  const key = (row, place) => {
    const cell = row.cells[place];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return [number(text), text];
  };
  const order = new Intl.Collator("en", { numeric: true });
  const compare = (one, other) => {
    if (one[0] !== null && other[0] !== null) return one[0] - other[0];
    if (one[0] !== null || other[0] !== null) return one[0] !== null ? -1 : 1;
    return order.compare(one[1], other[1]);
  };
  const sort = (table, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    all("th[aria-sort]", table).forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const groups = table.tBodies.length > 1 || table.querySelector("tbody.finding");
    const parts = groups ? [...table.tBodies] : [...table.tBodies[0].rows];
    const first = (part) => (groups ? part.rows[0] : part);
    const keyed = parts.map((part) => [key(first(part), heading.cellIndex), part]);
    keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    const home = groups ? table : table.tBodies[0];
    keyed.forEach(([, part]) => home.append(part));
  };
  all("table.sortable").forEach((table) => {
    all("thead th", table).forEach((heading) => {
      const button = document.createElement("button");
      button.type = "button";
      heading.dataset.title = heading.textContent;
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    });
  });

  // Open and close findings.
  const open = (body, state) => {
    body.classList.toggle("opened", state);
    body.querySelector(".open").setAttribute("aria-expanded", String(state));
  };
  const bodies = all("tbody.finding");
  bodies.forEach((body) => {
    open(body, false);
    body.querySelector(".open").addEventListener("click", () => open(body, !body.classList.contains("opened")));
  });

  // Filter findings.
  const wanted = ["by-category", "by-result", "by-node"].map((id) => document.getElementById(id));
  const filter = () => {
    const [category, result, node] = wanted.map((field) => field.value.trim().toLowerCase());
    let count = 0;
    bodies.forEach((body) => {
      const fits =
        (!category || body.dataset.category.split(" ").includes(category)) &&
        (!result || body.dataset.result === result) &&
        (!node || body.dataset.words.toLowerCase().includes(node));
      body.classList.toggle("filtered", !fits);
      count += fits;
    });
    document.getElementById("shown").textContent = `${count} of ${bodies.length} shown`;
  };
  if (wanted.every(Boolean)) {
    wanted.forEach((field) => field.addEventListener("input", filter));
    filter();
  }

  // Copy.
  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  all("button.copy").forEach((button) => {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        select(source);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => (button.textContent = "Copy"), 2500);
    });
  });

  // The pair matrix: 16 bits a pair, 0 is not measured. Cividis, dark for slow.
  const cividis = [[0, 34, 78], [66, 78, 108], [125, 124, 120], [186, 174, 108], [254, 232, 56]];
  const colour = (share) => {
    const place = Math.min(share * 4, 3.999);
    const from = Math.floor(place);
    return cividis[from].map((part, at) => part + (cividis[from + 1][at] - part) * (place - from));
  };
  all("canvas.matrix").forEach((canvas) => {
    const names = canvas.dataset.names.split(" ");
    const bytes = Uint8Array.from(atob(canvas.dataset.values), (one) => one.charCodeAt(0));
    const value = (row, column) => new DataView(bytes.buffer).getUint16(2 * (row * names.length + column), true);
    const side = Math.max(1, Math.min(40, Math.floor(640 / names.length)));
    canvas.width = canvas.height = side * names.length;
    const draw = canvas.getContext("2d");
    names.forEach((_, row) =>
      names.forEach((_, column) => {
        const found = value(row, column);
        draw.fillStyle = found ? `rgb(${colour(found / 65535)})` : "#fff";
        draw.fillRect(column * side, row * side, side, side);
      }),
    );
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const at = (place, size) => Math.min(names.length - 1, Math.max(0, Math.floor((place / size) * names.length)));
      const row = at(event.clientY - box.top, box.height);
      const column = at(event.clientX - box.left, box.width);
      const found = value(row, column);
      const shown = found ? `${((found / 65535) * canvas.dataset.top).toPrecision(3)} ${canvas.dataset.unit}` : "not measured";
      canvas.dataset.tip = row === column ? names[row] : `${names[row]}~${names[column]}: ${shown}`;
    });
  });

  // Values under the pointer.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  });

  // Only a box that scrolls is a stop for the keyboard.
  const boxes = all(".scroll");
  const stops = () =>
    boxes.forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);
  stops();

  // What is folded opens on paper.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((each) => (each.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((each) => (each.open = false)));
})();
