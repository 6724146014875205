// What a person would see of the open page, as findings: lists of [check, words].
"use strict";
(() => {
  const findings = [];
  const find = (check, words) => findings.push([check, words]);

  const short = text => {
    const words = text.replace(/\s+/g, " ").trim();
    return words.length > 60 ? words.slice(0, 57) + "..." : words;
  };
  const place = element => {
    const names = [];
    for (let at = element; at && at !== document.body && names.length < 4; at = at.parentElement) {
      const id = at.id ? "#" + at.id : "";
      names.unshift(at.localName + id + [...at.classList].slice(0, 2).map(name => "." + name).join(""));
    }
    return names.join(" > ");
  };
  const box = rect => `(${[rect.left, rect.top, rect.right, rect.bottom].map(Math.round).join(", ")})`;
  const tell = text => `"${short(text.words)}" ${box(text)} in ${place(text.element)}`;

  const isShown = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  // For screen readers alone: a box of a pixel, or clipped away.
  const isForReaders = element => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.position === "absolute" || style.position === "fixed") {
        const rect = at.getBoundingClientRect();
        if (style.clip !== "auto" || style.clipPath.startsWith("inset(") || rect.width <= 1 || rect.height <= 1) {
          return true;
        }
      }
    }
    return false;
  };

  // The nearest ancestor that hides what leaves it, along an axis.
  const clips = new Map();
  const clip = element => {
    if (!element || element === document.body || element === document.documentElement) return null;
    if (clips.has(element)) return clips.get(element);
    const style = getComputedStyle(element);
    const isSVG = element instanceof SVGElement;
    const hides = isSVG
      ? element instanceof SVGSVGElement && style.overflow !== "visible"
      : style.display !== "inline" && (style.overflowX !== "visible" || style.overflowY !== "visible");
    const found = hides ? { element, style, isSVG, rect: element.getBoundingClientRect() } : clip(element.parentElement);
    clips.set(element, found);
    return found;
  };
  const scrolls = clip => !clip.isSVG && ["auto", "scroll"].some(way => way === clip.style.overflowX);

  // Every line of every text node that is shown.
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, title, desc, noscript, option")) continue;
    if (!isShown(element) || isForReaders(element)) continue;
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width < 1 || rect.height < 1) continue;
      texts.push({
        words: node.data, node, element, clip: clip(element),
        left: rect.left + scrollX, right: rect.right + scrollX, top: rect.top + scrollY, bottom: rect.bottom + scrollY,
      });
    }
  }

  const width = document.documentElement.clientWidth;
  if (texts.reduce((sum, text) => sum + text.words.trim().length, 0) < 100 || !texts.some(text => text.top < innerHeight)) {
    find("blank", `${texts.length} texts`);
  }

  // The page does not scroll sideways, and no text leaves it.
  if (document.documentElement.scrollWidth > width || document.body.scrollWidth > width) {
    const widest = [...document.body.querySelectorAll("*")]
      .filter(element => isShown(element) && !clip(element.parentElement))
      .map(element => ({ element, right: element.getBoundingClientRect().right + scrollX }))
      .filter(found => found.right > width + 1)
      .sort((a, b) => b.right - a.right)[0];
    find("page", `is ${document.documentElement.scrollWidth} wide, the window ${width}`
      + (widest ? `: ${place(widest.element)} reaches ${Math.round(widest.right)}` : ""));
  }
  for (const text of texts) {
    if (text.left < -1 || (!text.clip && text.right > width + 1)) find("page", `${tell(text)} leaves the page`);
  }

  // No text is cut. Where a name ends in an ellipsis, its element holds the whole name for the pointer and the reader.
  const slack = 2;
  for (const text of texts) {
    for (let at = text.clip; at; at = clip(at.element.parentElement)) {
      if (scrolls(at)) {
        if (at.rect.right > width + 1 || at.rect.left < -1) find("page", `${place(at.element)} leaves the page`);
        break;
      }
      const left = at.rect.left + scrollX, right = at.rect.right + scrollX;
      const top = at.rect.top + scrollY, bottom = at.rect.bottom + scrollY;
      const isShortened = at.style.textOverflow === "ellipsis" || at.style.webkitLineClamp !== "none";
      if (isShortened && text.element.closest("[title]") !== null) break;
      const isSideways = text.left < left - slack || text.right > right + slack;
      // The box of a line is higher than its letters.
      const letters = (text.bottom - text.top) * 0.2 + 1;
      if (isSideways || text.top < top - letters || text.bottom > bottom + letters) {
        find("clipped", `${tell(text)} by ${place(at.element)} (${[left, top, right, bottom].map(Math.round).join(", ")})`);
        break;
      }
    }
  }

  // No two texts are on each other: those that scroll apart only as far as they are seen.
  const seen = text => {
    let seen = text;
    for (let at = text.clip; at; at = clip(at.element.parentElement)) {
      seen = {
        left: Math.max(seen.left, at.rect.left + scrollX), right: Math.min(seen.right, at.rect.right + scrollX),
        top: Math.max(seen.top, at.rect.top + scrollY), bottom: Math.min(seen.bottom, at.rect.bottom + scrollY),
      };
    }
    return seen;
  };
  for (const text of texts) text.seen = seen(text);
  const isOn = (a, b) => {
    const inset = rect => {
      const edge = (rect.bottom - rect.top) * 0.18;
      return { left: rect.left + 0.6, right: rect.right - 0.6, top: rect.top + edge, bottom: rect.bottom - edge };
    };
    const one = inset(a), other = inset(b);
    return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  };
  // A bar that stays in view while the page scrolls hides what is below it.
  const isBar = element => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (["sticky", "fixed"].includes(getComputedStyle(at).position)) return scrollY > 0;
    }
    return false;
  };
  texts.sort((a, b) => a.top - b.top);
  let under = [];
  for (const text of texts.filter(text => !isBar(text.element))) {
    under = under.filter(other => other.bottom > text.top);
    for (const other of under) {
      if (other.node === text.node) continue;
      const isSame = (text.clip && text.clip.element) === (other.clip && other.clip.element);
      if (isSame ? isOn(text, other) : isOn(text.seen, other.seen)) {
        find("overlap", `${tell(text)} is on ${tell(other)}`);
      }
    }
    under.push(text);
  }

  // Text in a drawing has enough contrast with what is behind its drawing (WCAG 2 1.4.3): axe looks at HTML alone.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colors = new Map();
  const color = words => {
    if (!colors.has(words)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = words;
      canvas.fillRect(0, 0, 1, 1);
      colors.set(words, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return colors.get(words);
  };
  const over = (front, back) => {
    const share = front[3] / 255;
    return [0, 1, 2].map(part => front[part] * share + back[part] * (1 - share)).concat(255);
  };
  const luminance = rgb => {
    const [red, green, blue] = rgb.slice(0, 3).map(part => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  // What is painted below a text: shapes of its drawing that it stands in, and the backgrounds around the drawing.
  const behind = text => {
    const layers = [];
    const element = text.element;
    const drawing = element.closest("svg:not(svg svg)");
    const x = (text.left + text.right) / 2 - scrollX, y = (text.top + text.bottom) / 2 - scrollY;
    for (const shape of [...drawing.querySelectorAll("circle, rect")].reverse()) {
      if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) || !isShown(shape)) continue;
      const rect = shape.getBoundingClientRect(), style = getComputedStyle(shape);
      if (style.fill === "none" || style.fill.startsWith("url") || x < rect.left || x > rect.right) continue;
      if (y < rect.top || y > rect.bottom) continue;
      const fill = color(style.fill).slice();
      fill[3] *= style.fillOpacity * style.opacity;
      layers.push(fill);
    }
    for (let at = drawing; at; at = at.parentElement) layers.push(color(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((back, layer) => over(layer, back), color("Canvas"));
  };
  const faint = new Set();
  for (const text of texts) {
    if (!(text.element instanceof SVGElement)) continue;
    const style = getComputedStyle(text.element);
    const back = behind(text);
    let fill = color(style.fill === "none" ? "transparent" : style.fill).slice();
    for (let at = text.element; at instanceof SVGElement; at = at.parentElement) fill[3] *= getComputedStyle(at).opacity;
    fill[3] *= style.fillOpacity;
    const [high, low] = [luminance(over(fill, back)), luminance(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const key = style.fill + back;
    if (ratio < 4.5 && !faint.has(key)) {
      faint.add(key);
      find("contrast", `${tell(text)}: ${style.fill} on rgb(${back.slice(0, 3).map(Math.round)}) is ${ratio.toFixed(2)}, not 4.5`);
    }
  }

  // An axis tells values apart: two ticks of different labels at least, as far as anything is drawn along it.
  for (const axis of document.querySelectorAll(".xaxis, .yaxis")) {
    if (!isShown(axis)) continue;
    const labels = [...axis.querySelectorAll(".tick")].map(tick => tick.textContent.trim()).filter(label => label);
    const name = `${place(axis)} of "${short(axis.closest("[aria-label]")?.getAttribute("aria-label") ?? "")}"`;
    if (labels.length === 1) find("axis", `${name} has but one tick, ${labels[0]}`);
    const twice = labels.find((label, index) => labels.indexOf(label) !== index);
    if (twice !== undefined) find("axis", `${name} has two ticks ${twice}: ${labels.join(", ")}`);
  }

  // No panel is empty: a drawing shows marks besides its axes, a table rows, a section more than its heading.
  const frames = ".grid, .axis, .xaxis, .yaxis, .tick, .band, .hatch, .objective, .halo, .key, .cursor, .markrule, defs";
  for (const svg of document.querySelectorAll("svg")) {
    if (!isShown(svg) || isForReaders(svg) || svg.closest("button, [data-icon]") || svg.parentElement.closest("svg")) continue;
    const marks = [...svg.querySelectorAll("path, rect, circle, ellipse, line, polyline, polygon, image, use")];
    const isMarked = marks.some(mark => {
      if (mark.closest(frames)) return false;
      const style = getComputedStyle(mark);
      const isPainted = style.fill !== "none" || (style.stroke !== "none" && parseFloat(style.strokeWidth) > 0);
      const rect = mark.getBBox();
      return isPainted && (rect.width > 0 || rect.height > 0 || style.strokeLinecap === "round");
    });
    if (!isMarked) find("empty", `${place(svg)} has no mark`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (isShown(table) && ![...table.querySelectorAll("td")].some(cell => cell.textContent.trim() || cell.querySelector("svg"))) {
      find("empty", `${place(table)} has no row`);
    }
  }
  for (const section of document.querySelectorAll("section, details, figure, article")) {
    if (!isShown(section) || isForReaders(section) || (section.localName === "details" && !section.open)) continue;
    const copy = section.cloneNode(true);
    for (const heading of copy.querySelectorAll("h1, h2, h3, h4, summary, figcaption, script, style, title, desc")) heading.remove();
    if (!copy.textContent.trim() && !section.querySelector("svg, img, table")) find("empty", `${place(section)} has no content`);
  }

  // No address outside, but in links that a person follows.
  for (const element of document.querySelectorAll("*")) {
    for (const attribute of element.attributes) {
      if (element.localName === "a" && attribute.name === "href") continue;
      if (!/^(src|srcset|href|xlink:href|action|formaction|poster|data|background|style|content)$/.test(attribute.name)) continue;
      const isAddress = /^(https?:)?\/\//i.test(attribute.value.trim()) || /url\(\s*["']?(https?:)?\/\//i.test(attribute.value);
      if (isAddress) find("request", `${place(element)} ${attribute.name}="${short(attribute.value)}"`);
    }
    if (element.localName === "style" && /(url\(\s*["']?(https?:)?\/\/|@import)/i.test(element.textContent)) {
      find("request", `${place(element)} names an address`);
    }
  }
  return findings;
})()
