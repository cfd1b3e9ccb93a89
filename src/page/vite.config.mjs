// Builds the page into one HTML file without references: script and style stand in it, and its Content-Security-Policy
// allows exactly these two. The report writes its data at the mark.
import { createHash } from "node:crypto";

const MARK = "<!-- data -->";

function onePage() {
  return {
    name: "one-page",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const script = files.find((file) => file.type === "chunk").code.trim().replaceAll("</script", "<\\/script");
      const style = String(files.find((file) => file.fileName.endsWith(".css")).source).trim();
      for (const name of Object.keys(bundle)) delete bundle[name];
      const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
      const policy = [
        "default-src 'none'", "base-uri 'none'", "form-action 'none'", "img-src data:",
        `script-src ${hash(script)}`, `style-src ${hash(style)}`,
      ].join("; ");
      this.emitFile({
        type: "asset",
        fileName: "page.html",
        source: [
          "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
          `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
          '<meta name="viewport" content="width=device-width, initial-scale=1">',
          '<meta name="color-scheme" content="light dark">', '<meta name="referrer" content="no-referrer">',
          "<title>clawtrace</title>", '<link rel="icon" href="data:,">', `<style>${style}</style>`, "</head>", "<body>",
          '<div id="page"><p class="wait">Reading the results …</p></div>',
          "<noscript>This page needs JavaScript. `clawtrace report` writes the same results as text.</noscript>",
          MARK, `<script>${script}</script>`, "</body>", "</html>", "",
        ].join("\n"),
      });
    },
  };
}

export default {
  logLevel: "warn",
  plugins: [onePage()],
  build: {
    outDir: "../clawtrace/report/assets",
    emptyOutDir: false,
    cssCodeSplit: false,
    modulePreload: false,
    target: "es2022",
    rollupOptions: { input: "src/main.tsx", output: { format: "iife" } },
  },
};
