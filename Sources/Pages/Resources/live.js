"use strict";
// Each event replaces header and content of the page; the last one is the report of the finished run.
(function () {
  const source = new EventSource("events");
  const footer = document.querySelector("footer.page");
  const note = document.createElement("p");
  note.setAttribute("role", "status");
  footer.prepend(note);

  source.addEventListener("state", (event) => {
    note.textContent = "";
    const fresh = new DOMParser().parseFromString(event.data, "text/html");
    const isOpen = {};
    for (const part of document.querySelectorAll("details.section")) isOpen[part.id] = part.open;
    for (const part of fresh.querySelectorAll("details.section")) {
      if (part.id in isOpen) part.open = isOpen[part.id];
    }
    const left = window.scrollX, top = window.scrollY;
    for (const name of ["header.page", "main"]) {
      document.querySelector(name).replaceWith(document.adoptNode(fresh.querySelector(name)));
    }
    window.scrollTo(left, top);
  });
  source.addEventListener("final", (event) => {
    source.close();
    document.open();
    document.write(event.data);
    document.close();
  });
  source.addEventListener("error", () => {
    note.textContent = "The connection to the run is lost; the page shows its last state and tries again.";
  });
})();
