// Scroll position in both chat pages: the end is followed until the reader scrolls away.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PHONE, Visit, launch, shot } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model, gate, lastUserText, says } from "./model.mjs";
import { until } from "./plane.mjs";

const NEAR = 120;
const paragraphs = (count, word = "Paragraph") => Array.from({ length: count }, (_, n) => `${word} ${n + 1} of the answer, in plain words.`).join("\n\n");
const REPORT = `# Report\n\n${paragraphs(10)}\n\n\`\`\`sh\nls -l\n\`\`\`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${paragraphs(20, "Point")}`;
let model, daemon, front, browser;

before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch();
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });

/** The two chat pages and the selectors of their parts. */
const PAGES = {
  "command center": {
    path: "/app/#/i/this/chat",
    box: "[role=log]",
    stored: (page, text) => page.locator("[role=log] article[title]", { hasText: text }),
    field: (page) => page.getByRole("textbox", { name: "Message" }),
    refusal: "Unknown command.",
    begin: async () => {},
  },
  "chat page of the instance": {
    path: "/",
    box: "#scroll",
    stored: (page, text) => page.locator("#stored > .message", { hasText: text }),
    field: (page) => page.locator("#composer-text"),
    refusal: "/help lists the commands",
    begin: (page) => page.locator("#new-chat").evaluate((node) => node.click()),
  },
};

const place = (page, box) => page.locator(box).evaluate((node) => ({ top: node.scrollTop, height: node.scrollHeight, window: node.clientHeight }));
const below = ({ top, height, window }) => height - top - window;
/** Waits some frames, so that the layout is complete. */
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
const latest = (page) => page.getByRole("button", { name: "Jump to latest" });

for (const [name, view] of Object.entries(PAGES)) {
  describe(name, () => {
    /** Runs a function with a page in an empty chat. */
    async function within(run, options = {}, expected = null) {
      const { code } = await daemon.api("POST", "/logins");
      const visit = await Visit.of(browser, `${front.url}/?code=${code}`, options);
      await visit.page.goto(front.url + view.path);
      await view.field(visit.page).waitFor();
      await view.begin(visit.page);
      visit.faults.length = 0;
      try { await run(visit.page); } finally { await visit.context.close(); }
      assert.deepEqual(visit.faults.filter((fault) => !expected?.test(fault)), [], "the console has no unexpected messages");
    }
    const say = async (page, text) => { await view.field(page).fill(text); await view.field(page).press("Enter"); };
    const atEnd = async (page, why) => {
      await drawn(page);
      const seen = await place(page, view.box);
      assert.ok(seen.height > seen.window, `the conversation is taller than its window: ${JSON.stringify(seen)}`);
      assert.ok(below(seen) < NEAR, `${why}: ${JSON.stringify(seen)}`);
    };
    const inView = (page, text) => page.getByText(text, { exact: true }).first().evaluate((node) => {
      const { top, bottom } = node.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    });
    /** Sends a message and waits until the answer is stored and drawn. */
    const ask = async (page, text, answer, end) => {
      model.answer = says(answer);
      await say(page, text);
      await view.stored(page, end).first().waitFor();
    };

    for (const [kind, options] of [["a desktop", {}], ["a phone", PHONE]]) {
      it(`follows answers of one to two windows to their end, on ${kind}`, () => within(async (page) => {
        for (const [n, answer] of [paragraphs(40), REPORT, `${REPORT}\n\n${paragraphs(15, "Line")}`].entries()) {
          await ask(page, `question ${n}`, `${answer}\n\nEnd ${n}.`, `End ${n}.`);
          await atEnd(page, `answer ${n} is followed to its end`);
        }
        await ask(page, "a last question", "Short.", "Short.");
        await atEnd(page, "the next answer is followed too");
        assert.equal(await inView(page, "a last question"), true, "the sent message is in view");
        await shot(page, `scroll-end-${kind.split(" ")[1]}-${name.split(" ")[0]}`);
      }, options));
    }

    it("keeps the position of a reader who scrolled back and offers a jump to the end", () => within(async (page) => {
      await ask(page, "something long", `${paragraphs(60)}\n\nEnd of it.`, "End of it.");
      const more = gate();
      model.answer = async function* () { yield { text: paragraphs(20, "Streamed") }; await more.passed; yield { text: `\n\n${paragraphs(20, "Later")}\n\nEnd of the second.` }; };
      await say(page, "something more");
      await page.getByText("Streamed 20 of the answer, in plain words.").waitFor();
      await page.locator(view.box).hover();
      await page.mouse.wheel(0, -1200);
      await latest(page).waitFor();
      await drawn(page);
      const before = await place(page, view.box);
      more.open();
      await view.stored(page, "End of the second.").first().waitFor();
      await drawn(page);
      const now = await place(page, view.box);
      assert.ok(now.height > before.height, "the answer grew");
      assert.ok(Math.abs(now.top - before.top) < 40, `the scroll position did not change: ${JSON.stringify([before, now])}`);
      await shot(page, `scroll-latest-${name.split(" ")[0]}`);
      await latest(page).click();
      await until("the end is in view", async () => below(await place(page, view.box)) < NEAR);
      await latest(page).waitFor({ state: "hidden" });
      await ask(page, "and then?", `${paragraphs(30)}\n\nEnd of the third.`, "End of the third.");
      await atEnd(page, "the end is followed again");
    }));

    it("shows a sent message to a reader who scrolled back", () => within(async (page) => {
      await ask(page, "something long", `${paragraphs(60)}\n\nEnd of it.`, "End of it.");
      await page.locator(view.box).hover();
      await page.mouse.wheel(0, -1500);
      await latest(page).waitFor();
      const more = gate();
      model.answer = async function* (asked) { await more.passed; yield { text: `Heard: ${lastUserText(asked).length > 0}` }; };
      await say(page, "written while reading back");
      await until("the message is in view", () => inView(page, "written while reading back"));
      await atEnd(page, "sending scrolls to the end");
      more.open();
      await view.stored(page, "Heard: true").first().waitFor();
      await atEnd(page, "and its answer is followed");
    }));

    it("does not scroll the page around the conversation beyond its end", () => within(async (page) => {
      for (const n of [1, 2, 3]) await ask(page, `question ${n}`, `${paragraphs(60)}\n\nEnd ${n}.`, `End ${n}.`);
      await atEnd(page, "the answers are followed to their end");
      await page.locator(view.box).hover();
      for (let turn = 0; turn < 10; turn += 1) { await page.mouse.wheel(0, 1500); await drawn(page); }
      const scrolled = await page.locator(view.box).evaluate((box) => {
        const around = [];
        for (let node = box.parentElement; node; node = node.parentElement) around.push(node);
        return around.filter((node) => node.scrollTop > 0).map((node) => `${node.localName}#${node.id} ${node.scrollTop}`);
      });
      assert.deepEqual(scrolled, [], "nothing around the conversation has scrolled");
      assert.equal(await inView(page, "End 3."), true, "the end is still in view");
    }));

    it("restores an unknown command in the field and reports it once", () => within(async (page) => {
      await say(page, "/bogus");
      await page.getByText(view.refusal).first().waitFor();
      await until("the text is in the field again", async () => (await view.field(page).inputValue()) === "/bogus");
      assert.equal(await page.getByText("Not sent.").count(), 0);
      assert.equal(await page.getByText(view.refusal).count(), 1);
    }, {}, /status of 400/));
  });
}
