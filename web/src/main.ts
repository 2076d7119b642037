import { mount } from "svelte";
import App from "./App.svelte";
import "./design/tokens.css";
import "./design/base.css";
import { startLanguage } from "./i18n/language.svelte";
import { theme } from "./live/theme.svelte";

theme.apply();
await startLanguage();
mount(App, { target: document.getElementById("app") as HTMLElement });
