use std::cell::Cell;
use std::io::Cursor;

use serde_json::{Value, json};

use super::super::synthetic;
use super::*;

fn ask(text: &str, schema: Option<Value>) -> GenerationRequest {
    let lines = vec![TemplateMessage { role: "user", text: text.to_owned() }];
    GenerationRequest { lines, schema, temperature: 0.0, seed: 1, most: 40 }
}

fn told(engine: &mut EmbeddedEngine, ask: &GenerationRequest) -> GeneratedAnswer {
    engine.generate(ask, &mut |_| {}, &|| true).unwrap()
}

#[test]
fn tokenizer_round_trips_text_without_special_tokens() {
    let engine = synthetic::synthetic_engine(Kernel::Scalar);
    let tokenizer = engine.tokenizer();
    assert_eq!(tokenizer.encode("hello hell").len(), 3, "hello, a space, hell");
    for text in ["hello wörld 🦀\n\t 12", "<|im_end|> is only text"] {
        let tokens = tokenizer.encode(text);
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| tokenizer.token_bytes(*token).to_vec()).collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
        assert!(tokens.iter().all(|token| *token > 2));
    }
    let long = "he".repeat(200_000);
    assert_eq!(tokenizer.encode(&long).len(), 200_000);
}

#[test]
fn answer_ends_at_token_limit_and_is_streamed_completely() {
    let mut engine = synthetic::synthetic_engine(Kernel::detect());
    let mut streamed = String::new();
    let answer =
        engine.generate(&ask("hello", None), &mut |piece| streamed.push_str(piece), &|| true).unwrap();
    assert!(answer.output <= 40 && answer.truncated == (answer.output == 40));
    assert_eq!(streamed, answer.text);
    assert_eq!((answer.input > 5, answer.cached), (true, 0));
}

#[test]
fn shared_prompt_prefix_is_cached_without_changing_answer() {
    let mut warm = synthetic::synthetic_engine(Kernel::detect());
    let first = told(&mut warm, &ask("hello world", None));
    let again = told(&mut warm, &ask("hello world", None));
    assert_eq!((again.cached, &again.text), (again.input - 1, &first.text));
    let other = told(&mut warm, &ask("hello worms", None));
    let cold = told(&mut synthetic::synthetic_engine(Kernel::detect()), &ask("hello worms", None));
    assert!(other.cached > 5 && cold.cached == 0);
    assert_eq!(other.text, cold.text);
}

#[test]
fn batched_prompt_equals_token_by_token() {
    let engine = synthetic::synthetic_engine(Kernel::detect());
    let tokens = engine.tokenizer.encode(&"hello world, this is long. ".repeat(6));
    let (mut whole, mut single) = (engine.llama.new_cache(), engine.llama.new_cache());
    let batch = engine.llama.extend(&mut whole, &tokens, &|| true).unwrap();
    let one_by_one =
        tokens.iter().map(|token| engine.llama.extend(&mut single, &[*token], &|| true).unwrap()).last();
    assert_eq!(Some(batch), one_by_one);
}

#[test]
fn sampling_is_deterministic_per_seed() {
    let draw = |seed| {
        let ask = GenerationRequest { temperature: 1.5, seed, ..ask("hello", None) };
        told(&mut synthetic::synthetic_engine(Kernel::detect()), &ask).text
    };
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

#[test]
fn scalar_and_fast_kernel_have_equal_surprise() {
    let text = "hello world, a text of some length that nobody trained for 12345.";
    let (plain, fast) = (
        synthetic::synthetic_engine(Kernel::Scalar).mean_surprise(text),
        synthetic::synthetic_engine(Kernel::detect()).mean_surprise(text),
    );
    assert!((plain - fast).abs() < 1e-3 * plain, "{plain} against {fast}");
}

#[test]
fn constrained_answer_matches_schema_at_any_token_limit() {
    let schema = json!({ "type": "object", "required": ["city", "days"], "properties": {
        "city": { "type": "string" }, "days": { "type": "integer", "minimum": 0 } } });
    let mut engine = synthetic::synthetic_engine(Kernel::detect());
    for most in [24, 30, 80, 200] {
        for temperature in [0.0, 1.5] {
            let ask = GenerationRequest { most, temperature, ..ask("weather", Some(schema.clone())) };
            let answer = told(&mut engine, &ask);
            let value: Value =
                serde_json::from_str(&answer.text).unwrap_or_else(|error| panic!("{error}: {}", answer.text));
            assert!(value["city"].is_string() && value["days"].is_u64(), "{value}");
            assert!(answer.output <= most, "{} of {most}", answer.output);
        }
    }
    let few = GenerationRequest { most: 10, ..ask("x", Some(schema)) };
    let shortest = told(&mut engine, &few).text;
    assert!(serde_json::from_str::<Value>(&shortest).is_ok(), "what can not be shorter is whole: {shortest}");
}

#[test]
fn cancel_stops_generation_and_engine_stays_usable() {
    let mut engine = synthetic::synthetic_engine(Kernel::detect());
    let asked = Cell::new(0);
    let mut pieces = 0;
    let stopped = engine.generate(&ask("hello", None), &mut |_| pieces += 1, &|| {
        asked.set(asked.get() + 1);
        asked.get() < 5
    });
    assert_eq!(stopped, Err(GenerationError::Cancelled));
    assert!(asked.get() == 5 && pieces <= 4, "{pieces} pieces after {} questions", asked.get());
    let cold = told(&mut synthetic::synthetic_engine(Kernel::detect()), &ask("hello", None));
    assert_eq!(told(&mut engine, &ask("hello", None)).text, cold.text);
}

#[test]
fn damaged_model_files_are_refused_without_panic() {
    let good = synthetic::model_file();
    let open = |bytes: &[u8]| EmbeddedEngine::read(Cursor::new(bytes.to_vec()), Kernel::Scalar).map(|_| ());
    assert!(open(&good).is_ok());
    for end in (0..good.len()).step_by(97).chain(good.len() - 40..good.len()) {
        assert!(open(&good[..end]).is_err(), "cut at {end}");
    }
    // Sets each byte of the head to its extreme values.
    for at in 0..14_000.min(good.len()) {
        for value in [0, 0x7f, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let _ = open(&bad);
        }
    }
    assert!(open(b"not a model at all").unwrap_err().to_string().contains("not a GGUF file"));
}
