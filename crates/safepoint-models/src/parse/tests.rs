//! What names and variables say, and which error says what is missing.

use secrecy::ExposeSecret as _;

use super::*;

fn named(name: &str) -> ModelBuilder {
    name.parse().unwrap()
}

fn endpoint(name: &str, variables: &[(&str, &str)]) -> Result<Endpoint, ConfigError> {
    let set = |wanted: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == wanted);
        found.map(|(_, value)| (*value).to_owned())
    };
    named(name).endpoint(&set)
}

fn base_url(name: &str, variables: &[(&str, &str)]) -> String {
    endpoint(name, variables).unwrap().base_url
}

/// S12.42: an error names what was wrong, what is known, and what was probably meant.
#[test]
fn an_unknown_provider_is_told_what_is_known() {
    let wrong = "antropic:claude".parse::<ModelBuilder>().unwrap_err().to_string();
    assert!(wrong.contains("`antropic` (did you mean `anthropic`?)"), "{wrong}");
    for provider in providers::PROVIDERS {
        assert!(wrong.contains(provider.name()), "{wrong}");
    }
    for none in ["openai", "openai:", "openai: ", ""] {
        let wrong = none.parse::<ModelBuilder>().unwrap_err().to_string();
        assert!(wrong.contains("PROVIDER:NAME") && wrong.contains("openrouter"), "{wrong}");
    }
    assert!(!"nonsense:m".parse::<ModelBuilder>().unwrap_err().to_string().contains("did you mean"));
}

/// S12.42: a wire that is not in the build is reported with the feature that has it.
#[test]
fn a_wire_that_is_left_out_names_its_feature() {
    for (name, feature) in [("groq:m", "`openai`"), ("gemini:m", "`gemini`"), ("responses:m", "`responses`")]
    {
        let wrong = named(name).left_out().to_string();
        assert!(wrong.contains(feature) && wrong.contains("safepoint-models"), "{wrong}");
    }
    assert!(
        providers::PROVIDERS.iter().all(ModelProvider::is_available),
        "the tests are built with all wires"
    );
}

/// S12.42: a missing key's error names the variable; a server of one's own needs none.
#[test]
fn a_missing_key_is_named() {
    for provider in providers::PROVIDERS {
        let name = format!("{}:m", provider.name());
        let variables =
            [("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com"), ("AWS_REGION", "eu-west-1")];
        let found = endpoint(&name, &variables);
        match provider.key_use {
            KeyUse::Optional => assert!(found.unwrap().key.is_none()),
            KeyUse::Needed | KeyUse::NeededAsApiKey => {
                let wrong = found.err().unwrap().to_string();
                assert!(provider.key_variables().iter().all(|key| wrong.contains(key)), "{wrong}");
            }
        }
    }
}

/// The first variable that is set counts, and one that is blank is not set.
#[test]
fn a_key_comes_from_the_first_variable_that_has_one() {
    let both = [("GOOGLE_API_KEY", "second"), ("GEMINI_API_KEY", "first")];
    let key = |variables| endpoint("gemini:m", variables).unwrap().key.unwrap().expose_secret().to_owned();
    assert_eq!(key(&both[..]), "first");
    assert_eq!(key(&both[..1]), "second");
    let set = |name: &str| (name == "GEMINI_API_KEY").then(|| " ".to_owned());
    assert!(named("gemini:m").build_with(&set).is_err());
}

/// What is set wins over a variable, and a variable over the table.
#[test]
fn a_base_url_comes_from_the_nearest_place() {
    let key = ("GROQ_API_KEY", "k");
    assert_eq!(base_url("groq:m", &[key]), "https://api.groq.com/openai/v1");
    assert_eq!(base_url("groq:m", &[key, ("GROQ_BASE_URL", "http://other/v1")]), "http://other/v1");
    // Without a key: another server may want none.
    assert_eq!(base_url("groq:m", &[("GROQ_BASE_URL", "http://other/v1")]), "http://other/v1");
    let set = named("groq:m").base_url("http://set/v1").endpoint(&|_| Some("http://other/v1".to_owned()));
    assert_eq!(set.unwrap().base_url, "http://set/v1");
}

/// Addresses with parts are those that the providers document, however the variables are written.
#[test]
fn an_address_has_what_its_variables_say() {
    let azure =
        |value| base_url("azure:d", &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_ENDPOINT", value)]);
    for value in
        ["https://r.openai.azure.com", "https://r.openai.azure.com/", "https://r.openai.azure.com/openai/v1/"]
    {
        assert_eq!(azure(value), "https://r.openai.azure.com/openai/v1");
    }
    let bedrock = |region| base_url("bedrock:m", &[("AWS_BEARER_TOKEN_BEDROCK", "k"), (region, "eu-west-1")]);
    for region in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
        assert_eq!(bedrock(region), "https://bedrock-mantle.eu-west-1.api.aws/v1");
    }
    let vertex = |location| {
        let (token, project) = (("VERTEX_AI_ACCESS_TOKEN", "t"), ("GOOGLE_CLOUD_PROJECT", "p"));
        base_url("vertex:google/gemini-3-pro", &[token, project, ("GOOGLE_CLOUD_LOCATION", location)])
    };
    assert_eq!(
        vertex("europe-west4"),
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/endpoints/openapi"
    );
    assert_eq!(
        vertex("global"),
        "https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi"
    );
}

/// S12.42: an address that a variable is missing for, or that a value would break, is an error that names the variable.
#[test]
fn an_incomplete_address_is_an_error() {
    let key = ("AWS_BEARER_TOKEN_BEDROCK", "k");
    let missing = endpoint("bedrock:m", &[key]).err().unwrap().to_string();
    assert!(missing.contains("AWS_REGION or AWS_DEFAULT_REGION") && missing.contains("BEDROCK_BASE_URL"));
    for hostile in ["evil.example/", "a@evil.example", "x?y", "é"] {
        let wrong =
            endpoint("bedrock:m", &[key, ("AWS_REGION", hostile)]).err().map(|error| error.to_string());
        assert_eq!(wrong.is_some(), hostile != "evil.example/", "{hostile}");
    }
}

/// No key and no header is shown.
#[test]
fn a_builder_shows_no_key() {
    let named = named("openai:m").api_key("hunter22".to_owned().into()).header("x-secret", "hunter22");
    assert!(!format!("{named:?}").contains("hunter22"));
}
