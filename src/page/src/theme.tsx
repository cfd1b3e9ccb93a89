import { useEffect, useState } from "preact/hooks";

const NEXT: Record<string, string> = { auto: "dark", dark: "light", light: "auto" };

/** A button that goes through the system's colours, dark and light. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState("auto");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return (
    <button type="button" class="quiet" onClick={() => setTheme(NEXT[theme]!)} aria-label={`Colours: ${theme}. Change.`}>
      {theme === "dark" ? "☾ dark" : theme === "light" ? "☀ light" : "◐ auto"}
    </button>
  );
}
