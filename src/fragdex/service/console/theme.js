// Before anything is painted: the colours that were chosen here.
try {
  const theme = localStorage.getItem("fragdex.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that stores nothing shows those of the system
}
