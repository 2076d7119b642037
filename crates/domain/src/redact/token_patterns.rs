//! Prefixes of the keys of known services.

/// A prefix and the format of what follows.
pub(super) struct TokenPattern {
    pub text: &'static str,
    pub rest: TokenTail,
}

#[derive(Clone, Copy)]
pub(super) enum TokenTail {
    /// Letters, digits, `-` and `_`: at least this many, with at least one digit. Examples in prose have none.
    Key(usize),
    /// Like `Key`, with full stops.
    Dotted(usize),
    /// Like `Key`, with the characters of base64; the prefix is not masked.
    Header(usize),
    WebToken,
    /// The label of a block between dashes, and the block if it is a private key.
    Block,
    /// The password between `://user:` and `@`.
    Address,
    /// The part after the number and colon of a bot token.
    Bot,
    /// The part after the id and full stop of a bot token.
    Discord,
}

pub(super) const TOKEN_PATTERNS: &[TokenPattern] = &[
    key_pattern("sk_live_", 16),
    key_pattern("sk_test_", 16),
    key_pattern("rk_live_", 16),
    key_pattern("rk_test_", 16),
    key_pattern("AKIA", 16),
    key_pattern("ASIA", 16),
    key_pattern("ABIA", 16),
    key_pattern("ACCA", 16),
    key_pattern("xoxb-", 16),
    key_pattern("xoxa-", 16),
    key_pattern("xoxp-", 16),
    key_pattern("xoxr-", 16),
    key_pattern("xoxs-", 16),
    key_pattern("xoxc-", 16),
    key_pattern("xoxd-", 16),
    key_pattern("xoxe-", 16),
    key_pattern("xapp-", 16),
    key_pattern("tskey-", 16),
    key_pattern("sk-", 20),
    key_pattern("csk-", 20),
    key_pattern("whsec_", 20),
    key_pattern("glpat-", 20),
    key_pattern("gldt-", 20),
    key_pattern("glrt-", 20),
    key_pattern("glptt-", 20),
    key_pattern("glcbt-", 20),
    key_pattern("glsoa-", 20),
    key_pattern("glft-", 20),
    key_pattern("GOCSPX-", 20),
    key_pattern("tvly-", 20),
    key_pattern("syt_", 20),
    key_pattern("syr_", 20),
    key_pattern("fw_", 20),
    key_pattern("rnd_", 20),
    key_pattern("BSA", 24),
    key_pattern("ghp_", 30),
    key_pattern("gho_", 30),
    key_pattern("ghu_", 30),
    key_pattern("ghs_", 30),
    key_pattern("ghr_", 30),
    key_pattern("github_pat_", 30),
    key_pattern("AIza", 30),
    key_pattern("gsk_", 30),
    key_pattern("xai-", 30),
    key_pattern("hf_", 30),
    key_pattern("npm_", 30),
    key_pattern("pplx-", 30),
    key_pattern("ntn_", 30),
    key_pattern("r8_", 30),
    key_pattern("lin_api_", 30),
    key_pattern("lin_oauth_", 30),
    key_pattern("shpat_", 30),
    key_pattern("shpca_", 30),
    key_pattern("shppa_", 30),
    key_pattern("shpss_", 30),
    key_pattern("sess-", 30),
    key_pattern("figd_", 30),
    key_pattern("dckr_pat_", 30),
    key_pattern("nvapi-", 30),
    key_pattern("jina_", 30),
    key_pattern("phx_", 30),
    key_pattern("glsa_", 30),
    key_pattern("1//0", 30),
    key_pattern("dapi", 30),
    key_pattern("sq0atp-", 30),
    key_pattern("sq0csp-", 30),
    key_pattern("sntrys_", 30),
    key_pattern("sntryu_", 30),
    key_pattern("sbp_", 30),
    key_pattern("rpa_", 30),
    key_pattern("key-", 30),
    key_pattern("pypi-", 40),
    key_pattern("dop_v1_", 40),
    key_pattern("doo_v1_", 40),
    key_pattern("dor_v1_", 40),
    key_pattern("EAA", 40),
    key_pattern("xkeysib-", 40),
    key_pattern("PMAK-", 40),
    key_pattern("ATATT3", 40),
    key_pattern("ATCTT3", 40),
    key_pattern("secret_", 40),
    key_pattern("sk_", 40),
    key_pattern("AGE-SECRET-KEY-", 40),
    key_pattern("HRKU-", 30),
    key_pattern("tgp_v1_", 30),
    key_pattern("sb_secret_", 20),
    key_pattern("vcp_", 20),
    key_pattern("vck_", 20),
    key_pattern("nfp_", 30),
    key_pattern("fo1_", 30),
    key_pattern("NRAK-", 20),
    key_pattern("pscale_tkn_", 30),
    key_pattern("pscale_pw_", 30),
    key_pattern("lsv2_pt_", 30),
    key_pattern("lsv2_sk_", 30),
    key_pattern("pcsk_", 30),
    key_pattern("fc-", 30),
    key_pattern("pa-", 40),
    key_pattern("apify_api_", 30),
    key_pattern("napi_", 30),
    key_pattern("re_", 30),
    key_pattern("bkua_", 30),
    key_pattern("CCIPAT_", 30),
    key_pattern("rubygems_", 30),
    key_pattern("tfp_", 40),
    key_pattern("pat-na1-", 30),
    key_pattern("pat-eu1-", 30),
    key_pattern("CFPAT-", 30),
    key_pattern("wandb_v1_", 30),
    key_pattern("glimt-", 20),
    key_pattern("glagent-", 20),
    key_pattern("pul-", 40),
    key_pattern("LTAI", 16),
    key_pattern("AKCp", 60),
    dotted_pattern("glc_", 40),
    dotted_pattern("ops_", 60),
    dotted_pattern("dp.pt.", 30),
    dotted_pattern("dt0c01.", 60),
    dotted_pattern("pat", 78),
    dotted_pattern("ya29.", 20),
    dotted_pattern("SG.", 40),
    dotted_pattern("hvs.", 20),
    dotted_pattern("hvb.", 20),
    dotted_pattern("xoxe.", 20),
    TokenPattern { text: "hooks.slack.com/services/", rest: TokenTail::Header(20) },
    TokenPattern { text: "/api/webhooks/", rest: TokenTail::Header(30) },
    TokenPattern { text: "Bearer ", rest: TokenTail::Header(16) },
    TokenPattern { text: "bearer ", rest: TokenTail::Header(16) },
    TokenPattern { text: "Authorization: Basic ", rest: TokenTail::Header(12) },
    TokenPattern { text: "authorization: Basic ", rest: TokenTail::Header(12) },
    TokenPattern { text: "eyJ", rest: TokenTail::WebToken },
    TokenPattern { text: "-----BEGIN ", rest: TokenTail::Block },
    TokenPattern { text: "://", rest: TokenTail::Address },
    TokenPattern { text: ":AA", rest: TokenTail::Bot },
    TokenPattern { text: ".", rest: TokenTail::Discord },
];

