import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// `npm run dev` serves the page and proxies all API calls to a running server, so that both have the same origin.
const server = process.env.POLYCLAW_URL ?? "http://127.0.0.1:18800";

export default defineConfig({
  // Relative, so that the same files work at `/` and at `/app/`.
  base: "./",
  plugins: [svelte()],
  build: {
    target: "es2022",
    // `scripts/clean.mjs` empties the folder.
    emptyOutDir: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Code that every view needs is bundled into one file.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", test: /node_modules\/svelte\/|src\/(design|live|api|shell|text)\/|src\/i18n\/(en|format|language)/ }] } } },
  },
  server: {
    proxy: {
      "/api": { target: server, ws: true },
      "/ws": { target: server, ws: true },
    },
  },
});
