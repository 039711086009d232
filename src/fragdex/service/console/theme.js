// Before anything is painted: the colours that were chosen here, and room for the sections.
try {
  if (sessionStorage.getItem("fragdex.key")) document.documentElement.dataset.signed = "in";
  const theme = localStorage.getItem("fragdex.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that stores nothing shows those of the system
}