const fn key_pattern(text: &'static str, least: usize) -> TokenPattern {
    TokenPattern { text, rest: TokenTail::Key(least) }
}

const fn dotted_pattern(text: &'static str, least: usize) -> TokenPattern {
    TokenPattern { text, rest: TokenTail::Dotted(least) }
}

#[cfg(test)]
mod tests {
    use crate::redact::{REDACTION_MARK, Redactor};

    /// Samples in the format of each service. They are concatenated here, so that no scanner takes them for real keys.
    const KEYS: &[(&str, &str, &str)] = &[
        ("Anthropic", "sk-ant-", "api03-abc1DEFghi2JKLmno3PQRstu4VWX-yzAA"),
        ("OpenAI", "sk-proj-", "abc1DEFghi2JKLmno3PQRstu4VWX"),
        ("OpenAI session", "sess-", "abc1DEFghi2JKLmno3PQRstu4VWXyz56789"),
        ("Groq", "gsk_", "abc1DEFghi2JKLmno3PQRstu4VWXyz56789"),
        ("xAI", "xai-", "abc1DEFghi2JKLmno3PQRstu4VWXyz56789"),
        ("Perplexity", "pplx-", "abc1DEFghi2JKLmno3PQRstu4VWXyz56789"),
        ("Hugging Face", "hf_", "abcDEFghiJKLmno3PQRstuVWXyz567890a"),
        ("Replicate", "r8_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcd"),
        ("NVIDIA", "nvapi-", "abcDEFghiJKLmno3PQRstuVWXyz567890abcd"),
        ("Tavily", "tvly-", "dev-abcDEFghiJKLmno3PQRstu"),
        ("Brave", "BSA", "abcDEFghiJKLmno3PQRstuVWXyz56"),
        ("Discord", "MTk4NjIyNDgzNDcxOTI1MjQ4.", "Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
        ("Telegram", "110201543:", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
        ("WhatsApp", "EAAG", "m0PX4ZCpsBAKZCabcDEFghiJKLmno3PQRstuVWXyz567890"),
        ("Matrix", "syt_", "YWxpY2U_abcDEFghiJKLmnoPQRst_1a2b3c"),
        ("Slack bot", "xoxb-", "1234567890-abcDEFghiJKL"),
        ("Slack app", "xapp-", "1-A0123456-1234567890-abcdef"),
        ("Slack webhook", "hooks.slack.com/services/", "T0001/B0001/abcDEFghiJKLmno3PQRstu"),
        ("Discord webhook", "discord.com/api/webhooks/", "1234567890/abcDEFghiJKLmno3PQRstuVWXyz"),
        ("GitHub", "ghp_", "abcDEFghiJKLmno3PQRstuVWXyz567890abc"),
        ("GitHub fine", "github_pat_", "11ABCDEFG0abcDEFghiJKL_mno3PQRstuVWXyz"),
        ("GitLab", "glpat-", "abcDEFghiJKLmno3PQRst"),
        ("Stripe", "sk_live_", "abcDEFghiJKLmno3PQRstuVW"),
        ("Stripe restricted", "rk_live_", "abcDEFghiJKLmno3PQRstuVW"),
        ("AWS", "AKIA", "IOSFODNN7EXAMPLE"),
        ("Google key", "AIza", "SyA1234567890abcdefghijklmnopqrstuv"),
        ("Google access", "ya29.", "a0AfH6SMBx1234567890abcdefghijkl"),
        ("Google client", "GOCSPX-", "abcDEFghiJKLmno3PQRstuVWXyz5"),
        ("npm", "npm_", "abcDEFghiJKLmno3PQRstuVWXyz567890abc"),
        ("PyPI", "pypi-", "AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0"),
        ("Docker", "dckr_pat_", "abcDEFghiJKLmno3PQRstuVWXyz567890"),
        ("SendGrid", "SG.", "abcDEFghiJKLmno3PQRstu.abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("Shopify", "shpat_", "0123456789abcdef0123456789abcdef"),
        ("Notion", "ntn_", "123456789012abcDEFghiJKLmno3PQRstuVWXyz"),
        ("Linear", "lin_api_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEF"),
        ("Vault", "hvs.", "CAESIJabcDEFghiJKLmno3PQRstuVWXyz"),
        ("DigitalOcean", "dop_v1_", "0123456789abcdef0123456789abcdef0123456789abcdef"),
        ("Mailgun", "key-", "0123456789abcdef0123456789abcdef"),
        ("Square", "sq0atp-", "abcDEFghiJKLmno3PQRstuVWXyz567890"),
        ("Heroku", "HRKU-", "01234567-89ab-cdef-0123-456789abcdef"),
        ("Together", "tgp_v1_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("Supabase", "sb_secret_", "abcDEFghiJKLmno3PQRstu_1a2b3c4d"),
        ("Vercel", "vcp_", "abcDEFghiJKLmno3PQRstuVWXyz"),
        ("Netlify", "nfp_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEF"),
        ("Fly", "fo1_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEF"),
        ("Grafana", "glc_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("New Relic", "NRAK-", "ABCDEFGHI0JKLMNO1PQRSTUVWXY"),
        ("PlanetScale", "pscale_tkn_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEF"),
        ("LangSmith", "lsv2_pt_", "0123456789abcdef0123456789abcdef_0123456789"),
        ("Pinecone", "pcsk_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEF"),
        ("Firecrawl", "fc-", "0123456789abcdef0123456789abcdef"),
        ("Voyage", "pa-", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHIjk"),
        ("Apify", "apify_api_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcd"),
        ("Neon", "napi_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHIjkl"),
        ("Resend", "re_", "abcDEF12_ghiJKLmno3PQRstuVWXyz567890"),
        ("Doppler", "dp.pt.", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("1Password", "ops_", "eyJzaWduSW5BZGRyZXNzIjoiZXhhbXBsZSJ9eyJzaWduSW5BZGRyZXNzIjoi1234"),
        ("Buildkite", "bkua_", "0123456789abcdef0123456789abcdef01234567"),
        ("CircleCI", "CCIPAT_", "abcDEFghiJKLmno3PQRstu_0123456789abcdef"),
        ("RubyGems", "rubygems_", "0123456789abcdef0123456789abcdef0123456789abcdef"),
        ("Typeform", "tfp_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHIjk"),
        ("HubSpot", "pat-na1-", "01234567-89ab-cdef-0123-456789abcdef"),
        ("Contentful", "CFPAT-", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("Weights & Biases", "wandb_v1_", "abcDEFghiJKLmno3PQRstuVWXyz567890abcdEFGHI"),
        ("Pulumi", "pul-", "0123456789abcdef0123456789abcdef01234567"),
        ("Alibaba Cloud", "LTAI", "5tAbcDEFghiJKLmno3PQ"),
        (
            "Airtable",
            "patAbCdEfGhIjKlMn.",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ),
    ];

    #[test]
    fn every_known_token_format_is_redacted() {
        let redactor = Redactor::default();
        for (service, head, rest) in KEYS {
            for text in [
                format!("{head}{rest}"),
                format!("the key is {head}{rest}. Use it."),
                format!("{{\"x\":\"{head}{rest}\"}}"),
                format!("line\n{head}{rest}\nline"),
            ] {
                let shown = redactor.redact_text(&text);
                let tail = &rest[rest.len() - 8..];
                assert!(shown.contains(REDACTION_MARK) && !shown.contains(tail), "{service}: {shown}");
                assert!(!shown.contains("Use it") || shown.ends_with(". Use it."), "{service}: {shown}");
            }
        }
    }

    #[test]
    fn ordinary_words_and_numbers_are_not_redacted() {
        let redactor = Redactor::default();
        for text in [
            "See section 1.2.3 of the BSA report, and EAA rules.",
            "ask-me-anything about sk-learn and fw_cfg, key-value stores and hf_hub",
            "https://discord.com/api/webhooks/ needs an id",
            "crate versions 1.2.3-alpha.4, file main.MTests.rs, MainWindowControllerFactory.create.run()",
            "a dapi call; the session sess-1; secret_name = 1; SG. Then go on.",
            "commit 0123456789abcdef0123456789abcdef01234567",
        ] {
            assert_eq!(redactor.redact_text(text), text);
        }
    }
}
