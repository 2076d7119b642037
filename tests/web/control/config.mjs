// One config file: masked, checked, and written only onto the version that was read.
import { createHash } from "node:crypto";
import { Refusal } from "./answers.mjs";

const MASK = "***MASKED***";
const SECRET = /^(\s*api_key\s*=\s*)"([^"]*)"/gm;
const KNOWN = ["schema", "port", "bind", "kind", "base_url", "api_key", "models", "model", "approvals", "id", "name", "agent"];
const hash = (text) => createHash("sha256").update(text).digest("hex");

export class ConfigFile {
  constructor(text) { this.text = text; }

  get etag() { return `"${hash(this.text)}"`; }

  read() {
    const secrets = [...this.text.matchAll(SECRET)].map(([, , value]) => ({ path: "providers.scripted.api_key", fingerprint: hash(value).slice(0, 8) }));
    return { toml: this.text.replace(SECRET, `$1"${MASK}"`), secrets, etag: this.etag };
  }

  validate(toml) {
    const errors = toml.split("\n").flatMap((line, n) => problem(line.trim()).map((message) => ({ line: n + 1, message })));
    return { valid: errors.length === 0, errors };
  }

  write(toml, ifMatch, maySecrets) {
    if (!ifMatch) throw new Refusal(428, "etag_missing", "say which version of the config this changes");
    if (ifMatch !== this.etag) throw new Refusal(412, "etag_stale", "the config was changed meanwhile", { etag: this.etag });
    const { valid, errors } = this.validate(toml);
    if (!valid) throw new Refusal(400, "bad_config", errors.map((one) => `line ${one.line}: ${one.message}`).join("\n"));
    const kept = [...this.text.matchAll(SECRET)].map(([, , value]) => value);
    let n = 0;
    const whole = toml.replace(SECRET, (line, before, value) => {
      const old = kept[n++];
      if (value === MASK) {
        if (old === undefined) throw new Refusal(400, "masked_nothing", "a mask stands where no secret is stored: providers.scripted.api_key");
        return `${before}"${old}"`;
      }
      if (value !== old && !maySecrets) throw new Refusal(400, "secret_write", "these are secrets: providers.scripted.api_key");
      return line;
    });
    if (/never-loads/.test(whole)) throw new Refusal(409, "not_taken_up", "the instance did not take the config up, and the old one is back: port 1 is taken");
    const wasPort = /port\s*=\s*(\d+)/.exec(this.text)?.[1];
    this.text = whole;
    const restart = /port\s*=\s*(\d+)/.exec(whole)?.[1] !== wasPort;
    return { etag: this.etag, outcome: restart ? "restart_required" : "reloaded", restart_required: restart ? ["gateway.port"] : [] };
  }
}

function problem(line) {
  if (!line || line.startsWith("#") || /^\[\[?[\w."-]+\]\]?$/.test(line)) return [];
  const key = /^([\w"-]+)\s*=\s*(.+)$/.exec(line);
  if (!key) return ["this is not TOML"];
  if (!KNOWN.includes(key[1])) return [`unknown key '${key[1]}'; did you mean '${KNOWN.find((one) => one[0] === key[1][0]) ?? KNOWN[0]}'?`];
  return (key[2].match(/"/g) ?? []).length % 2 ? ["a text has no end"] : [];
}
