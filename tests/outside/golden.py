"""Golden files of reference implementations: llama.cpp's token ids of many texts and its mean surprise over a fixed text, and the
tokens of the embedding model's own tokenizer. Rust tests compare the embedded engine with these files; run.py compares the files
with the reference implementations. `golden.py` rewrites them."""

import json
import math
import os
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "..", "crates", "provider", "tests", "golden")
TOKENS = os.path.join(FOLDER, "tokens.json")
PIECES = os.path.join(FOLDER, "pieces.json")
SURPRISE = os.path.join(FOLDER, "surprise.json")
VOCABULARY = os.path.join(HERE, "..", "..", ".tools", "model", "minilm.vocab.txt")

PROSE = """The harbour was quiet before dawn. Two fishermen mended a net by the light of a lamp and spoke about the
price of diesel, which had risen again. "If it goes on like this," the older one said, "we will row." His son
laughed, but he counted the coins in his pocket all the same. A ferry came in at 5:40, eleven minutes late, with
37 passengers and one very unhappy goat.

By nine the market was open. There were apples from the hills, bread in four shapes, cheese wrapped in leaves, and
a table of second-hand books that nobody had sorted. Anna bought a grammar of Portuguese for 2.50 and a map of a
country that no longer exists. She liked maps that were wrong: they showed what people had once believed.

In the afternoon it rained. The water ran down the steps in small brown rivers and carried a paper boat to the
square, where a dog barked at it until it sank. The church clock struck four, then, after some thought, struck four
again. Nobody in the town had ever asked it to be exact; it was enough that it tried.

A program is a little like that town. Somewhere a queue waits for a lock, a timer fires too early, a message
arrives twice. def retry(call, times=3): return next(r for r in map(lambda _: call(), range(times)) if r). Most
days nothing happens, and on the others you are glad of every line that was written down before it was needed."""

SENTENCES = [
    "Hello, world!", "The quick brown fox jumps over the lazy dog.", "I'll see you at 7:30, won't I? You'd better.",
    "It's we've they're I'm he'd she'll can't 'twas 'Tis o'clock rock'n'roll", "IT'S ALL CAPS, ISN'T IT",
    "Der Fluß trägt Schiffe über Äcker, öfter als früher.", "Où est passé le garçon ? Là-bas, près de l'église.",
    "¿Cuántos años tiene el niño? ¡Muchísimos!", "Straße, Größe, Ünïcödé, naïve café, Ångström", "Žluťoučký kůň úpěl ďábelské ódy",
    "Съешь же ещё этих мягких французских булок", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "איך בלש תפס גמל רוץ עז קוסם פרה",
    "نص حكيم له سر قاطع وذو شأن عظيم", "いろはにほへと ちりぬるを。カタカナも", "我能吞下玻璃而不伤身体。", "키스의 고유조건은 입술끼리",
    "ऋषियों को सताने वाले दुष्ट राक्षसों", "ไทยนี้รักสงบ แต่ถึงรบไม่ขลาด", "Tôi có thể ăn thủy tinh mà không hại gì.",
    "🦀🚀✨ emoji 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇩🇪", "math: ∑ᵢ xᵢ² ≤ ∞, √2 ≈ 1.41421, α→β", "½ ¾ Ⅷ ² ³ ①② ٣٤ ४५ numbers of other kinds",
    "a b  c   d    e     f", "tabs\tand\t\ttabs", "line\nline\r\nline\n\n\nline", "   leading and trailing   ", "\n\n", " ", "  ", "\t", "\n", "",
    "no-break\u00a0space and\u2003em space\u3000wide", "zero\u200bwidth\u200djoiner\ufeffbom", "combining e\u0301 a\u0308 n\u0303",
    "x=1; y = 2;z= 3 ;", "if (a && b || !c) { return a[b][c]; }", "fn main() { println!(\"{}\", 1 + 1); }",
    "for i in range(10):\n    print(i)\n\n\treturn None", "SELECT * FROM users WHERE id = 42 -- comment", "<div class=\"a b\">text &amp; more</div>",
    "{\"tool\": \"reply\", \"text\": \"Hello\"}", "{\"a\":1,\"b\":[true,false,null],\"c\":-0.5e10}", "https://example.org/a/b?c=d&e=%20f#g",
    "user@example.org +49 (0)30 1234-5678", "2024-02-29T23:59:60Z 12/31/99 0x1F 1e-9 1,000,000.00", "3.14159265358979323846264338327950288",
    "# Title\n\n- item *one*\n- item **two**\n\n> quote `code`\n\n| a | b |\n|---|---|", "$HOME/.config/app.toml && rm -rf ./build | tee log.txt",
    "<|im_start|>user\nhi<|im_end|>", "<|endoftext|>", "<|im_end|> as text", "<repo_name> <file_sep>", "[INST] <<SYS>> </s> <s>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "!!!!!!!!!!!!????????.........,,,,,,", "________------======~~~~~~",
    "CamelCaseIdentifier snake_case_identifier kebab-case SCREAMING_SNAKE", "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "C++ C# F# .NET node.js $var @name #tag 50% £5 €10 ¥100", "'single' \"double\" “curly” ‘quotes’ «guillemets» `ticks`",
    "…—–-‑ dashes • bullets ° § ¶ † ‡", "A\u0000B control \u0007 bell \u001b[31mred\u001b[0m", "\u0085next line\u2028line sep\u2029para",
    "ﬁ ligature ﷺ long ǆ title ǅ", "𝒻𝒶𝓃𝒸𝓎 𝔣𝔯𝔞𝔨𝔱𝔲𝔯 𝟙𝟚𝟛", "👍🏽👍🏿 skin tones 🧑🏻‍💻", "ᚠᛇᚻ᛫ᛒᛦᚦ runes Ꭰ Cherokee ⴰⵣⵓⵍ",
]


