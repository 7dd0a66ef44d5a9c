//! The parameters of the function: arguments that the model gives, and what the run gives.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, FnArg, Ident, Meta, Pat, PatType, Path, Signature, Token, Type, TypeReference, parse_quote,
    spanned::Spanned as _,
};

use crate::docs::{self, Docs};

/// One parameter, in its place.
pub(crate) struct Parameter {
    pub(crate) source: Source,
    /// Whether the function takes a reference.
    pub(crate) is_borrowed: bool,
}

/// Where it comes from. Exhaustive: the call, the run, or the model.
pub(crate) enum Source {
    /// The call's context.
    Call,
    /// A value of the run's context.
    Context(Box<Type>),
    /// An argument.
    Argument(Box<Argument>),
}

/// An argument, as a field.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) owned: Type,
    /// What the model reads about it.
    pub(crate) doc: String,
    pub(crate) default: Default,
    /// Attributes of serde and schemars.
    pub(crate) kept: Vec<Attribute>,
}

/// What stands for it where it is missing. Exhaustive: nothing, what its type says, or a value.
pub(crate) enum Default {
    None,
    OfType,
    Value(TokenStream),
}

/// The parameters of a function, whose own attributes are taken off it.
pub(crate) fn read(signature: &mut Signature, docs: &mut Docs) -> syn::Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    for input in &mut signature.inputs {
        let typed = match input {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                let why = "a method cannot be a tool: write a function, with `#[context] state: &State` where it needs \
                           state, or implement `safepoint::tool::TypedTool`";
                return Err(syn::Error::new(receiver.span(), why));
            }
        };
        parameters.push(parameter(typed, docs)?);
    }
    if let Some(name) = docs.arguments.keys().next() {
        let why = format!("the list of arguments names `{name}`, which is no argument of the function");
        return Err(syn::Error::new(signature.ident.span(), why));
    }
    Ok(parameters)
}

fn parameter(typed: &mut PatType, docs: &mut Docs) -> syn::Result<Parameter> {
    let attributes = std::mem::take(&mut typed.attrs);
    let (owned, is_borrowed) = owned(&typed.ty)?;
    let is_context = attributes.iter().any(|attribute| attribute.path().is_ident("context"));
    let name = name(&typed.pat);
    if is_context || is_tool_context(&owned) {
        // People may name it in the list; the model does not give it.
        docs.arguments.remove(&name.map(|name| name.to_string()).unwrap_or_default());
        let source = if is_context { Source::Context(Box::new(owned)) } else { Source::Call };
        return Ok(Parameter { source, is_borrowed });
    }
    let Some(name) = name else {
        let why = "give the argument a name: the model gives arguments by their names";
        return Err(syn::Error::new(typed.pat.span(), why));
    };
    let listed = docs.arguments.remove(name.to_string().trim_start_matches("r#")).unwrap_or_default();
    let said = docs::text(&attributes);
    let doc = if said.trim().is_empty() { listed } else { said.trim().to_owned() };
    let mut argument = Argument { name, owned, doc, default: Default::None, kept: Vec::new() };
    for attribute in attributes {
        argument.take(attribute)?;
    }
    Ok(Parameter { source: Source::Argument(Box::new(argument)), is_borrowed })
}

impl Argument {
    fn take(&mut self, attribute: Attribute) -> syn::Result<()> {
        let path = attribute.path();
        if path.is_ident("default") {
            self.default = match &attribute.meta {
                Meta::Path(_) => Default::OfType,
                Meta::List(list) => Default::Value(list.tokens.clone()),
                Meta::NameValue(pair) => Default::Value(pair.value.to_token_stream()),
            };
        } else if path.is_ident("serde") || path.is_ident("schemars") {
            self.kept.push(attribute);
        } else if !path.is_ident("doc") {
            let why = "an argument of a tool takes doc comments and `#[default]`, `#[context]`, `#[serde]` and \
                       `#[schemars]`";
            return Err(syn::Error::new(attribute.span(), why));
        }
        Ok(())
    }

    /// The field that holds it.
    pub(crate) fn field(&self, default: &Path) -> TokenStream {
        let Self { name, owned, doc, kept, .. } = self;
        let doc = (!doc.is_empty()).then(|| quote!(#[doc = #doc]));
        let default = match &self.default {
            Default::None => None,
            Default::OfType => Some(quote!(#[serde(default)])),
            Default::Value(_) => {
                let path = default.to_token_stream().to_string();
                Some(quote!(#[serde(default = #path)]))
            }
        };
        quote!(#doc #default #(#kept)* #name: #owned,)
    }
}

/// The name that a pattern gives, if it is only a name.
fn name(pattern: &Pat) -> Option<Ident> {
    match pattern {
        Pat::Ident(named) if named.by_ref.is_none() && named.subpat.is_none() => Some(named.ident.clone()),
        _ => None,
    }
}

/// The type that is read, and whether the function takes a reference to it.
fn owned(ty: &Type) -> syn::Result<(Type, bool)> {
    match ty {
        Type::Reference(TypeReference { mutability: Some(mutability), .. }) => Err(syn::Error::new(
            mutability.span(),
            "a call owns its arguments: take them by value, or by `&`",
        )),
        Type::Reference(TypeReference { elem, .. }) => Ok((pointee(elem), true)),
        Type::ImplTrait(opaque) => {
            Err(syn::Error::new(opaque.span(), "name the type: the arguments' schema is made from it"))
        }
        owned => Ok((owned.clone(), false)),
    }
}

/// The owned type behind a reference.
fn pointee(ty: &Type) -> Type {
    match ty {
        Type::Path(path) if path.qself.is_none() && path.path.is_ident("str") => {
            parse_quote!(::std::string::String)
        }
        Type::Slice(slice) => {
            let element = &slice.elem;
            parse_quote!(::std::vec::Vec<#element>)
        }
        owned => owned.clone(),
    }
}

fn is_tool_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
}

/// Where the generics begin, if types or constants are among them.
pub(crate) fn has_generics(signature: &Signature) -> Option<Token![<]> {
    let is_generic = signature.generics.type_params().next().is_some()
        || signature.generics.const_params().next().is_some();
    signature.generics.lt_token.filter(|_| is_generic)
}
