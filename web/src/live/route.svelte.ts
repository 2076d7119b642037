/** The current view. It is stored in the fragment of the address, so it needs no server and survives a reload: `#/fleet`,
    `#/approvals`, `#/i/<instance>/<view>/<selected>`. */
export const GLOBAL_VIEWS = ["fleet", "approvals", "messages", "audit", "access"] as const;
export const INSTANCE_VIEWS = ["overview", "chat", "sessions", "agents", "teams", "messages", "logs", "config", "usage", "events"] as const;
export type GlobalView = (typeof GLOBAL_VIEWS)[number];
export type InstanceView = (typeof INSTANCE_VIEWS)[number];

class Route {
  parts = $state<string[]>([]);

  constructor() {
    this.#read();
    addEventListener("hashchange", () => this.#read());
  }

  #read() {
    this.parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((part) => {
      try { return decodeURIComponent(part); } catch { return part; }
    });
  }

  get instance(): string | null { return this.parts[0] === "i" ? this.parts[1] ?? null : null; }
  get view(): string { return this.instance ? this.parts[2] ?? "overview" : this.parts[0] ?? ""; }
  /** The item that is selected in the view. */
  get selected(): string | null { return (this.instance ? this.parts[3] : this.parts[1]) ?? null; }
}

export const route = new Route();

export const routeHref = (...parts: string[]) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const navigate = (...parts: string[]) => { location.hash = routeHref(...parts); };
/** Without a new history entry. */
export const replaceRoute = (...parts: string[]) => { location.replace(routeHref(...parts)); };