def texts():
    found = list(SENTENCES)
    # The same sentences in other contexts, because the text before and after changes the tokens.
    found += [" " + text for text in SENTENCES[:30]] + [text + "\n" + other for text, other in zip(SENTENCES[:40], SENTENCES[20:])]
    found += [f"{text} {len(text)}" for text in SENTENCES[:30]] + [text.upper() for text in SENTENCES[1:20]]
    found += [text[::-1] for text in SENTENCES[:40]] + [text.replace(" ", "") for text in SENTENCES[:20]]
    found += [PROSE, PROSE.replace("\n", " "), PROSE.replace(" ", "  ")] + [line for line in PROSE.split("\n") if line]
    return list(dict.fromkeys(found))


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def tokenize(url, text):
    body = {"content": text, "add_special": False, "parse_special": False}
    return post(url, "/tokenize", body)["tokens"]


def pieces():
    """Returns the tokens of the tokenizer that all-MiniLM-L6-v2 is published with. A text without words has no tokens, because
    Polyclaw does not embed it."""
    from tokenizers import BertWordPieceTokenizer

    encode = BertWordPieceTokenizer(VOCABULARY, lowercase=True).encode
    rows = [{"text": text, "tokens": encode(text).ids} for text in texts()]
    return [row if len(row["tokens"]) > 2 else dict(row, tokens=[]) for row in rows]


def save(path, rows):
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows) + "\n]\n")


def surprise(url, tokens, most):
    """Returns the mean of -ln p over the tokens after the first. Each next token is forced, and its own probability is reported."""
    total = 0.0
    count = min(len(tokens), most)
    for at in range(1, count):
        body = {
            "prompt": tokens[:at], "n_predict": 1, "n_probs": 1, "cache_prompt": True, "temperature": 1.0, "top_k": 0,
            "logit_bias": [[tokens[at], 1000.0]], "post_sampling_probs": False,
        }
        said = post(url, "/completion", body)["completion_probabilities"][0]
        assert said["id"] == tokens[at], said
        total -= said["logprob"]
    return total / (count - 1)


def speed(url):
    """Returns tokens per second of a long prompt and of an answer, as the server reports them, with one thread."""
    ask = lambda prompt, most: post(url, "/completion", {
        "prompt": prompt, "n_predict": most, "cache_prompt": False, "temperature": 0.0, "ignore_eos": True})["timings"]
    long = ask(PROSE * 2, 1)
    answer = ask("Tell me a long story about a ship and its crew.", 128)
    return {"prompt": round(long["prompt_per_second"], 1), "answer": round(answer["predicted_per_second"], 1)}


def write(url):
    os.makedirs(FOLDER, exist_ok=True)
    rows = [{"text": text, "tokens": tokenize(url, text)} for text in texts()]
    save(TOKENS, rows)
    save(PIECES, pieces())
    tokens = tokenize(url, PROSE)
    mean = surprise(url, tokens, len(tokens))
    with open(SURPRISE, "w") as file:
        json.dump({"text": PROSE, "tokens": len(tokens), "nll": round(mean, 5)}, file, indent=1)
        file.write("\n")
    print(f"{len(rows)} texts, {sum(len(row['tokens']) for row in rows)} tokens; nll {mean:.5f} over {len(tokens)}")


def check(url):
    rows = json.load(open(TOKENS))
    wrong = [row["text"] for row in rows if tokenize(url, row["text"]) != row["tokens"]]
    assert len(rows) >= 200 and not wrong, wrong[:3]
    assert json.load(open(PIECES)) == pieces(), "run golden.py to rewrite the pieces"
    known = json.load(open(SURPRISE))
    mean = surprise(url, tokenize(url, known["text"]), known["tokens"])
    assert math.isclose(mean, known["nll"], rel_tol=0.002), (mean, known["nll"])
    print(f"llama.cpp agrees with the golden files: {len(rows)} texts, nll {mean:.4f}")


if __name__ == "__main__":
    import llama

    server, url = llama.serve()
    write(url)
    sys.stdout.flush()
    os._exit(0)
