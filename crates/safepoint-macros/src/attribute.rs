//! What the attribute says: `#[tool(effect = "read_only", timeout = "30s")]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Expr, ExprLit, Lit, LitInt, LitStr, MetaNameValue, Path, Token, parse::Parser as _,
    punctuated::Punctuated, spanned::Spanned as _,
};

/// The keys of the attribute, as errors name them.
const KEYS: &str = "`effect`, `on_stop`, `timeout`, `overlap`, `approval`, `on_failure`, `output_bytes`, `name`, \
                    `description` and `crate`";

/// What the attribute says.
pub(crate) struct ToolAttribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// Where the engine is.
    pub(crate) engine: Path,
    /// The setters of the declaration, one after the other.
    pub(crate) setters: TokenStream,
}

impl ToolAttribute {
    pub(crate) fn read(attribute: TokenStream) -> syn::Result<Self> {
        let pairs = Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(attribute)?;
        let engine = pairs.iter().find(|pair| pair.path.is_ident("crate"));
        let engine = engine.map_or_else(|| Ok(syn::parse_quote!(::safepoint)), |pair| text(pair)?.parse())?;
        let mut read = Self { name: None, description: None, engine, setters: TokenStream::new() };
        let mut seen = Vec::new();
        for pair in &pairs {
            let key = pair.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if seen.contains(&key) {
                return Err(syn::Error::new(pair.path.span(), format!("`{key}` is said twice")));
            }
            read.take(&key, pair)?;
            seen.push(key);
        }
        Ok(read)
    }

    fn take(&mut self, key: &str, pair: &MetaNameValue) -> syn::Result<()> {
        match key {
            "name" => self.name = Some(name(pair)?),
            "description" => self.description = Some(text(pair)?),
            // It is read before the others.
            "crate" => {}
            _ => {
                let setter = self.setter(key, pair)?;
                self.setters.extend(setter);
            }
        }
        Ok(())
    }

    /// The setter of the declaration for this key.
    fn setter(&self, key: &str, pair: &MetaNameValue) -> syn::Result<TokenStream> {
        let engine = &self.engine;
        let tool = quote!(#engine::tool);
        let setter = match key {
            "effect" => {
                let effect = one_of(
                    &text(pair)?,
                    &[
                        ("read_only", quote!(ReadOnly)),
                        ("idempotent", quote!(Idempotent)),
                        ("keyed", quote!(Keyed)),
                        ("unsafe", quote!(Unsafe)),
                    ],
                )?;
                quote!(.effect(#tool::EffectClass::#effect))
            }
            "on_stop" => {
                let contract = on_stop(&text(pair)?)?;
                quote!(.on_stop(#tool::OnStop::#contract))
            }
            "timeout" => {
                let text = text(pair)?;
                let limit = duration(&text.value(), &text)?;
                quote!(.timeout(#limit))
            }
            "overlap" => {
                let kinds = [
                    ("by_effect", quote!(ByEffect)),
                    ("parallel", quote!(Parallel)),
                    ("exclusive", quote!(Exclusive)),
                ];
                let overlap = one_of(&text(pair)?, &kinds)?;
                quote!(.overlap(#tool::Concurrency::#overlap))
            }
            "approval" => {
                let kinds = [("required", quote!(Required)), ("not_needed", quote!(NotNeeded))];
                let approval = one_of(&text(pair)?, &kinds)?;
                quote!(.approval(#engine::approval::ToolApproval::#approval))
            }
            "on_failure" => {
                let kinds = [("tell_model", quote!(TellModel)), ("end_run", quote!(EndRun))];
                let whose = one_of(&text(pair)?, &kinds)?;
                quote!(.on_failure(#tool::OnToolFailure::#whose))
            }
            "output_bytes" => {
                let bytes = number(pair)?;
                quote!(.output_bytes(#bytes))
            }
            _ => {
                let why = format!("`#[tool]` does not know this key; it knows {KEYS}");
                return Err(syn::Error::new(pair.path.span(), why));
            }
        };
        Ok(setter)
    }
}

/// The text of a value.
fn text(pair: &MetaNameValue) -> syn::Result<LitStr> {
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(syn::Error::new(other.span(), "write the value as text in quotes")),
    }
}

fn number(pair: &MetaNameValue) -> syn::Result<LitInt> {
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Ok(number.clone()),
        other => Err(syn::Error::new(other.span(), "write the value as a number")),
    }
}

/// The longest name of a tool that every provider takes, in bytes.
const NAME_MAX: usize = 64;

/// A name that every provider takes.
fn name(pair: &MetaNameValue) -> syn::Result<LitStr> {
    let text = text(pair)?;
    let name = text.value();
    let is_name = (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_name {
        return Ok(text);
    }
    let why = format!("providers take 1 to {NAME_MAX} letters, digits, `_` and `-` as a tool's name");
    Err(syn::Error::new(text.span(), why))
}

/// Which of these the text is.
fn one_of(text: &LitStr, known: &[(&str, TokenStream)]) -> syn::Result<TokenStream> {
    let said = text.value();
    if let Some((_, variant)) = known.iter().find(|(word, _)| *word == said) {
        return Ok(variant.clone());
    }
    let words: Vec<String> = known.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
    Err(syn::Error::new(text.span(), format!("there is no `\"{said}\"`; say one of {}", words.join(", "))))
}

/// A contract for a stop, perhaps with its time.
fn on_stop(text: &LitStr) -> syn::Result<TokenStream> {
    let said = text.value();
    let (word, time) = said.split_once(' ').map_or((&*said, None), |(word, time)| (word, Some(time)));
    let time = time.map(|time| duration(time, text)).transpose()?;
    let of = |contract: TokenStream| match &time {
        Some(time) => quote!(#contract(::core::option::Option::Some(#time))),
        None => quote!(#contract(::core::option::Option::None)),
    };
    match (word, &time) {
        ("cooperate", _) => Ok(of(quote!(Cooperate))),
        ("finish", _) => Ok(of(quote!(Finish))),
        ("drop", None) => Ok(quote!(Drop)),
        ("detach", None) => Ok(quote!(Detach)),
        ("drop" | "detach", Some(_)) => {
            Err(syn::Error::new(text.span(), format!("`{word}` takes no time: nothing waits for the call")))
        }
        _ => {
            let why = "say `\"drop\"`, `\"cooperate\"`, `\"finish\"` or `\"detach\"`, and after the second and third a \
                       time, as in `\"finish 30s\"`";
            Err(syn::Error::new(text.span(), why))
        }
    }
}

/// A time such as `30s`.
fn duration(said: &str, text: &LitStr) -> syn::Result<TokenStream> {
    const MINUTE: u64 = 60_000;
    let units = [("ms", 1), ("s", 1_000), ("m", MINUTE), ("h", 60 * MINUTE)];
    let digits =
        said.trim().len() - said.trim().trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (count, unit) = said.trim().split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, millis)| *millis);
    let millis = count.parse::<u64>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    match millis {
        Some(millis) if millis > 0 => Ok(quote!(::core::time::Duration::from_millis(#millis))),
        _ => Err(syn::Error::new(
            text.span(),
            "write a time as in `\"500ms\"`, `\"30s\"`, `\"2m\"` or `\"1h\"`",
        )),
    }
}
