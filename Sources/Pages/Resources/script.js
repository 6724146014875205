"use strict";
// Charts over time share one cursor and one zoom; tables are sortable; charts can be copied.
// The page is complete without this script.
(function () {
  const find = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const make = (name, attributes, text) => {
    const element = document.createElement(name);
    for (const key in attributes || {}) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const svgMake = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const numbers = (text) => (text || "").trim().split(/\s+/).map(Number);

  // Numbers as in the page: three significant digits, grouped, with a unit that fits.
  const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
  const significant = (value) => {
    if (value < 0) return "-" + significant(-value);
    if (value >= 99.95) return grouped(value);
    if (value === 0) return "0";
    return value.toFixed(value >= 9.995 ? 1 : value >= 0.0995 ? 2 : value >= 0.00995 ? 3 : 4);
  };
  const number = (value) => (value >= 1000 || value === Math.round(value) ? grouped(value) : significant(value));
  const scaled = (value, units) => {
    let unit = 0;
    while (unit < units.length - 1 && value >= 999.5) { value /= 1000; unit += 1; }
    return (unit === 0 ? grouped(value) : significant(value)) + " " + units[unit];
  };
  const duration = (seconds) => scaled(seconds * 1e9, ["ns", "µs", "ms", "s"]);
  const written = (value, unit) => {
    if (value === null || value === undefined) return "–";
    if (unit === "s") return duration(value);
    if (unit === "B") return scaled(value, ["B", "kB", "MB", "GB", "TB"]);
    if (unit === "%") return significant(value * 100) + " %";
    return number(value) + (unit === "/s" ? "/s" : "");
  };
  const two = (value) => (value < 10 ? "0" : "") + value;
  const clock = (seconds, step) => {
    const sign = seconds < -1e-9 ? "-" : "", size = Math.abs(seconds);
    if (step < 1) return sign + size.toFixed(step < 0.1 ? 2 : 1) + " s";
    const whole = Math.floor(size + 1e-6);
    if (whole < 120) return sign + whole + " s";
    if (whole < 3600) return sign + Math.floor(whole / 60) + ":" + two(whole % 60) + " min";
    return sign + Math.floor(whole / 3600) + ":" + two(Math.floor(whole / 60) % 60) + ":" + two(whole % 60) + " h";
  };

  // Tables

  for (const table of find("table.sortable")) {
    const heads = find("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.textContent = "";
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const falls = head.getAttribute("aria-sort") === "descending";
        const order = head.getAttribute("aria-sort") === "none" && !head.classList.contains("words")
          ? "descending" : falls ? "ascending" : head.getAttribute("aria-sort") === "none" ? "ascending" : "descending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order);
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
        };
        const isUnknown = (value) => value === "–" || value === "";
        const rows = Array.from(body.rows).map((row) => [key(row), row]);
        rows.sort(([left], [right]) => {
          if (isUnknown(left) || isUnknown(right)) return isUnknown(left) - isUnknown(right);
          const difference = typeof left === "number" && typeof right === "number"
            ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
          return order === "ascending" ? difference : -difference;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  // A link into a folded section opens it.
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView({ block: "nearest" });
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  // Paper shows everything.
  addEventListener("beforeprint", () => find("details.section:not([open])").forEach((part) => {
    part.open = true;
    part.dataset.printed = "";
  }));
  addEventListener("afterprint", () => find("details[data-printed]").forEach((part) => {
    part.open = false;
    delete part.dataset.printed;
  }));

  // Legends and copies

  const styled = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin",
    "stroke-linecap", "opacity", "paint-order", "vector-effect", "font-size", "font-family", "font-weight", "display"];
  const standalone = (svg) => {
    const copy = svg.cloneNode(true), from = [svg, ...find("*", svg)], to = [copy, ...find("*", copy)];
    find(".cursor, .selection", copy).forEach((part) => part.remove());
    from.forEach((element, place) => {
      const style = getComputedStyle(element);
      to[place].setAttribute("style", styled.map((name) => name + ":" + style.getPropertyValue(name)).join(";"));
      to[place].removeAttribute("class");
    });
    const paper = getComputedStyle(document.body).backgroundColor;
    copy.setAttribute("style", copy.getAttribute("style") + ";background:" + paper);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return new XMLSerializer().serializeToString(copy);
  };
  const copyText = (text) => {
    const byHand = () => {
      const area = make("textarea", { class: "said", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const isCopied = document.execCommand("copy");
      area.remove();
      return isCopied ? Promise.resolve() : Promise.reject(new Error("refused"));
    };
    return navigator.clipboard && navigator.clipboard.writeText
      ? navigator.clipboard.writeText(text).catch(byHand) : byHand();
  };

  const told = (button, text, action) => button.addEventListener("click", () => {
    Promise.resolve().then(action).then((done) => { button.textContent = done; }, () => { button.textContent = "Not allowed"; })
      .then(() => setTimeout(() => { button.textContent = text; }, 1500));
  });
  const shownChart = (box) => find("svg.chart", box).find((svg) => svg.getClientRects().length > 0);
  for (const box of find(".chart-box")) {
    const tools = make("div", { class: "tools" });
    const toggle = (series, button) => {
      const isShown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(isShown));
      for (const part of find('[data-series="' + series + '"]', box)) {
        if (part.classList.contains("key")) part.classList.toggle("key-off", !isShown);
        else if (isShown) part.removeAttribute("data-hidden");
        else part.setAttribute("data-hidden", "");
      }
    };
    const keys = find(".wide .key[data-series]", box);
    if (keys.length > 4) tools.classList.add("many");
    if (keys.length > 1) {
      for (const key of keys) {
        const series = key.dataset.series, name = key.textContent.trim();
        const button = make("button", { type: "button", "aria-pressed": "true", title: "Show or hide " + name }, name);
        button.addEventListener("click", () => toggle(series, button));
        for (const one of find('.key[data-series="' + series + '"]', box)) {
          one.style.cursor = "pointer";
          one.addEventListener("click", () => toggle(series, button));
        }
        tools.append(button);
      }
    }
    const copy = make("button", { type: "button", title: "Copy this chart as SVG" }, "Copy SVG");
    told(copy, "Copy SVG", () => copyText(standalone(shownChart(box))).then(() => "Copied"));
    tools.append(copy);
    box.append(tools);
  }

  // The head as Markdown, and the charts of the strip below each other as one picture

  const strip = document.getElementById("strip"), markdown = document.getElementById("markdown");
  const copies = make("div", { class: "copies" });
  const offer = (text, action) => {
    const button = copies.appendChild(make("button", { type: "button" }, text));
    told(button, text, action);
  };
  if (markdown) offer("Copy as Markdown", () => copyText(markdown.content.textContent).then(() => "Copied"));
  if (markdown && strip) offer("Save as SVG", () => {
    let height = 0;
    const shown = find(".chart-box", strip).map(shownChart).filter((svg) => svg);
    const charts = shown.map((svg) => {
      height += Number(svg.getAttribute("height"));
      return standalone(svg).replace("<svg ", '<svg y="' + (height - svg.getAttribute("height")) + '" ');
    });
    const size = 'width="' + shown[0].getAttribute("width") + '" height="' + height + '"';
    const picture = '<svg xmlns="http://www.w3.org/2000/svg" ' + size + ">" + charts.join("") + "</svg>";
    const href = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
    make("a", { download: "clamor-run.svg", href: href }).click();
    return "Saved";
  });
  find("header.page .badges").forEach((badges) => badges.append(copies));

  // One cursor and one zoom

  const source = document.getElementById("data");
  if (!strip || !source) return;
  const data = JSON.parse(source.textContent), count = data.begin.length;
  const panels = find('svg[data-chart="time"], svg[data-chart="heat"]', strip).map((svg) => {
    const [x, y, width, height] = numbers(svg.dataset.plot), [low, high] = numbers(svg.dataset.x);
    const plot = svg.querySelector("svg.plot"), axis = svg.querySelector("g.xaxis");
    const marks = find("g.mark, g.bandname, text.bandname", svg).filter((part) => !plot.contains(part));
    return {
      svg, plot, axis, x, y, width, height, low, high, marks,
      isLabelled: axis && axis.querySelector("text") !== null, axisHTML: axis && axis.innerHTML,
      view: numbers(plot.getAttribute("viewBox")), places: marks.map((part) => {
        const own = part.querySelector && (part.querySelector("circle") || part.querySelector("text")) || part;
        return Number(own.getAttribute("cx") || own.getAttribute("x"));
      }),
    };
  });
  if (panels.length === 0 || count === 0) return;
  const [first, last] = [panels[0].low, panels[0].high];
  let shown = [first, last], at = -1, drag = null;

  const bar = make("div", { class: "toolbar" });
  const readout = make("div", { class: "readout" });
  const said = make("div", { class: "said", "aria-live": "polite" });
  const hint = "Move over the charts for exact values; drag to zoom. Keys: arrows, + and −, 0 for the whole run.";
  const button = (text, title, action) => {
    const element = make("button", { type: "button", title: title }, text);
    element.addEventListener("click", action);
    bar.append(element);
    return element;
  };
  button("Zoom in", "Show half of the time", () => zoom(0.5));
  button("Zoom out", "Show twice the time", () => zoom(2));
  const whole = button("Whole run", "Show the whole run", () => show(first, last));
  const range = make("span", {});
  bar.append(range);
  strip.before(bar, readout);
  strip.append(said);
  strip.setAttribute("tabindex", "0");
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", "Charts over time. " + hint);

  const stageOf = (place) => {
    let name = "";
    for (const [begin, stage] of data.stages) if (begin <= place) name = stage;
    return name;
  };
  const step = count > 1 ? data.length.slice().sort((left, right) => left - right)[count >> 1] : 1;
  // Seconds as in the result files; a part of one says how long it is.
  const timeOf = (place) => "at " + Math.floor(data.begin[place] + 1e-6) + " s"
    + (data.begin[place] >= 120 ? " (" + clock(data.begin[place], 1) + ")" : "")
    + (data.length[place] < 0.9 * step ? " (" + duration(data.length[place]) + " of it)" : "");

  const placeAt = (time) => {
    let low = 0, high = count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.begin[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  };

  function pixel(panel, time) { return panel.x + (time - shown[0]) / (shown[1] - shown[0]) * panel.width; }

  function point(place, speaks) {
    at = Math.max(0, Math.min(count - 1, place));
    const time = data.begin[at] + data.length[at] / 2;
    for (const panel of panels) {
      if (!panel.cursor) {
        panel.cursor = svgMake("line", { class: "cursor", y1: panel.y, y2: panel.y + panel.height });
        panel.svg.append(panel.cursor);
      }
      const x = pixel(panel, time), isIn = x >= panel.x && x <= panel.x + panel.width;
      panel.cursor.setAttribute("x1", x);
      panel.cursor.setAttribute("x2", x);
      panel.cursor.style.display = isIn ? "" : "none";
    }
    const head = make("b", {}, timeOf(at));
    readout.replaceChildren(head, " " + stageOf(at));
    const words = [];
    for (const series of data.series) {
      const value = written(series.values[at], series.unit), item = make("span", { class: "item" });
      item.append(make("span", { class: "swatch " + series.style }), series.name + " ", make("b", {}, value));
      readout.append(item);
      words.push(series.name + " " + value);
    }
    if (speaks) said.textContent = timeOf(at) + ", " + words.join(", ");
  }

  function unpoint() {
    at = -1;
    for (const panel of panels) if (panel.cursor) panel.cursor.style.display = "none";
    readout.textContent = hint;
  }

  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600];
  function redrawAxis(panel) {
    if (!panel.axis) return;
    if (shown[0] === first && shown[1] === last) { panel.axis.innerHTML = panel.axisHTML; return; }
    const base = Math.floor(panel.y + panel.height) + 0.5, space = panel.width > 500 ? 80 : 56;
    const span = shown[1] - shown[0], wanted = span / Math.max(2, panel.width / space);
    const tick = steps.find((one) => one >= wanted) || span;
    panel.axis.replaceChildren();
    let marks = "";
    for (let value = Math.ceil(shown[0] / tick - 1e-9) * tick; value <= shown[1] + tick * 1e-6; value += tick) {
      const x = pixel(panel, value);
      marks += "M" + x.toFixed(1) + " " + base + "v4";
      if (!panel.isLabelled) continue;
      const text = svgMake("text", { class: "tick", x: x.toFixed(1), y: base + 15, "text-anchor": "middle" });
      text.textContent = clock(value, tick);
      panel.axis.append(text);
    }
    panel.axis.append(svgMake("path", { class: "axis", d: marks }));
  }

  function show(low, high) {
    const least = Math.max(step * 2, 0.02);
    if (high - low < least) { const middle = (low + high) / 2; low = middle - least / 2; high = middle + least / 2; }
    const span = Math.min(high - low, last - first);
    low = Math.max(first, Math.min(low, last - span));
    shown = [low, low + span];
    for (const panel of panels) {
      const scale = panel.width / (last - first);
      const [, top, , height] = panel.view;
      panel.plot.setAttribute("viewBox", [panel.x + (low - first) * scale, top, span * scale, height].join(" "));
      redrawAxis(panel);
      panel.marks.forEach((mark, place) => {
        const time = first + (panel.places[place] - panel.x) / scale, x = pixel(panel, time);
        const isIn = x >= panel.x - 1 && x <= panel.x + panel.width + 1;
        mark.setAttribute("transform", "translate(" + (x - panel.places[place]).toFixed(2) + " 0)");
        mark.style.display = isIn ? "" : "none";
      });
    }
    whole.disabled = span >= last - first;
    range.textContent = whole.disabled ? "" : clock(shown[0], step < 1 ? 0.1 : 1) + " – " + clock(shown[1], step < 1 ? 0.1 : 1);
    if (at >= 0) point(at, false);
  }

  function zoom(factor) {
    const span = (shown[1] - shown[0]) * factor;
    const middle = at >= 0 && data.begin[at] >= shown[0] && data.begin[at] <= shown[1]
      ? data.begin[at] : (shown[0] + shown[1]) / 2;
    show(middle - span / 2, middle + span / 2);
  }

  const timeAt = (panel, event) => {
    const box = panel.svg.getBoundingClientRect(), view = numbers(panel.svg.getAttribute("viewBox"));
    const x = (event.clientX - box.left) / box.width * view[2] + view[0];
    const share = Math.max(0, Math.min(1, (x - panel.x) / panel.width));
    return shown[0] + share * (shown[1] - shown[0]);
  };
  for (const panel of panels) {
    panel.svg.addEventListener("pointermove", (event) => {
      const time = timeAt(panel, event);
      point(placeAt(time), false);
      if (!drag) return;
      const [low, high] = [Math.min(drag.time, time), Math.max(drag.time, time)];
      for (const one of panels) {
        if (!one.selection) {
          one.selection = svgMake("rect", { class: "selection", y: one.y, height: one.height });
          one.svg.append(one.selection);
        }
        one.selection.setAttribute("x", pixel(one, low));
        one.selection.setAttribute("width", Math.max(0, pixel(one, high) - pixel(one, low)));
      }
      drag.to = time;
    });
    panel.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch" || event.target.closest(".key")) return;
      drag = { time: timeAt(panel, event), to: null, x: event.clientX };
      panel.svg.setPointerCapture(event.pointerId);
      event.preventDefault();
      strip.focus({ preventScroll: true });
    });
    const release = (event) => {
      const done = drag;
      drag = null;
      for (const one of panels) if (one.selection) { one.selection.remove(); one.selection = null; }
      if (event.type === "pointerup" && done && done.to !== null && Math.abs(event.clientX - done.x) > 5) {
        show(Math.min(done.time, done.to), Math.max(done.time, done.to));
      }
    };
    panel.svg.addEventListener("pointerup", release);
    panel.svg.addEventListener("pointercancel", release);
    panel.svg.addEventListener("dblclick", () => show(first, last));
  }
  strip.addEventListener("pointerleave", () => { if (!drag && document.activeElement !== strip) unpoint(); });
  strip.addEventListener("keydown", (event) => {
    if (event.target !== strip || event.ctrlKey || event.altKey || event.metaKey) return;
    const leap = event.shiftKey ? 10 : 1;
    const from = at >= 0 ? at : placeAt(shown[0]);
    const actions = {
      ArrowRight: () => point(at >= 0 ? from + leap : from, true), ArrowLeft: () => point(from - leap, true),
      Home: () => point(placeAt(shown[0]), true), End: () => point(placeAt(shown[1]), true),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => show(first, last),
      Escape: () => { show(first, last); unpoint(); },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
    const time = at >= 0 ? data.begin[at] : shown[0];
    if (at >= 0 && (time < shown[0] || time > shown[1])) {
      const span = shown[1] - shown[0];
      show(time - span / 2, time + span / 2);
    }
  });
  // An event of the list points at its second.
  for (const item of find("ol.events li[data-at]")) {
    item.addEventListener("pointerenter", () => point(placeAt(Number(item.dataset.at)), false));
  }
  show(first, last);
  unpoint();
})();
