"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const make = (name, told) => Object.assign(document.createElement(name), told);

  // Sort: a heading becomes a button; a table's bodies move whole, so that a finding keeps its detail.
  const key = (row, place) => {
    const cell = row.cells[place];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return [text ? Number(text) : NaN, text];
  };
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = ([one, text], [other, words]) => isNaN(one) - isNaN(other) || one - other || compare(text, words);
  const sort = (table, heading) => {
    const down = heading.ariaSort === "ascending";
    all("th", table.tHead).forEach((each) => (each.ariaSort = null));
    heading.ariaSort = down ? "descending" : "ascending";
    const whole = table.querySelector(".finding");
    const home = whole ? table : table.tBodies[0];
    const parts = [...(whole ? table.tBodies : home.rows)];
    const keyed = parts.map((part) => [key(whole ? part.rows[0] : part, heading.cellIndex), part]);
    keyed.sort(([a], [b]) => (down ? order(b, a) : order(a, b)));
    home.append(...keyed.map((each) => each[1]));
  };
  all("table.sortable").forEach((table) => {
    all("th", table.tHead).forEach((heading) => {
      const button = make("button", { type: "button", onclick: () => sort(table, heading) });
      heading.dataset.title = heading.textContent;
      button.append(...heading.childNodes);
      heading.append(button);
    });
  });

  // Open and close findings.
  const bodies = all("tbody.finding");
  bodies.forEach((body) => {
    const button = body.querySelector(".open");
    button.ariaExpanded = false;
    button.onclick = () => (button.ariaExpanded = body.classList.toggle("opened"));
  });

  // Filter findings.
  const wanted = ["by-category", "by-result", "by-node"].map(byId);
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
    byId("shown").textContent = `${count} of ${bodies.length} shown`;
  };
  if (wanted.every(Boolean)) {
    wanted.forEach((field) => (field.oninput = filter));
    filter();
  }

  // Copy.
  all("button.copy").forEach((button) => {
    button.onclick = async () => {
      const source = byId(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => (button.textContent = "Copy"), 2500);
    };
  });

  // The pair matrix: the upper triangle, 16 bits a pair, 0 is not measured. Pointer, touch and arrow keys name a square.
  const matrix = (figure) => {
    const canvas = figure.querySelector("canvas");
    const told = figure.querySelector(".pair");
    const { names, groups, marks, top, usual, alone, unit, values } = JSON.parse(canvas.dataset.pairs);
    const count = names.length;
    const shares = new Uint16Array(Uint8Array.from(atob(values), (one) => one.charCodeAt(0)).buffer);
    const share = (low, high) => (shares[low * count - (low * (low + 3)) / 2 + high - 1] / 65535) * top;
    const marked = new Map(marks.map(([row, column, ...rest]) => [`${row},${column}`, rest]));
    const colours = all(".scale rect", figure).map((each) => each.getAttribute("fill"));
    const draw = canvas.getContext("2d");
    const still = make("canvas");
    const pen = still.getContext("2d");
    const colour = (name) => getComputedStyle(figure).getPropertyValue(`--${name}`);
    let side, edge, size, dots, cell;

    const both = (row, column, job) => {
      for (const [x, y] of [[column, row], [row, column]]) job(edge + x * side, edge + y * side);
    };
    const label = (name, middle) => {
      pen.save();
      pen.textAlign = "right";
      pen.fillText(name, edge - 5, middle, edge - 5);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillText(name, 5 - edge, middle, edge - 5);
      pen.restore();
    };
    const labels = () => {
      const step = Math.ceil(13 / side);
      const byName = groups.length < 2 || step === 1;
      for (let at = 0; byName && at < count; at += step) label(names[at], edge + (at + 0.5) * side);
      let start = 0;
      for (const [name, length] of groups) {
        if (!byName && length * side > 12) label(name, edge + (start + length / 2) * side);
        if (start) pen.fillRect(edge, edge + start * side - 1, count * side, 2);
        if (start) pen.fillRect(edge + start * side - 1, edge, 2, count * side);
        start += length;
      }
    };
    const mark = ([row, column, kind, retests]) =>
      both(row, column, (x, y) => {
        const wide = Math.max(side - 2, 5);
        const to = (side - wide) / 2;
        const square = (tone, large, to = (side - large) / 2) => {
          pen.fillStyle = tone;
          pen.fillRect(x + to, y + to, large, large);
        };
        pen.strokeStyle = colour(kind === "slow" ? "bad" : "muted");
        pen.lineWidth = kind === "slow" ? 2 : 1;
        if (kind) pen.strokeRect(x + to, y + to, wide, wide);
        if (retests && side > 7) square("#000", 6), square("#fff", 4);
      });
    const hatch = (x, y) => {
      pen.beginPath();
      pen.moveTo(x, y + side - 1);
      pen.lineTo(x + side - 1, y);
      pen.stroke();
    };
    const paint = () => {
      const font = (draw.font = "11px sans-serif");
      const widths = [...names, ...groups.map((each) => each[0])].map((name) => draw.measureText(name).width);
      edge = Math.ceil(Math.min(120, Math.max(...widths))) + 8;
      side = Math.floor((canvas.parentElement.clientWidth - edge - 2) / count);
      side = Math.max(count > 128 ? 2 : 4, Math.min(36, side));
      size = edge + side * count + 2;
      dots = devicePixelRatio || 1;
      canvas.width = canvas.height = still.width = still.height = size * dots;
      canvas.style.width = `${size}px`;
      pen.scale(dots, dots);
      Object.assign(pen, { font, textBaseline: "middle", fillStyle: colour("blank"), strokeStyle: colour("hatch") });
      if (side < 6) pen.fillRect(edge, edge, side * count, side * count);
      const gap = +(side > 5);
      for (let row = 0; row < count; row++)
        for (let column = row + 1; column < count; column++) {
          const found = share(row, column);
          if (!found && !gap) continue;
          pen.fillStyle = found ? colours[Math.floor((found / top) * (colours.length - 1))] : colour("blank");
          both(row, column, (x, y) => pen.fillRect(x, y, side - gap, side - gap));
          if (gap && !found) both(row, column, hatch);
        }
      pen.fillStyle = colour("muted");
      labels();
      marks.forEach(mark);
      show();
    };
    const show = () => {
      draw.setTransform(1, 0, 0, 1, 0, 0);
      draw.clearRect(0, 0, canvas.width, canvas.height);
      draw.drawImage(still, 0, 0);
      if (!cell) return;
      draw.scale(dots, dots);
      Object.assign(draw, { strokeStyle: colour("ink"), lineWidth: 2 });
      draw.strokeRect(edge + cell[1] * side - 2, edge + cell[0] * side - 2, side + 3, side + 3);
    };
    const words = ([row, column]) => {
      if (row === column) return names[row];
      const pair = row < column ? [row, column] : [column, row];
      const found = share(...pair);
      const [kind, retests] = marked.get(pair.join()) || [];
      const name = pair.map((each) => names[each]).join("~");
      if (!found) return `${name}: not measured${kind ? ", but tried" : ""}`;
      const value = (found * (retests ? alone : usual)).toPrecision(3);
      const seen = retests ? `retested ${retests} times` : "seen once"; // no template within one: see tests/test_page.py
      return `${name}: ${value} ${unit}, ${Math.round(found * 100)} % of the usual, ${seen}`;
    };
    const go = (next) => {
      cell = next;
      if (cell) canvas.dataset.tip = told.textContent = words(cell);
      else delete canvas.dataset.tip;
      show();
    };
    const under = (event) => {
      const found = [event.offsetY, event.offsetX].map((each) => Math.floor((each - edge) / side));
      go(found.every((each) => each >= 0 && each < count) ? found : null);
    };
    canvas.onpointermove = canvas.onpointerdown = under;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const slow = marks.filter((each) => each[2] === "slow");
    let turn = 0;
    canvas.onkeydown = (event) => {
      const step = steps[event.key]?.map((each) => each * (event.shiftKey ? 10 : 1));
      if (event.key === "Enter" && slow.length) go(slow[turn++ % slow.length].slice(0, 2));
      if (step) go((cell || [0, 0]).map((each, way) => Math.max(0, Math.min(count - 1, each + step[way]))));
      if (step || event.key === "Enter") event.preventDefault();
    };
    addEventListener("resize", paint);
    for (const media of ["print", "(prefers-color-scheme: dark)"]) matchMedia(media).addEventListener("change", paint);
    paint();
  };
  all("figure.pairs").forEach(matrix);

  // What if: the formulas of scoring/projection.py; a test holds the two together. What is not a number is a dash.
  const desk = byId("calculator");
  if (desk) {
    const at = JSON.parse(desk.dataset.constants);
    const fields = all("input", desk);
    const way = byId("if-way");
    const [percent, usd, days] = [(v) => `${v(100)} %`, (v) => `$ ${v()}`, (v) => `${v(1 / 86400)} days`];
    const tell = (name, value, words) => {
      const v = (by = 1) => (value * by).toLocaleString("en", { maximumSignificantDigits: 3 });
      Object.assign(byId(`then-${name}`), { value, textContent: isFinite(value) ? words(v) : "—" });
    };
    const reckon = () => {
      const bad = fields.find((each) => !each.validity.valid);
      byId("if-said").textContent = bad ? bad.labels[0].textContent + ": " + bad.validationMessage : "";
      const given = fields.map((each) => (bad || !each.value ? NaN : +each.value));
      const [price, nodes, rate, save, recovery, wait, spares, flops] = given;
      const mtbf = 864e5 / nodes / rate;
      const part = save / mtbf / 2;
      const tau = part < 1 ? Math.sqrt(2 * save * mtbf) * (1 + Math.sqrt(part) / 3 + part / 9) - save : mtbf;
      const away = Math.exp((recovery * 60 + wait * 3600) / mtbf);
      const goodput = rate === 0 ? 1 : tau / mtbf / away / Math.expm1((tau + save) / mtbf);
      const keeps = goodput * (1 - at.loss);
      const gpus = nodes * at.gpus;
      const paid = gpus + spares * at.gpus + at.idle;
      const useful = ((at.tflops ?? NaN) / 1000) * gpus * keeps;
      const daily = 24 * (price * paid + at.monthly / 730);
      const seconds = flops / useful / 1e15;
      tell("goodput", goodput, percent);
      tell("effective", ((at.mfu ?? NaN) * keeps * gpus) / paid, percent);
      tell("usd", (daily * at.rental) / (at.rental - at.setup) / useful, usd);
      tell("time", seconds, days);
      tell("cost", daily * (seconds / 86400 + at.setup / 24), usd);
    };
    way.onchange = () => {
      byId("if-wait").value = way.value;
      byId("if-spares").value = way.selectedOptions[0].dataset.spares;
      reckon();
    };
    desk.oninput = reckon;
    reckon();
  }

  // Values under the pointer.
  const tip = make("div", { id: "tip", hidden: true });
  document.body.append(tip);
  const hover = (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  };
  document.onpointermove = document.onpointerdown = hover;

  // Only a box that scrolls is a stop for the keyboard.
  const boxes = all(".scroll");
  const stops = () =>
    boxes.forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      box.tabIndex = scrolls - 1;
    });
  addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);
  stops();

  // What is folded opens on paper.
  let folded;
  onbeforeprint = () => (folded = all("details:not([open], .unprinted)")).forEach((each) => (each.open = true));
  onafterprint = () => folded.forEach((each) => (each.open = false));
})();
