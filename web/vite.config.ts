import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// `npm run dev` serves the page itself and hands every call on to a running server, so that both share an origin.
const server = process.env.POLYCLAW_URL ?? "http://127.0.0.1:18800";

export default defineConfig({
  // Relative, so that the same files work at `/` and at `/app/`.
  base: "./",
  plugins: [svelte()],
  build: {
    target: "es2022",
    // The build cleans up by itself: see scripts/clean.mjs.
    emptyOutDir: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What every view needs comes in one file, not in forty.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", test: /node_modules\/svelte\/|src\/(design|live|api|shell|text)\/|src\/i18n\/(en|format|language)/ }] } } },
  },
  server: {
    proxy: {
      "/api": { target: server, ws: true },
      "/ws": { target: server, ws: true },
    },
  },
});
