import { mount } from "svelte";
import App from "./App.svelte";
import "./design/tokens.css";
import "./design/base.css";
import { startLanguage } from "./i18n/language.svelte";
import { look } from "./live/theme.svelte";

look.show();
await startLanguage();
mount(App, { target: document.getElementById("app") as HTMLElement });
