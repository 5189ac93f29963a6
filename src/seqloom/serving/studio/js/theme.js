// Sets the theme before the page is drawn; a plain script, so that nothing flickers.
(() => {
  const asked = (() => {
    try {
      return localStorage.getItem("seqloom.theme");
    } catch {
      return null;
    }
  })();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const wanted = asked === "light" || asked === "dark" ? asked : dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = wanted;
})();
