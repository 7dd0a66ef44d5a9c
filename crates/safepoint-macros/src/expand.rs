//! What an `async fn` becomes: a function that makes its tool.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, ItemFn, Path, ReturnType, parse_quote, spanned::Spanned as _};

use crate::{
    arguments::{self, Argument, Default, Parameter, Source},
    attribute::ToolAttribute,
    docs::Docs,
};

/// Makes the function a tool.
///
/// # Errors
/// If it cannot be one, or the attribute says what is not known.
pub(crate) fn tool(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attribute = ToolAttribute::read(attribute)?;
    let mut function: ItemFn = syn::parse2(item).map_err(|error| {
        syn::Error::new(error.span(), format!("`#[tool]` stands on an `async fn`: {error}"))
    })?;
    check(&function)?;
    let mut docs = Docs::of(&function.attrs);
    let parameters = arguments::read(&mut function.sig, &mut docs)?;
    let description = match &attribute.description {
        Some(text) => text.value(),
        None => std::mem::take(&mut docs.description),
    };
    if description.trim().is_empty() {
        let why = "say in a doc comment what the tool does: the model reads it";
        return Err(syn::Error::new(function.sig.ident.span(), why));
    }
    let name = attribute.name.as_ref().map_or_else(
        || function.sig.ident.to_string().trim_start_matches("r#").to_owned(),
        syn::LitStr::value,
    );
    Ok(Expansion { attribute, parameters, name, description }.of(function))
}

fn check(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let why = "a tool is an `async fn`: add `async`; for code that blocks its thread use \
                   `safepoint::tool::from_blocking_fn`";
        return Err(syn::Error::new(signature.fn_token.span(), why));
    }
    if let Some(generics) = arguments::has_generics(signature) {
        let why = "a tool cannot be generic: its schema is made from its types";
        return Err(syn::Error::new(generics.span(), why));
    }
    Ok(())
}

/// What is known of the tool.
struct Expansion {
    attribute: ToolAttribute,
    parameters: Vec<Parameter>,
    name: String,
    description: String,
}

impl Expansion {
    fn of(&self, mut function: ItemFn) -> TokenStream {
        let engine = &self.attribute.engine;
        let (vis, maker) = (function.vis.clone(), function.sig.ident.clone());
        let (docs, others): (Vec<Attribute>, Vec<Attribute>) =
            function.attrs.drain(..).partition(|attribute| attribute.path().is_ident("doc"));
        function.attrs = others;
        function.vis = syn::Visibility::Inherited;
        let body = function.sig.ident.clone();
        let (args, declared) = self.args();
        let (name, description, setters) = (&self.name, &self.description, &self.attribute.setters);
        let call = self.call(&function.sig.output, &body, &args);
        quote! {
            #(#docs)*
            #vis fn #maker() -> impl #engine::tool::TypedTool {
                #function
                #declared
                struct __Tool;
                impl #engine::tool::TypedTool for __Tool {
                    const NAME: &'static str = #name;
                    const DESCRIPTION: &'static str = #description;
                    type Args = #args;
                    type Output = #engine::tool::Output;
                    fn declare(&self, spec: #engine::tool::ToolSpec) -> #engine::tool::ToolSpec {
                        spec #setters
                    }
                    #call
                }
                __Tool
            }
        }
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match &parameter.source {
            Source::Argument(argument) => Some(&**argument),
            Source::Call | Source::Context(_) => None,
        })
    }

    /// The type of the arguments, and what declares it.
    fn args(&self) -> (syn::Type, TokenStream) {
        if self.arguments().next().is_none() {
            return (parse_quote!(()), TokenStream::new());
        }
        let engine = &self.attribute.engine;
        let (fields, defaults): (Vec<_>, Vec<_>) =
            self.arguments().enumerate().map(|(index, argument)| field(index, argument)).unzip();
        let [serde, schemars] = ["serde", "schemars"].map(|krate| {
            let path = quote!(#engine::raw::derive).to_string();
            format!("{path}::{krate}").replace(' ', "")
        });
        let declared = quote! {
            #[derive(#engine::raw::derive::serde::Deserialize, #engine::raw::derive::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            struct __Args { #(#fields)* }
            #(#defaults)*
        };
        (parse_quote!(__Args), declared)
    }

    fn call(&self, output: &ReturnType, body: &Ident, args: &syn::Type) -> TokenStream {
        let engine = &self.attribute.engine;
        let cx = Ident::new("cx", Span::mixed_site());
        let given = Ident::new("args", Span::mixed_site());
        let passed =
            self.parameters.iter().map(|Parameter { source, is_borrowed }| match (source, is_borrowed) {
                (Source::Call, true) => quote!(&#cx),
                (Source::Call, false) => quote!(::core::clone::Clone::clone(&#cx)),
                (Source::Context(ty), true) => quote!(#cx.get::<#ty>()?),
                (Source::Context(ty), false) => quote!(::core::clone::Clone::clone(#cx.get::<#ty>()?)),
                (Source::Argument(argument), true) => {
                    let name = &argument.name;
                    quote!(&#given.#name)
                }
                (Source::Argument(argument), false) => {
                    let name = &argument.name;
                    quote!(#given.#name)
                }
            });
        // An error about what is returned points at the type that is.
        let at = match output {
            ReturnType::Default => body.span(),
            ReturnType::Type(_, ty) => ty.span(),
        };
        let output = Ident::new("output", Span::mixed_site().located_at(at));
        let into_output = quote_spanned!(at=> #engine::tool::IntoOutput::into_output(#output));
        quote! {
            async fn call(
                &self,
                #cx: #engine::ToolContext,
                #given: #args,
            ) -> #engine::ToolResult<#engine::tool::Output> {
                let _ = (&#cx, &#given);
                let #output = #body(#(#passed),*).await;
                #into_output
            }
        }
    }
}

/// The field of an argument, and the function that gives its default.
fn field(index: usize, argument: &Argument) -> (TokenStream, TokenStream) {
    let default = format_ident!("__default_{index}");
    let path: Path = parse_quote!(#default);
    let made = match &argument.default {
        Default::None | Default::OfType => TokenStream::new(),
        Default::Value(value) => {
            let owned = &argument.owned;
            let is_text = syn::parse2::<syn::LitStr>(value.clone()).is_ok();
            let value = if is_text { quote!(::core::convert::Into::into(#value)) } else { value.clone() };
            quote!(fn #default() -> #owned { #value })
        }
    };
    (argument.field(&path), made)
}
