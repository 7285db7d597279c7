// What the theme leaves out for those who read with a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const sign of document.querySelectorAll("nav summary")) {
    const page = sign.closest("li").querySelector("a").textContent.trim();
    sign.setAttribute("aria-label", `Pages that belong to ${page}`);
  }
  // What scrolls sideways can be reached, and then scrolled with the arrows.
  const parts = document.querySelectorAll("pre, .pst-scrollable-table-container, div.math");
  const reachable = () => {
    for (const part of parts) part.tabIndex = part.scrollWidth > part.clientWidth ? 0 : -1;
  };
  reachable();
  window.addEventListener("resize", reachable);
  window.addEventListener("load", reachable);
});
