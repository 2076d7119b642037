//! What keys of services begin with.

/// The start of a pattern, and how it goes on.
pub(super) struct Head {
    pub text: &'static str,
    pub rest: Rest,
}

#[derive(Clone, Copy)]
pub(super) enum Rest {
    /// Letters, digits, `-` and `_`: at least so many, one of them a digit. Examples in prose have none.
    Key(usize),
    /// The same, with full stops in it.
    Dotted(usize),
    /// Like a key, with the signs of base64; the head itself stays.
    Header(usize),
    WebToken,
    /// The label of a block between dashes, and the block if it is a private key.
    Block,
    /// The password between `://user:` and `@`.
    Address,
    /// What follows the number of a bot and its colon.
    Bot,
    /// What follows the id of a bot and its full stop.
    Discord,
}

pub(super) const HEADS: &[Head] = &[
    key("sk_live_", 16),
    key("sk_test_", 16),
    key("rk_live_", 16),
    key("rk_test_", 16),
    key("AKIA", 16),
    key("ASIA", 16),
    key("ABIA", 16),
    key("ACCA", 16),
    key("xoxb-", 16),
    key("xoxa-", 16),
    key("xoxp-", 16),
    key("xoxr-", 16),
    key("xoxs-", 16),
    key("xoxc-", 16),
    key("xoxd-", 16),
    key("xoxe-", 16),
    key("xapp-", 16),
    key("tskey-", 16),
    key("sk-", 20),
    key("csk-", 20),
    key("whsec_", 20),
    key("glpat-", 20),
    key("gldt-", 20),
    key("glrt-", 20),
    key("glptt-", 20),
    key("glcbt-", 20),
    key("glsoa-", 20),
    key("glft-", 20),
    key("GOCSPX-", 20),
    key("tvly-", 20),
    key("syt_", 20),
    key("syr_", 20),
    key("fw_", 20),
    key("rnd_", 20),
    key("BSA", 24),
    key("ghp_", 30),
    key("gho_", 30),
    key("ghu_", 30),
    key("ghs_", 30),
    key("ghr_", 30),
    key("github_pat_", 30),
    key("AIza", 30),
    key("gsk_", 30),
    key("xai-", 30),
    key("hf_", 30),
    key("npm_", 30),
    key("pplx-", 30),
    key("ntn_", 30),
    key("r8_", 30),
    key("lin_api_", 30),
    key("lin_oauth_", 30),
    key("shpat_", 30),
    key("shpca_", 30),
    key("shppa_", 30),
    key("shpss_", 30),
    key("sess-", 30),
    key("figd_", 30),
    key("dckr_pat_", 30),
    key("nvapi-", 30),
    key("jina_", 30),
    key("phx_", 30),
    key("glsa_", 30),
    key("1//0", 30),
    key("dapi", 30),
    key("sq0atp-", 30),
    key("sq0csp-", 30),
    key("sntrys_", 30),
    key("sntryu_", 30),
    key("sbp_", 30),
    key("rpa_", 30),
    key("key-", 30),
    key("pypi-", 40),
    key("dop_v1_", 40),
    key("doo_v1_", 40),
    key("dor_v1_", 40),
    key("EAA", 40),
    key("xkeysib-", 40),
    key("PMAK-", 40),
    key("ATATT3", 40),
    key("ATCTT3", 40),
    key("secret_", 40),
    key("sk_", 40),
    key("AGE-SECRET-KEY-", 40),
    key("HRKU-", 30),
    key("tgp_v1_", 30),
    key("sb_secret_", 20),
    key("vcp_", 20),
    key("vck_", 20),
    key("nfp_", 30),
    key("fo1_", 30),
    key("NRAK-", 20),
    key("pscale_tkn_", 30),
    key("pscale_pw_", 30),
    key("lsv2_pt_", 30),
    key("lsv2_sk_", 30),
    key("pcsk_", 30),
    key("fc-", 30),
    key("pa-", 40),
    key("apify_api_", 30),
    key("napi_", 30),
    key("re_", 30),
    key("bkua_", 30),
    key("CCIPAT_", 30),
    key("rubygems_", 30),
    key("tfp_", 40),
    key("pat-na1-", 30),
    key("pat-eu1-", 30),
    key("CFPAT-", 30),
    key("wandb_v1_", 30),
    key("glimt-", 20),
    key("glagent-", 20),
    key("pul-", 40),
    key("LTAI", 16),
    key("AKCp", 60),
    dotted("glc_", 40),
    dotted("ops_", 60),
    dotted("dp.pt.", 30),
    dotted("dt0c01.", 60),
    dotted("pat", 78),
    dotted("ya29.", 20),
    dotted("SG.", 40),
    dotted("hvs.", 20),
    dotted("hvb.", 20),
    dotted("xoxe.", 20),
    Head { text: "hooks.slack.com/services/", rest: Rest::Header(20) },
    Head { text: "/api/webhooks/", rest: Rest::Header(30) },
    Head { text: "Bearer ", rest: Rest::Header(16) },
    Head { text: "bearer ", rest: Rest::Header(16) },
    Head { text: "Authorization: Basic ", rest: Rest::Header(12) },
    Head { text: "authorization: Basic ", rest: Rest::Header(12) },
    Head { text: "eyJ", rest: Rest::WebToken },
    Head { text: "-----BEGIN ", rest: Rest::Block },
    Head { text: "://", rest: Rest::Address },
    Head { text: ":AA", rest: Rest::Bot },
    Head { text: ".", rest: Rest::Discord },
];

const fn key(text: &'static str, least: usize) -> Head {
    Head { text, rest: Rest::Key(least) }
}

const fn dotted(text: &'static str, least: usize) -> Head {
    Head { text, rest: Rest::Dotted(least) }
}

#[cfg(test)]
mod tests {
    use crate::redact::{MARK, Redactor};

    /// Of the shape each service gives its keys. Put together here, so that no scanner takes them for real ones.
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
                let shown = redactor.text(&text);
                let tail = &rest[rest.len() - 8..];
                assert!(shown.contains(MARK) && !shown.contains(tail), "{service}: {shown}");
                assert!(!shown.contains("Use it") || shown.ends_with(". Use it."), "{service}: {shown}");
            }
        }
    }

    #[test]
    fn ordinary_words_and_numbers_stay() {
        let redactor = Redactor::default();
        for text in [
            "See section 1.2.3 of the BSA report, and EAA rules.",
            "ask-me-anything about sk-learn and fw_cfg, key-value stores and hf_hub",
            "https://discord.com/api/webhooks/ needs an id",
            "crate versions 1.2.3-alpha.4, file main.MTests.rs, MainWindowControllerFactory.create.run()",
            "a dapi call; the session sess-1; secret_name = 1; SG. Then go on.",
            "commit 0123456789abcdef0123456789abcdef01234567",
        ] {
            assert_eq!(redactor.text(text), text);
        }
    }
}
