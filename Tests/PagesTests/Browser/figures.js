// The visible text of the page with everything unfolded, blanks as single spaces.
(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const clone = [...document.body.children].filter(child => !["script", "style"].includes(child.localName));
  const drawn = [...document.querySelectorAll("svg text, svg title, svg desc")].map(text => text.textContent);
  return [...clone.map(child => child.innerText || child.textContent), ...drawn].join(" ").replace(/\s+/g, " ").trim();
})()
