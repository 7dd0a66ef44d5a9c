//! What a macro of a module makes, for macros with one form whose arguments are single words: `id! { RunId }`.
//!
//! Any other call of such a macro stays a call, and is listed as it is written.

use std::collections::HashMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The items, with what the macros among them make in the place of the calls.
pub(crate) fn with_what_macros_make(items: Vec<syn::Item>) -> Vec<syn::Item> {
    let forms: HashMap<String, Form> = items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Macro(made) => Some((made.ident.as_ref()?.to_string(), Form::of(&made.mac.tokens)?)),
            _ => None,
        })
        .collect();
    items
        .into_iter()
        .flat_map(|item| match &item {
            syn::Item::Macro(call) if call.ident.is_none() => {
                let form = call.mac.path.get_ident().and_then(|name| forms.get(&name.to_string()));
                form.and_then(|form| form.made(call.mac.tokens.clone())).unwrap_or_else(|| vec![item])
            }
            _ => vec![item],
        })
        .collect()
}

/// The one form of a macro.
struct Form {
    /// Its variables outside repetitions, in order.
    names: Vec<String>,
    body: TokenStream,
}

impl Form {
    fn of(rules: &TokenStream) -> Option<Self> {
        let mut groups = rules.clone().into_iter().filter_map(|token| match token {
            TokenTree::Group(group) => Some(group),
            _ => None,
        });
        let (matcher, body) = (groups.next()?, groups.next()?);
        if groups.next().is_some() {
            return None;
        }
        let tokens: Vec<TokenTree> = matcher.stream().into_iter().collect();
        let names = tokens
            .windows(2)
            .filter_map(|pair| match pair {
                [TokenTree::Punct(dollar), TokenTree::Ident(name)] if dollar.as_char() == '$' => {
                    Some(name.to_string())
                }
                _ => None,
            })
            .collect::<Vec<_>>();
        (!names.is_empty()).then(|| Self { names, body: body.stream() })
    }

    /// What it makes of these arguments, if each is one word.
    fn made(&self, arguments: TokenStream) -> Option<Vec<syn::Item>> {
        // Attributes go first, and are documentation.
        let mut words = Vec::new();
        let mut is_attribute = false;
        for token in arguments {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => is_attribute = true,
                TokenTree::Group(_) if is_attribute => is_attribute = false,
                TokenTree::Punct(mark) if mark.as_char() == ',' => {}
                TokenTree::Ident(_) | TokenTree::Literal(_) => words.push(token),
                TokenTree::Group(_) | TokenTree::Punct(_) => return None,
            }
        }
        if words.len() != self.names.len() {
            return None;
        }
        let words = self.names.iter().map(String::as_str).zip(words).collect();
        syn::parse2::<syn::File>(filled(self.body.clone(), &words)).ok().map(|file| file.items)
    }
}

/// The body with words for its variables, and without its repetitions.
fn filled(body: TokenStream, words: &HashMap<&str, TokenTree>) -> TokenStream {
    let mut out = Vec::new();
    let mut tokens = body.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) => out.extend(words.get(name.to_string().as_str()).cloned()),
                // A repetition, its separator and its sign.
                Some(TokenTree::Group(_)) => drop(tokens.next()),
                _ => {}
            },
            TokenTree::Group(group) => {
                let inner = filled(group.stream(), words);
                // `#[…]` of which nothing is left is none.
                let is_empty = inner.is_empty() && group.delimiter() == Delimiter::Bracket;
                if is_empty && matches!(out.last(), Some(TokenTree::Punct(mark)) if mark.as_char() == '#') {
                    out.pop();
                } else {
                    out.push(TokenTree::Group(Group::new(group.delimiter(), inner)));
                }
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use quote::ToTokens as _;

    use super::*;

    fn made(text: &str) -> Vec<String> {
        let items = with_what_macros_make(syn::parse_file(text).unwrap().items);
        items.iter().skip(1).map(|item| item.to_token_stream().to_string()).collect()
    }

    #[test]
    fn a_macro_of_words_is_unfolded_and_another_one_stays() {
        let id = "macro_rules! id { ($(#[$doc:meta])* $name:ident, $word:literal) => {
            $(#[$doc])* pub struct $name(u64); impl $name { pub const WORD: &str = $word; } }; }
            id! { /// A run.
            RunId, \"run\" }";
        assert_eq!(
            made(id),
            ["pub struct RunId (u64) ;", "impl RunId { pub const WORD : & str = \"run\" ; }"]
        );
        let many = "macro_rules! many { ($($name:ident = $text:literal),*) => { }; } many! { A = \"a\" }";
        assert_eq!(made(many), ["many ! { A = \"a\" }"]);
    }
}
